//! Tests of the executor.

use super::*;

fn executor(seed: u64) -> Executor {
    Executor::new(Random::stream(seed, 0))
}

fn log() -> (Arc<Mutex<Vec<u64>>>, impl Fn(u64) + Clone + Send + 'static) {
    let log = Arc::new(Mutex::new(Vec::new()));
    let writer = log.clone();
    (log, move |entry| lock(&writer).push(entry))
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn time_jumps_from_timer_to_timer() {
    let executor = executor(1);
    let (log, write) = log();
    for seconds in [3_u64, 1, 2] {
        let (sleep, write, clock) = (executor.sleep(SECOND * seconds as u32), write.clone(), executor.clone());
        executor.spawn(WORLD, async move {
            sleep.await;
            write(clock.now().0);
        });
    }
    executor.run(Moment(10_000_000), || false).unwrap();
    assert_eq!(*lock(&log), [1_000_000, 2_000_000, 3_000_000]);
    assert_eq!(executor.now(), Moment(10_000_000));
}

#[test]
fn the_seed_decides_who_goes_on() {
    let order = |seed| {
        let executor = executor(seed);
        let (log, write) = log();
        for number in 0..20 {
            let write = write.clone();
            executor.spawn(WORLD, async move { write(number) });
        }
        executor.run(Moment(0), || false).unwrap();
        std::mem::take(&mut *lock(&log))
    };
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));
}

#[test]
fn a_killed_group_does_nothing_more_and_the_others_go_on() {
    let executor = executor(1);
    let (log, write) = log();
    let (victim, other) = (executor.group(), executor.group());
    for (group, entry) in [(victim, 1), (other, 2)] {
        let (sleep, write) = (executor.sleep(SECOND), write.clone());
        executor.spawn(group, async move {
            sleep.await;
            write(entry);
        });
    }
    executor.run(Moment(500_000), || false).unwrap();
    executor.kill(victim);
    executor.spawn(victim, async move { write(3) });
    executor.run(Moment(2_000_000), || false).unwrap();
    assert_eq!(*lock(&log), [2]);
}

#[test]
fn a_task_that_kills_its_own_group_ends_at_its_next_wait() {
    let executor = executor(1);
    let (log, write) = log();
    let group = executor.group();
    let killer = executor.clone();
    executor.spawn(group, async move {
        killer.kill(group);
        write(1);
        std::future::pending::<()>().await;
    });
    executor.run(Moment(1), || false).unwrap();
    assert_eq!(*lock(&log), [1]);
    assert!(executor.state().tasks.iter().all(|slot| slot.task.is_none()));
}

#[test]
fn a_paused_group_misses_its_timers_until_it_is_resumed() {
    let executor = executor(1);
    let (log, write) = log();
    let group = executor.group();
    let (sleep, clock) = (executor.sleep(SECOND), executor.clone());
    executor.spawn(group, async move {
        sleep.await;
        write(clock.now().0);
    });
    executor.run(Moment(0), || false).unwrap();
    executor.pause(group);
    executor.run(Moment(5_000_000), || false).unwrap();
    assert!(lock(&log).is_empty());
    executor.resume(group);
    executor.run(Moment(6_000_000), || false).unwrap();
    assert_eq!(*lock(&log), [5_000_000]);
}

#[test]
fn a_wait_that_is_given_up_leaves_no_timer() {
    let executor = executor(1);
    let group = executor.group();
    let sleep = executor.sleep(SECOND);
    executor.spawn(group, sleep);
    executor.run(Moment(0), || false).unwrap();
    assert_eq!(executor.state().timers.len(), 1);
    executor.kill(group);
    assert!(executor.state().timers.is_empty());
}

#[test]
fn tasks_that_never_wait_are_a_livelock() {
    let executor = executor(1);
    let clock = executor.clone();
    executor.spawn(WORLD, async move {
        clock.sleep(SECOND).await;
        loop {
            std::future::poll_fn(|context| {
                context.waker().wake_by_ref();
                Poll::<()>::Pending
            })
            .await;
        }
    });
    assert_eq!(executor.run(Moment(10_000_000), || false), Err(Livelock { at: Moment(1_000_000) }));
}

#[test]
#[should_panic(expected = "a busy loop")]
fn a_task_that_sleeps_for_no_time_again_and_again_is_a_busy_loop() {
    let executor = executor(1);
    let clock = executor.clone();
    executor.spawn(WORLD, async move {
        loop {
            clock.sleep(Duration::ZERO).await;
        }
    });
    executor.run(Moment(10_000_000), || false).ok();
}

#[test]
fn a_sleep_is_never_shorter_than_it_was_asked_to_be() {
    let executor = executor(1);
    let (log, write) = log();
    let clock = executor.clone();
    executor.spawn(WORLD, async move {
        clock.sleep(Duration::from_nanos(751)).await;
        write(clock.now().0);
    });
    executor.run(Moment(10), || false).unwrap();
    assert_eq!(*lock(&log), [1]);
}

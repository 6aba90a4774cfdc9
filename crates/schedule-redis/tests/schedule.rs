//! The index on one server: each added task is taken once, in order.

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use redrive_core::{Class, TaskId};
use redrive_schedule_redis::{Gone, Options, Schedule, Take, Turn};
use redrive_store::{PendingTask, Token};
use redrive_testbed::Redis;
use support::*;

#[tokio::test]
async fn each_class_of_a_lane_is_taken_by_itself() {
    let redis = Redis::start();
    let schedule = complete_schedule(&redis.url()).await;
    let retry = |number, due| PendingTask { class: Class::Retry, ..task("a", number, due) };
    add(&schedule, [retry(1, 10), task("a", 2, 20), retry(3, 30), task("a", 4, 40)]).await;
    let turn = |class| Turn { lane: lane("a"), class, tasks: 1 };
    let answers = schedule.take(&[turn(Class::First), turn(Class::Retry)], at(50)).await;
    let taken = answers.into_iter().map(|answer| match answer.unwrap() {
        Take::Taken(taken) => (taken.tasks, taken.next_due),
        Take::Incomplete => panic!("not complete"),
    });
    let expected = [(vec![task("a", 2, 20)], Some(at(40))), (vec![retry(1, 10)], Some(at(30)))];
    assert_eq!(taken.collect::<Vec<_>>(), expected);
    let PendingTask { lane, class, id, token, .. } = retry(3, 30);
    assert_eq!(schedule.remove(vec![Gone { lane: lane.clone(), class: Class::First, id, token }]).await.unwrap(), 0);
    assert_eq!(schedule.remove(vec![Gone { lane, class, id, token }]).await.unwrap(), 1);
}

#[tokio::test]
async fn due_tasks_are_taken_earliest_first_and_once() {
    let redis = Redis::start();
    let schedule = complete_schedule(&redis.url()).await;
    add(&schedule, [task("a", 1, 30), task("a", 2, 10), task("a", 3, 20), task("a", 4, 99), task("b", 5, 1)]).await;

    let taken = take(&schedule, "a", 2, 50).await;
    assert_eq!(taken.tasks, [task("a", 2, 10), task("a", 3, 20)]);
    assert_eq!(taken.next_due, Some(at(30)));
    let taken = take(&schedule, "a", 2, 50).await;
    assert_eq!((taken.tasks, taken.next_due), (vec![task("a", 1, 30)], Some(at(99))));
    let taken = take(&schedule, "a", 2, 98).await;
    assert_eq!((taken.tasks, taken.next_due), (vec![], Some(at(99))));
    let taken = take(&schedule, "a", 2, 99).await;
    assert_eq!((taken.tasks, taken.next_due), (vec![task("a", 4, 99)], None));
    assert_eq!(
        schedule
            .heads(&["b", "a"].map(|name| (lane(name), Class::First)))
            .await
            .into_iter()
            .map(Result::unwrap)
            .collect::<Vec<_>>(),
        [Some(at(1)), None]
    );
}

#[tokio::test]
async fn lanes_are_answered_in_the_order_asked() {
    let redis = Redis::start();
    let schedule = complete_schedule(&redis.url()).await;
    let names = ["https://a.example", "{0}", "}{", "a:{1}:due:default/x", "billing"];
    add(&schedule, names.iter().zip(1..).map(|(name, number)| task(name, number, number))).await;
    let mut asked: Vec<(&&str, u64)> = names.iter().zip(1..).collect();
    asked.reverse();
    let turns: Vec<_> = asked.iter().map(|(name, _)| turn(name, 5)).collect();
    let taken = schedule.take(&turns, at(100)).await;
    for ((name, number), taken) in asked.into_iter().zip(taken) {
        let Ok(Take::Taken(taken)) = taken else { panic!("{taken:?}") };
        assert_eq!((taken.tasks, taken.next_due), (vec![task(name, number, number)], None), "{name}");
    }
}

#[tokio::test]
async fn of_equal_due_times_the_older_task_goes_first() {
    let redis = Redis::start();
    let schedule = complete_schedule(&redis.url()).await;
    add(&schedule, [300, 2, 70_000, 1].map(|number| task("a", number, 5))).await;
    let taken = take(&schedule, "a", 10, 5).await;
    assert_eq!(taken.tasks, [1, 2, 300, 70_000].map(|number| task("a", number, 5)));
}

#[tokio::test]
async fn a_task_is_only_ever_moved_to_an_earlier_time() {
    let redis = Redis::start();
    let schedule = complete_schedule(&redis.url()).await;
    add(&schedule, [task("a", 1, 50)]).await;
    add(&schedule, [task("a", 1, 10)]).await;
    add(&schedule, [task("a", 1, 90)]).await;
    let taken = take(&schedule, "a", 10, 100).await;
    assert_eq!(taken.tasks, [task("a", 1, 10)]);
}

#[tokio::test]
async fn a_task_with_another_token_is_another_entry() {
    let redis = Redis::start();
    let schedule = complete_schedule(&redis.url()).await;
    let retried = PendingTask { token: Token(1), ..task("a", 1, 20) };
    add(&schedule, [task("a", 1, 10), retried.clone()]).await;
    assert_eq!(take(&schedule, "a", 10, 100).await.tasks, [task("a", 1, 10), retried]);
}

#[tokio::test]
async fn what_is_removed_is_not_taken() {
    let redis = Redis::start();
    let schedule = complete_schedule(&redis.url()).await;
    add(&schedule, (1..=1_200).map(|number| task("a", number, number))).await;
    let gone = |number: u64, token| Gone {
        lane: lane("a"),
        class: Class::First,
        id: TaskId::from_parts(number, 7),
        token: Token(token),
    };
    assert_eq!(schedule.remove((2..=1_300).map(|number| gone(number, 0)).collect()).await.unwrap(), 1_199);
    assert_eq!(schedule.remove(vec![gone(1, 1)]).await.unwrap(), 0, "another token");
    let taken = take(&schedule, "a", 10, 5_000).await;
    assert_eq!((taken.tasks, taken.next_due), (vec![task("a", 1, 1)], None));
    assert_eq!(redis.call(&["HKEYS", &book_of("a")]), "epoch", "an empty lane leaves nothing behind");
}

#[tokio::test]
async fn prefixes_keep_deployments_apart() {
    let redis = Redis::start();
    let first = complete_schedule(&redis.url()).await;
    let options = Options { prefix: "other".into(), ..Options::default() };
    let second = Schedule::new(redis.url().parse().unwrap(), options).unwrap();
    second.connect().await.unwrap();
    fill(&second).await;
    add(&first, [task("a", 1, 1)]).await;
    assert_eq!(take(&second, "a", 10, 5).await.tasks, []);
    assert_eq!(take(&first, "a", 10, 5).await.tasks, [task("a", 1, 1)]);
}

/// Several processes add and take at the same time: nothing is taken twice, and what was added and not taken is still
/// present.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn takers_in_parallel_share_the_work_without_overlap() {
    const ADDERS: u64 = 4;
    const EACH: u64 = 1_500;
    const TAKERS: usize = 4;
    /// Less than the number of due tasks, which is half of all.
    const ENOUGH: usize = 2_500;
    let redis = Redis::start();
    let schedule = Arc::new(complete_schedule(&redis.url()).await);
    let names = ["a", "b", "c"];

    let adding: Vec<_> = (0..ADDERS)
        .map(|adder| {
            let schedule = schedule.clone();
            tokio::spawn(async move {
                for number in (adder * EACH..(adder + 1) * EACH).collect::<Vec<_>>().chunks(37) {
                    let named = |number: &u64| task(names[*number as usize % 3], *number, number % 1_000);
                    add(&schedule, number.iter().map(named)).await;
                }
            })
        })
        .collect();
    let count = Arc::new(AtomicUsize::new(0));
    let taking: Vec<_> = (0..TAKERS)
        .map(|taker| {
            let (url, count) = (redis.url(), count.clone());
            tokio::spawn(async move {
                let schedule = connected_schedule(&url).await;
                let mut mine = Vec::new();
                while count.load(Ordering::SeqCst) < ENOUGH {
                    let turns = names.map(|name| turn(name, 1 + taker * 20));
                    // Only the first half of the tasks is due.
                    for taken in schedule.take(&turns, at(499)).await {
                        let Ok(Take::Taken(taken)) = taken else { panic!("{taken:?}") };
                        count.fetch_add(taken.tasks.len(), Ordering::SeqCst);
                        mine.extend(taken.tasks);
                    }
                    tokio::task::yield_now().await;
                }
                mine
            })
        })
        .collect();
    for adder in adding {
        adder.await.unwrap();
    }
    let mut taken = Vec::new();
    for taker in taking {
        taken.extend(taker.await.unwrap());
    }

    assert!(taken.iter().all(|task| task.due < at(500)));
    let unique = ids(&taken);
    assert_eq!(unique.len(), taken.len(), "something was taken twice");
    let mut left = Vec::new();
    for name in names {
        loop {
            let more = take(&schedule, name, 1_000, 10_000).await.tasks;
            if more.is_empty() {
                break;
            }
            left.extend(more);
        }
    }
    let all: BTreeSet<TaskId> = (0..ADDERS * EACH).map(|number| task("a", number, 0).id).collect();
    assert_eq!(left.len() + taken.len(), all.len());
    assert_eq!(unique.union(&ids(&left)).copied().collect::<BTreeSet<_>>(), all);
}

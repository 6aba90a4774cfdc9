//! What must be true of every run, and what a run is there to show.

use std::collections::BTreeMap;

use redrive_core::backoff::Backoff;
use redrive_core::guards::{breaker, budget, concurrency};
use redrive_core::jitter::Jitter;
use redrive_core::policy::{Context, Policy, Spec};
use redrive_core::task::Reason;

use super::*;
use crate::contender::{Guards, fixed_concurrency};
use crate::latency::Latencies;
use crate::world::{Outage, OutageKind};

const SECOND: Duration = Duration::from_secs(1);

fn guards(concurrency: concurrency::Settings) -> Guards {
    Guards {
        budget: Some(budget::Settings::default()),
        breaker: Some(breaker::Settings::default()),
        concurrency: Some(concurrency),
    }
}

fn only_budget(drain: budget::Drain) -> Guards {
    Guards { budget: Some(budget::Settings { drain, ..budget::Settings::default() }), ..Guards::default() }
}

fn fixed() -> Policy {
    Policy { backoff: Backoff::Fixed { delay: SECOND }, jitter: Jitter::None, ..Policy::default() }
}

fn preset(context: Context) -> Policy {
    Policy::resolve(&Spec { context: Some(context), ..Spec::default() }).unwrap()
}

fn guarded(name: &str, policy: Policy, guards: Guards) -> Contender {
    Contender { guards, ..Contender::new(name, policy) }
}

/// Every kind of policy, with and without each guard.
fn contenders() -> Vec<Contender> {
    let only_breaker = Guards { breaker: Some(breaker::Settings::default()), ..Guards::default() };
    let decorrelated = Policy { jitter: Jitter::Decorrelated, ..Policy::default() };
    let mut contenders = Vec::new();
    for policy in [fixed(), Policy::default(), decorrelated, preset(Context::Sync), preset(Context::Webhook)] {
        for guards in [
            Guards::default(),
            only_budget(budget::Drain::Earned),
            only_budget(budget::Drain::Strict),
            only_breaker,
            Guards { concurrency: Some(fixed_concurrency(7)), ..Guards::default() },
            guards(fixed_concurrency(20)),
            guards(concurrency::Settings::default()),
        ] {
            contenders.push(guarded(&format!("{:?} {guards:?}", policy.jitter), policy.clone(), guards));
        }
    }
    contenders
}

/// Every kind of outage, all at once and over time, with room and without.
fn worlds() -> Vec<World> {
    let mut worlds = Vec::new();
    for manner in OutageKind::ALL {
        for (over, capacity, queue, retry_after) in
            [(60, 100, 50, None), (0, 100, 50, Some(3)), (20, 20, 2_000, None), (30, 1_000, 0, Some(1))]
        {
            let outage = |from: u32, to: u32| Outage { from: from * SECOND, to: to * SECOND, manner };
            worlds.push(World {
                clients: 1_500,
                over: over * SECOND,
                capacity,
                queue,
                retry_after: retry_after.map(|seconds| seconds * SECOND),
                outages: vec![outage(5, 15), outage(30, 33)],
                ..World::default()
            });
        }
    }
    worlds
}

/// Plays every contender in every world, and shows each to `check`.
fn played_everywhere(mut check: impl FnMut(&World, &Contender, Play<'_>)) {
    for (seed, world) in (0..).zip(worlds()) {
        for contender in contenders() {
            let mut play = Play::new(&world, &contender, Chance::new(seed));
            play.play_out(|_, _| {});
            check(&world, &contender, play);
        }
    }
}

/// Shows the figures of each to `check` with its sends: when, whose, which attempt.
fn everywhere(mut check: impl FnMut(&World, &Contender, &[(u32, u32, u8)], &Totals, &Completion)) {
    played_everywhere(|world, contender, mut play| {
        let sends = std::mem::take(&mut play.sends);
        let (tally, seen) = play.finish();
        let (_, totals, completion) = tally.finish(seen);
        check(world, contender, &sends, &totals, &completion);
    });
}

#[test]
fn every_permit_comes_back() {
    played_everywhere(|world, contender, mut play| {
        assert!(play.has_all_permits_back(), "{world:?} {}", contender.name);
    });
}

#[test]
fn every_request_ends_exactly_once_and_every_call_is_accounted_for() {
    let mut dead_of = BTreeMap::new();
    everywhere(|world, contender, sends, totals, completion| {
        let about = format!("{world:?} {}", contender.name);
        let ended = totals.succeeded + totals.dead() + totals.suppressed + totals.turned_away;
        assert_eq!(ended, u64::from(world.clients), "{about}");
        assert_eq!(totals.calls, sends.len() as u64, "{about}");
        assert_eq!(totals.calls, totals.first_attempts + totals.retries, "{about}");
        assert!(totals.first_attempts <= totals.requests, "{about}");
        assert!(totals.amplification() <= f64::from(contender.policy.max_attempts), "{about}");
        assert_eq!(totals.served - totals.wasted, totals.succeeded, "{about}");
        assert!(totals.calls_while_down + totals.rejected + totals.served <= totals.calls, "{about}");
        assert_eq!(completion.percentiles.is_empty(), totals.succeeded == 0, "{about}");
        for (reason, count) in &totals.dead_letters {
            *dead_of.entry(reason.as_str()).or_insert(0) += count;
        }
    });
    assert!(dead_of[Reason::Attempts.as_str()] > 0 && dead_of[Reason::Deadline.as_str()] > 0, "{dead_of:?}");
}

#[test]
fn attempts_of_a_request_are_numbered_in_order_of_time_up_to_the_limit_and_the_deadline() {
    everywhere(|world, contender, sends, _, _| {
        let about = format!("{world:?} {}", contender.name);
        let mut last: BTreeMap<u32, (u32, u8)> = BTreeMap::new();
        let budget = contender.policy.total_budget;
        for (at, client, attempt) in sends {
            let (before, previous) = last.insert(*client, (*at, *attempt)).unwrap_or_default();
            assert_eq!(*attempt, previous + 1, "{about}");
            assert!(u32::from(*attempt) <= contender.policy.max_attempts, "{about}");
            assert!(*at >= before && Duration::from_millis(u64::from(*at)) < world.over + budget, "{about}");
        }
    });
}

#[test]
fn nothing_is_sent_before_its_wait_is_over() {
    let mut waits = 0;
    everywhere(|world, contender, sends, _, _| {
        let Backoff::Fixed { delay } = contender.policy.backoff else { return };
        let asked = if world.outages[0].manner == OutageKind::Fail { world.retry_after } else { None };
        let mut last: BTreeMap<u32, u32> = BTreeMap::new();
        for (at, client, _) in sends {
            if let Some(before) = last.insert(*client, *at) {
                let waited = Duration::from_millis(u64::from(at - before));
                assert!(waited >= delay.max(asked.unwrap_or_default()), "{waited:?} {world:?} {}", contender.name);
                waits += 1;
            }
        }
    });
    assert!(waits > 10_000, "{waits}");
}

/// Without a breaker, whose probes are never held. With refunds, a retry that succeeded may count like a first attempt.
#[test]
fn no_retry_is_sent_that_the_budget_does_not_allow() {
    let mut retries = BTreeMap::new();
    played_everywhere(|world, contender, play| {
        let Guards { budget: Some(budget), breaker: None, .. } = contender.guards else { return };
        let is_refunded = |client| budget.drain == budget::Drain::Earned && play.successes.contains(&client);
        let last: BTreeMap<u32, u8> = play.sends.iter().map(|(_, client, attempt)| (*client, *attempt)).collect();
        // The sends of the 30 s up to each retry.
        let mut window = std::collections::VecDeque::new();
        let mut counts = [0_u32; 2];
        for (at, client, attempt) in &play.sends {
            while window.front().is_some_and(|(before, _)| before + 30_000 <= *at) {
                let (_, which) = window.pop_front().unwrap();
                counts[which] -= 1;
            }
            let is_charged = *attempt > 1 && !(last[client] == *attempt && is_refunded(*client));
            let which = usize::from(is_charged);
            window.push_back((*at, which));
            counts[which] += 1;
            *retries.entry(budget.drain.as_str()).or_insert(0) += u32::from(*attempt > 1);
            let [earning, charged] = counts;
            assert!(
                !is_charged || 100 * charged <= 1_000 + 20 * earning,
                "{at}: {counts:?} {world:?} {}",
                contender.name
            );
        }
    });
    assert!(retries["earned"] > 1_000 && retries["strict"] > 1_000, "{retries:?}");
}

#[test]
fn no_more_attempts_are_under_way_than_the_limit_allows() {
    for world in worlds() {
        let limited = guarded(
            "limited",
            Policy::default(),
            Guards { concurrency: Some(fixed_concurrency(7)), ..Guards::default() },
        );
        let story = &run(world, vec![limited], 1, None, |_| {}).unwrap().stories[0];
        let most = story.buckets.iter().chain([&story.later]).map(|bucket| bucket.in_flight).max();
        assert_eq!(most, Some(7));
    }
}

#[test]
fn an_open_breaker_lets_only_its_probes_through() {
    let world = World {
        clients: 5_000,
        over: 60 * SECOND,
        capacity: 10_000,
        outages: vec![Outage { from: 10 * SECOND, to: 40 * SECOND, manner: OutageKind::Fail }],
        ..World::default()
    };
    let breaker = Guards { breaker: Some(breaker::Settings::default()), ..Guards::default() };
    let limited = Guards { concurrency: Some(fixed_concurrency(50)), ..breaker };
    let contenders = vec![
        Contender::new("without", Policy::default()),
        guarded("with", Policy::default(), limited),
        guarded("unlimited", Policy::default(), breaker),
    ];
    let comparison = run(world, contenders, 5, None, |_| {}).unwrap();
    let [without, with, unlimited] = [0, 1, 2].map(|at| &comparison.stories[at].totals);
    // Ten failures open it, some of them calls that were under way when the outage began; then at most three probes
    // each time, and in 30 s it cannot open more than three times.
    assert!((1..=19).contains(&with.calls_while_down), "{with:?}");
    assert!(without.calls_while_down > 5_000, "{without:?}");
    assert_eq!(with.dead(), 0, "waiting for a guard consumes no attempt");
    assert_eq!(unlimited.dead(), 0, "when it closes, attempts at once grow from three: {unlimited:?}");
}

#[test]
fn the_same_seed_tells_the_same_story_and_another_seed_another() {
    let told = |seed| run(World::default(), contenders().split_off(28), seed, None, |_| {}).unwrap();
    let story = told(7);
    assert_eq!(story, told(7));
    assert_ne!(story.stories[0].totals, told(8).stories[0].totals);
}

/// What the documentation shows; another machine, another compiler or a change of the model must not pass unnoticed.
#[test]
fn the_default_world_tells_the_story_that_is_documented() {
    let contenders = vec![
        Contender::new("fixed", fixed()),
        Contender::new("full", Policy::default()),
        guarded("guarded", Policy::default(), guards(concurrency::Settings::default())),
    ];
    let comparison = run(World::default(), contenders, 1, None, |_| {}).unwrap();
    let told = comparison.stories.iter().map(|story| {
        let totals = &story.totals;
        (totals.calls, totals.dead(), totals.peak_after_outage.unwrap().calls, totals.calls_while_down)
    });
    let expected = [(60_000, 9_499, 10_000, 50_000), (55_697, 1_573, 2_422, 40_718), (10_029, 0, 516, 29)];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

#[test]
fn a_contender_fares_the_same_alone_and_in_company() {
    let all = run(World::default(), contenders().split_off(28), 3, None, |_| {}).unwrap();
    for story in &all.stories {
        let alone = run(World::default(), vec![story.contender.clone()], 3, None, |_| {}).unwrap();
        assert_eq!((&alone.stories[0].totals, &alone.stories[0].completion), (&story.totals, &story.completion));
    }
}

#[test]
fn buckets_add_up_to_the_totals_and_are_equally_many_for_all() {
    for world in worlds() {
        let comparison = run(world, contenders().split_off(27), 3, None, |_| {}).unwrap();
        let count = comparison.stories[0].buckets.len();
        assert!(count as u64 <= Story::MAX_BUCKETS);
        assert!(comparison.span() >= comparison.world.outages[1].to);
        for story in &comparison.stories {
            assert_eq!(story.buckets.len(), count);
            let sum = |of: fn(&crate::Bucket) -> u32| {
                story.buckets.iter().chain([&story.later]).map(|bucket| u64::from(of(bucket))).sum::<u64>()
            };
            assert_eq!(sum(|bucket| bucket.sends), story.totals.calls);
            assert_eq!(sum(|bucket| bucket.retries), story.totals.retries);
            assert_eq!(sum(|bucket| bucket.successes), story.totals.succeeded);
            assert_eq!(sum(|bucket| bucket.failures), story.totals.calls - story.totals.succeeded);
            assert_eq!(story.goes_on(), u64::from(story.later.sends) * 100 > story.totals.calls, "{:?}", story.later);
        }
    }
}

#[test]
fn buckets_end_with_a_whole_second() {
    let world = |over: u32| World { clients: 500, over: over * SECOND / 10, outages: Vec::new(), ..World::default() };
    for (over, until, expected) in [(600, None, 60 * SECOND), (612, None, 61 * SECOND), (50, Some(2_500), 3 * SECOND)] {
        let contender = vec![Contender::new("full", Policy::default())];
        let until = until.map(Duration::from_millis);
        assert_eq!(run(world(over), contender, 1, until, |_| {}).unwrap().span(), expected, "{over}");
    }
}

#[test]
fn who_takes_far_longer_than_all_others_does_not_squeeze_them_into_a_corner() {
    // When each is done and the last outage ends, until when there are buckets; in seconds.
    for (done, outages_end, expected) in [
        (vec![6, 32, 28, 50], 5, 50),
        (vec![28, 50, 30_600, 312], 5, 312),
        (vec![9_031, 301, 10], 5, 301),
        (vec![9_030, 301, 10], 5, 9_030),
        (vec![90_000, 400, 11, 12], 0, 12),
        (vec![9_031, 10, 301], 0, 301),
        (vec![1, 28], 0, 28),
        (vec![1, 4], 600, 600),
        (vec![30_600], 5, 30_600),
        (vec![], 0, 1),
    ] {
        assert_eq!(worth_showing(done.clone(), outages_end), expected, "{done:?}");
    }
    let only = only_budget(budget::Drain::Strict);
    let contenders = || vec![Contender::new("full", Policy::default()), guarded("budget", Policy::default(), only)];
    let comparison = run(World::default(), contenders(), 1, None, |_| {}).unwrap();
    assert!(comparison.span() < 60 * SECOND && comparison.stories[1].totals.ended_at > 8 * 3_600 * SECOND);
    assert!(!comparison.stories[0].goes_on() && comparison.stories[1].goes_on());
    for (asked, bucket) in [(20 * SECOND, SECOND / 10), (3_600 * SECOND, 20 * SECOND)] {
        let comparison = run(World::default(), contenders(), 1, Some(asked), |_| {}).unwrap();
        assert_eq!((comparison.span(), comparison.bucket), (asked, bucket));
    }
}

/// A herd: everybody at once, while the dependency is down.
#[test]
fn without_jitter_the_herd_comes_back_in_lockstep_and_with_it_spread_out() {
    let contenders = vec![
        Contender::new("fixed", fixed()),
        Contender::new("full", Policy::default()),
        guarded("guarded", Policy::default(), guards(fixed_concurrency(20))),
    ];
    let comparison = run(World::default(), contenders, 1, None, |_| {}).unwrap();
    let peaks: Vec<_> = comparison.stories.iter().map(|story| story.totals.peak_after_outage.unwrap().calls).collect();
    let dead: Vec<_> = comparison.stories.iter().map(|story| story.totals.dead()).collect();
    assert_eq!(peaks[0], 10_000, "all of them in one second");
    assert!(peaks[0] >= 4 * peaks[1] && peaks[1] >= 4 * peaks[2], "{peaks:?}");
    assert!(dead[0] >= 5 * dead[1] && dead[1] > 0 && dead[2] == 0, "{dead:?}");
}

/// Steady traffic well below capacity, a short outage, and callers that give up sooner than the queue is long.
#[test]
fn naive_retries_keep_a_dependency_down_and_guards_let_it_recover() {
    let world = World {
        clients: 24_000,
        over: 300 * SECOND,
        capacity: 100,
        queue: 1_000,
        latency: Latencies::Constant(Duration::from_millis(20)),
        outages: vec![Outage { from: 30 * SECOND, to: 45 * SECOND, manner: OutageKind::Refuse }],
        retry_after: None,
    };
    let impatient = |policy: Policy| Policy { attempt_timeout: 2 * SECOND, max_attempts: 10, ..policy };
    let contenders = vec![
        Contender::new("naive", impatient(fixed())),
        guarded("guarded", impatient(Policy::default()), guards(fixed_concurrency(50))),
    ];
    let comparison = run(world, contenders, 1, None, |_| {}).unwrap();
    let [naive, guarded] = [0, 1].map(|at| &comparison.stories[at]);
    // In the last minute of traffic, long after the outage.
    let successes = |story: &Story| {
        let from = usize::try_from(240_000 / comparison.bucket.as_millis()).unwrap();
        let to = usize::try_from(300_000 / comparison.bucket.as_millis()).unwrap();
        story.buckets[from..to].iter().map(|bucket| bucket.successes).sum::<u32>()
    };
    assert!(successes(naive) < 500, "{} of some 4,800 succeed", successes(naive));
    assert!(naive.totals.wasted > 4 * naive.totals.succeeded / 2, "{:?}", naive.totals);
    assert!(successes(guarded) > 4_500, "{}", successes(guarded));
    assert_eq!(guarded.totals.dead(), 0, "{:?}", guarded.totals);
}

/// 10,000 retries wait when the outage ends, and no new requests come.
#[test]
fn a_backlog_drains_hundreds_of_times_faster_if_retries_that_succeed_are_refunded() {
    let only_breaker = Guards { breaker: Some(breaker::Settings::default()), ..Guards::default() };
    // Without a breaker, five windows pass before the lane is known to be healthy.
    for (others, ratio) in [(Guards::default(), 150), (only_breaker, 250)] {
        let contenders = budget::Drain::ALL.map(|drain| {
            guarded(drain.as_str(), Policy::default(), Guards { budget: only_budget(drain).budget, ..others })
        });
        let comparison = run(World::default(), contenders.to_vec(), 1, None, |_| {}).unwrap();
        let [earned, strict] = [0, 1].map(|at| &comparison.stories[at].totals);
        for totals in [earned, strict] {
            assert_eq!((totals.backlog, totals.succeeded, totals.dead()), (Some(10_000), 10_000, 0), "{totals:?}");
        }
        assert!(strict.drained.unwrap() > ratio * earned.drained.unwrap(), "{earned:?} {strict:?}");
        assert!(earned.rejected < 500, "{earned:?}");
    }
}

#[test]
fn a_spent_budget_opens_a_breaker_that_no_failures_would_open() {
    let world = World {
        clients: 12_000,
        over: 120 * SECOND,
        outages: vec![Outage { from: 10 * SECOND, to: 100 * SECOND, manner: OutageKind::Fail }],
        ..World::default()
    };
    let never = breaker::Settings { failures_in_a_row: u32::MAX, failure_percent: 101, ..breaker::Settings::default() };
    let breaker = Guards { breaker: Some(never), ..Guards::default() };
    let budget = only_budget(budget::Drain::Earned);
    let contenders = vec![
        guarded("breaker", Policy::default(), breaker),
        guarded("budget", Policy::default(), budget),
        guarded("both", Policy::default(), Guards { budget: budget.budget, ..breaker }),
    ];
    let comparison = run(world, contenders, 1, None, |_| {}).unwrap();
    let [breaker, budget, both] = [0, 1, 2].map(|at| comparison.stories[at].totals.calls_while_down);
    // Without the budget the breaker stays closed. The budget bounds the retries of 90 s, about 9,000 first attempts
    // and a fifth. With both, the breaker opens when retries have waited for 10 s.
    assert!(breaker > 30_000 && (10_000..12_000).contains(&budget), "{breaker} {budget}");
    assert!((1_000..2_500).contains(&both), "{both}");
}

#[test]
fn an_interactive_call_gets_its_error_at_once_when_the_budget_is_spent() {
    let world = World { clients: 2_000, over: 20 * SECOND, ..World::default() };
    let budget = only_budget(budget::Drain::Earned);
    let contenders =
        vec![guarded("sync", preset(Context::Sync), budget), guarded("event", preset(Context::Event), budget)];
    let comparison = run(world, contenders, 1, None, |_| {}).unwrap();
    let [sync, event] = [0, 1].map(|at| &comparison.stories[at].totals);
    assert!(sync.suppressed > 100 && sync.held == 0, "{sync:?}");
    assert!(event.suppressed == 0 && event.held > 100 && event.succeeded == 2_000, "{event:?}");
}

#[test]
fn a_retry_after_is_kept_to() {
    let world = |retry_after| World {
        clients: 1_000,
        capacity: 1_000,
        outages: vec![Outage { from: Duration::ZERO, to: 8 * SECOND, manner: OutageKind::Fail }],
        retry_after,
        ..World::default()
    };
    let calls = |retry_after| {
        let comparison = run(world(retry_after), vec![Contender::new("full", Policy::default())], 1, None, |_| {});
        comparison.unwrap().stories[0].totals.calls_while_down
    };
    assert_eq!(calls(Some(10 * SECOND)), 1_000, "whoever was told to wait for 10 s does not come back in 8");
    assert!(calls(None) > 3_000);
}

#[test]
fn progress_is_reported_for_each_contender_to_its_end() {
    let mut heard = Vec::new();
    let contenders = vec![Contender::new("a", Policy::default()), Contender::new("b", fixed())];
    run(World::default(), contenders, 1, None, |progress| heard.push(progress)).unwrap();
    for contender in [0, 1] {
        let last = heard.iter().rfind(|progress| progress.contender == contender).unwrap();
        assert_eq!((last.contenders, last.ended, last.requests), (2, 10_000, 10_000));
        assert_eq!((last.part(), last.most_calls), ((contender + 1) as f64 / 2.0, 60_000));
    }
    assert!(heard.len() < 20, "{}", heard.len());
    assert!(heard.windows(2).all(|pair| pair[0].part() <= pair[1].part()), "{heard:?}");
    assert!(
        heard.iter().any(|progress| progress.ended < 100 && progress.part() > 0.7),
        "a herd's calls count: {heard:?}"
    );
    assert!(heard.windows(2).all(|pair| pair[0].contender < pair[1].contender || pair[0].ended <= pair[1].ended));
}

#[test]
fn there_must_be_a_contender_and_not_too_many() {
    for count in [0, Contender::MOST + 1] {
        let contenders = vec![Contender::new("a", Policy::default()); count];
        let error = run(World::default(), contenders, 1, None, |_| {}).unwrap_err().to_string();
        assert_eq!(error, format!("the number of contenders must be 1 to 8, got {count}"));
    }
}

use super::*;

/// Exactly in the middle: no pause is drawn longer or shorter.
const MIDDLE: f64 = 0.5;
const SECOND: u64 = 1_000;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// A ticket for a call at `now`, which must be let through.
#[track_caller]
fn ticket(breaker: &mut Breaker, now: u64) -> Ticket {
    match breaker.admit(at(now)) {
        Admission::Pass(ticket) | Admission::Probe(ticket) => ticket,
        Admission::Wait { until } => panic!("at {now} it waits until {until:?}"),
    }
}

/// A call that took no time.
fn seen(health: Health, retry_after: Option<Duration>) -> Call {
    Call { health, took: Duration::ZERO, retry_after }
}

/// One call that begins and ends at `now`.
#[track_caller]
fn call(breaker: &mut Breaker, health: Health, now: u64) -> Option<Change> {
    let ticket = ticket(breaker, now);
    breaker.record(ticket, seen(health, None), at(now), MIDDLE)
}

/// A breaker that opened at `now`.
fn opened(now: u64) -> Breaker {
    let mut breaker = Breaker::default();
    (0..10).for_each(|_| assert!(breaker.state(at(now)) == State::Closed && call_fails(&mut breaker, now)));
    breaker
}

fn call_fails(breaker: &mut Breaker, now: u64) -> bool {
    call(breaker, Health::Failing, now);
    true
}

/// How long it is open when every probe fails, from the `n`th time on.
fn pause_of(time: u32, unit: f64) -> Duration {
    Settings::default().pause(time, unit)
}

#[test]
fn the_defaults_are_the_documented_ones() {
    let defaults = Settings::default();
    assert_eq!((defaults.failures_in_a_row, defaults.failure_percent, defaults.least_calls), (10, 50, 20));
    assert_eq!((defaults.window.as_secs(), defaults.open.as_secs(), defaults.longest_open.as_secs()), (30, 15, 60));
    assert_eq!((defaults.probes, window::buckets_of(defaults.window, defaults.bucket)), (3, 30));
}

#[test]
fn ten_hard_failures_in_a_row_open_it() {
    let mut breaker = Breaker::default();
    for failure in 1..=9 {
        assert_eq!(call(&mut breaker, Health::Failing, 0), None, "failure {failure}");
    }
    assert_eq!(
        call(&mut breaker, Health::Failing, 0),
        Some(Change::Opened { until: at(15 * SECOND), why: OpenedBy::FailuresInARow })
    );
    assert_eq!(breaker.admit(at(0)), Admission::Wait { until: at(15 * SECOND) });
}

#[test]
fn a_row_is_broken_by_a_success_and_not_by_a_call_that_was_asked_to_slow_down() {
    for (between, opens) in [(Health::Well, false), (Health::Strained, true)] {
        let mut breaker = Breaker::default();
        (0..5).for_each(|_| assert_eq!(call(&mut breaker, Health::Failing, 0), None));
        assert_eq!(call(&mut breaker, between, 0), None);
        (0..4).for_each(|_| assert_eq!(call(&mut breaker, Health::Failing, 0), None));
        assert_eq!(call(&mut breaker, Health::Failing, 0).is_some(), opens, "{between:?}");
    }
    let mut breaker = Breaker::default();
    (0..19).for_each(|_| assert_eq!(call(&mut breaker, Health::Strained, 0), None, "throttling is no hard failure"));
    assert!(call(&mut breaker, Health::Strained, 0).is_some(), "but half of twenty calls is half of twenty calls");
}

#[test]
fn half_of_twenty_calls_within_the_window_open_it() {
    // calls well, then (failing, well) turns; whether it opens at the last call
    let alternating = |calls: usize| -> Vec<Health> {
        (0..calls).map(|n| if n % 2 == 0 { Health::Failing } else { Health::Well }).collect()
    };
    let nine_of_twenty = [vec![Health::Well; 2], alternating(18)].concat();
    let then_more = [nine_of_twenty.clone(), vec![Health::Failing]].concat();
    let cases = [
        ("19 calls are too few", alternating(19), false),
        ("10 of 20", alternating(20), true),
        ("9 of 20", nine_of_twenty, false),
        ("10 of 21", then_more.clone(), false),
        ("11 of 22", [then_more, vec![Health::Failing]].concat(), true),
    ];
    for (name, calls, opens) in cases {
        let mut breaker = Breaker::default();
        let changes: Vec<_> = calls.iter().map(|health| call(&mut breaker, *health, 0)).collect();
        let (last, before) = changes.split_last().unwrap();
        assert!(before.iter().all(Option::is_none), "{name}");
        assert_eq!(last.is_some(), opens, "{name}");
    }
}

#[test]
fn calls_beyond_the_window_do_not_count() {
    let mut breaker = Breaker::default();
    (0..9).for_each(|_| assert_eq!(call(&mut breaker, Health::Failing, 0), None));
    call(&mut breaker, Health::Well, 0);
    for _ in 0..9 {
        // 30 s later the first nine are forgotten, else the tenth call here were the twentieth, with 18 failures.
        assert_eq!(call(&mut breaker, Health::Failing, 30 * SECOND), None);
    }
    assert_eq!(call(&mut breaker, Health::Well, 30 * SECOND), None);
    assert_eq!(breaker.state(at(30 * SECOND)), State::Closed);
}

#[test]
fn it_is_open_twice_as_long_each_time_up_to_a_minute_give_or_take_a_fifth() {
    let times = [(1, 15), (2, 30), (3, 60), (4, 60), (7, 60), (u32::MAX, 60)];
    for (time, seconds) in times {
        assert_eq!(pause_of(time, MIDDLE), Duration::from_secs(seconds), "time {time}");
        assert_eq!(pause_of(time, 0.0), Duration::from_secs(seconds) * 8 / 10, "time {time}");
        assert_eq!(pause_of(time, 0.75), Duration::from_secs(seconds) * 11 / 10, "time {time}");
    }
    let mut breaker = opened(0);
    let mut now = 15 * SECOND;
    for (_, seconds) in &times[1..] {
        let change = call(&mut breaker, Health::Failing, now);
        now += seconds * SECOND;
        assert_eq!(change, Some(Change::Opened { until: at(now), why: OpenedBy::FailedProbe }));
        assert_eq!(breaker.admit(at(now - 1)), Admission::Wait { until: at(now) });
    }
}

#[test]
fn a_longer_retry_after_extends_the_pause_and_a_shorter_one_does_not() {
    // asked for in s, open for in s
    for (asked, expected) in [(0, 15), (14, 15), (16, 16), (600, 600), (3_600, 3_600), (u64::MAX, 3_600)] {
        let asked = Some(Duration::from_secs(asked));
        let mut opening = Breaker::default();
        let mut change = None;
        for _ in 0..10 {
            let ticket = ticket(&mut opening, 0);
            change = opening.record(ticket, seen(Health::Failing, asked), at(0), MIDDLE);
        }
        assert_eq!(
            change,
            Some(Change::Opened { until: at(expected * SECOND), why: OpenedBy::FailuresInARow }),
            "{asked:?}"
        );

        let mut late = Breaker::default();
        let before = ticket(&mut late, 0);
        (0..10).for_each(|_| assert!(call_fails(&mut late, 0)));
        assert_eq!(late.record(before, seen(Health::Failing, asked), at(0), MIDDLE), None);
        assert_eq!(late.admit(at(0)), Admission::Wait { until: at(expected * SECOND) }, "late, {asked:?}");
    }
}

#[test]
fn three_probes_go_when_the_pause_is_over_and_the_others_wait() {
    let mut breaker = opened(0);
    assert_eq!(breaker.state(at(14_999)), State::Open { until: at(15_000), why: OpenedBy::FailuresInARow });
    assert_eq!(breaker.state(at(15_000)), State::Probing { why: OpenedBy::FailuresInARow });
    for probe in 1..=3 {
        assert!(matches!(breaker.admit(at(15_000)), Admission::Probe(_)), "probe {probe}");
    }
    assert_eq!(breaker.admit(at(15_000)), Admission::Wait { until: at(15_000 + 16 * 60 * SECOND) });
}

#[test]
fn it_closes_when_all_probes_succeeded_and_begins_with_a_clean_slate() {
    let mut breaker = opened(0);
    let probes: Vec<_> = (0..3).map(|_| ticket(&mut breaker, 15_000)).collect();
    let changes: Vec<_> =
        probes.into_iter().map(|probe| breaker.record(probe, seen(Health::Well, None), at(15_050), MIDDLE)).collect();
    assert_eq!(changes, [None, None, Some(Change::Closed)]);
    // With the ten failures of 15 s ago these would be twenty calls of which fifteen failed.
    for health in [Health::Failing, Health::Well].into_iter().cycle().take(10) {
        assert_eq!(call(&mut breaker, health, 15_055), None);
    }
    for failure in 1..=9 {
        assert_eq!(call(&mut breaker, Health::Failing, 15_060), None, "failure {failure}");
    }
    let opened = call(&mut breaker, Health::Failing, 15_060);
    assert_eq!(
        opened,
        Some(Change::Opened { until: at(30_060), why: OpenedBy::FailuresInARow }),
        "for as long as the first time"
    );
}

#[test]
fn one_probe_that_fails_opens_it_again_and_the_others_do_not_matter_any_more() {
    for failing in [Health::Failing, Health::Strained] {
        let mut breaker = opened(0);
        let [first, second, third] = [(); 3].map(|()| ticket(&mut breaker, 15_000));
        assert_eq!(breaker.record(first, seen(Health::Well, None), at(16_000), MIDDLE), None);
        let again = Some(Change::Opened { until: at(46_000), why: OpenedBy::FailedProbe });
        assert_eq!(breaker.record(second, seen(failing, None), at(16_000), MIDDLE), again);
        assert_eq!(breaker.record(third, seen(Health::Well, None), at(17_000), MIDDLE), None);
        assert_eq!(
            breaker.state(at(17_000)),
            State::Open { until: at(46_000), why: OpenedBy::FailedProbe },
            "{failing:?}"
        );
    }
}

#[test]
fn calls_that_began_before_it_opened_do_not_confuse_it() {
    let mut breaker = Breaker::default();
    let mut late: Vec<_> = (0..100).map(|_| ticket(&mut breaker, 0)).collect();
    let mut record =
        |breaker: &mut Breaker, health, now| breaker.record(late.pop().unwrap(), seen(health, None), at(now), MIDDLE);
    (0..9).for_each(|_| assert_eq!(record(&mut breaker, Health::Failing, 0), None));
    assert_eq!(
        record(&mut breaker, Health::Failing, 0),
        Some(Change::Opened { until: at(15_000), why: OpenedBy::FailuresInARow })
    );
    // While it is open: neither longer nor closed.
    (0..30).for_each(|_| assert_eq!(record(&mut breaker, Health::Failing, 1_000), None));
    (0..30).for_each(|_| assert_eq!(record(&mut breaker, Health::Well, 1_000), None));
    assert_eq!(breaker.state(at(1_000)), State::Open { until: at(15_000), why: OpenedBy::FailuresInARow });
    // While it probes: no probe is taken for another.
    let probes: Vec<_> = (0..3).map(|_| ticket(&mut breaker, 15_000)).collect();
    assert_eq!(record(&mut breaker, Health::Failing, 15_001), None);
    (0..5).for_each(|_| assert_eq!(record(&mut breaker, Health::Well, 15_001), None));
    assert_eq!(breaker.state(at(15_001)), State::Probing { why: OpenedBy::FailuresInARow });
    let closed =
        probes.into_iter().filter_map(|probe| breaker.record(probe, seen(Health::Well, None), at(15_002), MIDDLE));
    assert_eq!(closed.collect::<Vec<_>>(), [Change::Closed]);
    // When it is closed again: they are of another time.
    (0..20).for_each(|_| assert_eq!(record(&mut breaker, Health::Failing, 15_003), None));
    assert_eq!(breaker.state(at(15_003)), State::Closed);
}

#[test]
fn a_probe_that_is_given_back_leaves_its_place() {
    let mut breaker = opened(0);
    let probes: Vec<_> = (0..3).map(|_| ticket(&mut breaker, 15_000)).collect();
    breaker.give_back(probes[0]);
    assert!(matches!(breaker.admit(at(15_000)), Admission::Probe(_)));
    assert!(matches!(breaker.admit(at(15_000)), Admission::Wait { .. }));
    // A ticket of an earlier phase leaves nothing.
    let mut breaker = Breaker::default();
    let before = ticket(&mut breaker, 0);
    (0..10).for_each(|_| assert!(call_fails(&mut breaker, 0)));
    (0..3).for_each(|_| assert!(matches!(breaker.admit(at(15_000)), Admission::Probe(_))));
    breaker.give_back(before);
    assert!(matches!(breaker.admit(at(15_000)), Admission::Wait { .. }));
}

#[test]
fn probes_of_which_nothing_is_heard_make_room_and_still_count_when_they_come_back() {
    for (health, closes) in [(Health::Well, true), (Health::Failing, false)] {
        let mut breaker = opened(0);
        breaker.settings.probe_patience = Duration::from_secs(60);
        let lost: Vec<_> = (0..3).map(|_| ticket(&mut breaker, 15_000)).collect();
        assert!(matches!(breaker.admit(at(74_999)), Admission::Wait { .. }));
        (0..3).for_each(|_| assert!(matches!(breaker.admit(at(75_000)), Admission::Probe(_))));
        assert_eq!(breaker.admit(at(75_000)), Admission::Wait { until: at(135_000) });
        let changes =
            lost.into_iter().filter_map(|probe| breaker.record(probe, seen(health, None), at(76_000), MIDDLE));
        let expected =
            if closes { Change::Closed } else { Change::Opened { until: at(106_000), why: OpenedBy::FailedProbe } };
        assert_eq!(changes.collect::<Vec<_>>(), [expected]);
    }
}

#[test]
fn a_clock_that_goes_back_makes_no_attempt_wait_longer_than_what_was_drawn() {
    let hour = 3_600 * SECOND;
    let mut breaker = opened(hour);
    assert_eq!(breaker.admit(at(5 * SECOND)), Admission::Wait { until: at(20 * SECOND) });
    assert!(matches!(breaker.admit(at(20 * SECOND)), Admission::Probe(_)));

    let mut probing = opened(hour);
    (0..3).for_each(|_| assert!(matches!(probing.admit(at(hour + 15 * SECOND)), Admission::Probe(_))));
    assert_eq!(probing.admit(at(5 * SECOND)), Admission::Wait { until: at((5 + 16 * 60) * SECOND) });

    let mut closed = Breaker::default();
    (0..9).for_each(|_| assert_eq!(call(&mut closed, Health::Failing, hour), None));
    assert!(call(&mut closed, Health::Failing, 5 * SECOND).is_some(), "a row is a row");
}

#[test]
fn no_setting_stops_it_from_ever_closing_again_or_overflows() {
    let settings = Settings {
        failures_in_a_row: 0,
        window: Duration::MAX,
        bucket: Duration::ZERO,
        failure_percent: u32::MAX,
        least_calls: 0,
        open: Duration::MAX,
        longest_open: Duration::MAX,
        spread: f64::NAN,
        longest_retry_after: Duration::MAX,
        probes: 0,
        probe_patience: Duration::ZERO,
        slow_call: Duration::ZERO,
        slow_percent: u32::MAX,
    };
    let mut breaker = Breaker::new(settings);
    assert_eq!(
        call(&mut breaker, Health::Failing, 0),
        Some(Change::Opened { until: Timestamp::MAX, why: OpenedBy::FailuresInARow })
    );
    let probe = match breaker.admit(Timestamp::MAX) {
        Admission::Probe(probe) => probe,
        other => panic!("{other:?}"),
    };
    assert_eq!(breaker.record(probe, seen(Health::Well, None), Timestamp::MAX, MIDDLE), Some(Change::Closed));
    assert_eq!(call(&mut breaker, Health::Well, 0), None);
}

#[test]
fn slow_calls_open_it_although_they_succeed() {
    let settings = Settings { slow_call: Duration::from_secs(5), slow_percent: 80, ..Settings::default() };
    // calls of 5 s among twenty, whether it opens
    for (slow, expected) in [(15, None), (16, Some(OpenedBy::SlowCalls)), (20, Some(OpenedBy::SlowCalls))] {
        let mut breaker = Breaker::new(settings);
        let took = |number| Duration::from_millis(if number < slow { 5_000 } else { 4_999 });
        let changes = (0..20).filter_map(|number| {
            let ticket = ticket(&mut breaker, 0);
            breaker.record(ticket, Call { health: Health::Well, took: took(number), retry_after: None }, at(0), MIDDLE)
        });
        let why = changes.map(|change| match change {
            Change::Opened { why, .. } => why,
            Change::Closed => panic!("it was closed"),
        });
        assert_eq!(why.collect::<Vec<_>>(), expected.into_iter().collect::<Vec<_>>(), "{slow} slow calls");
    }
}

#[test]
fn a_spent_budget_opens_it_only_while_it_is_closed() {
    let mut breaker = Breaker::default();
    let opened = Change::Opened { until: at(15_000), why: OpenedBy::SpentBudget };
    assert_eq!(breaker.budget_spent(at(0), MIDDLE), Some(opened));
    for now in [0, 14_999, 15_000] {
        assert_eq!(breaker.budget_spent(at(now), MIDDLE), None, "at {now}");
    }
}

#[test]
fn an_operator_opens_and_closes_it() {
    let mut breaker = Breaker::default();
    breaker.open_by_hand(None, at(0));
    let forever = State::Open { until: Timestamp::MAX, why: OpenedBy::Operator };
    assert_eq!(breaker.state(at(365 * 24 * 3_600 * SECOND)), forever);
    assert_eq!((breaker.close_by_hand(), breaker.close_by_hand()), (Some(Change::Closed), None));
    breaker.open_by_hand(Some(at(60_000)), at(0));
    assert_eq!(breaker.state(at(59_999)), State::Open { until: at(60_000), why: OpenedBy::Operator });
    assert_eq!(breaker.state(at(60_000)), State::Probing { why: OpenedBy::Operator }, "it closes by its probes");
}

#[test]
fn it_says_how_many_calls_may_be_in_flight() {
    let mut breaker = opened(0);
    assert_eq!(Breaker::default().most_in_flight(at(0)), None);
    assert_eq!((breaker.most_in_flight(at(14_999)), breaker.most_in_flight(at(15_000))), (Some(0), Some(3)));
    assert_eq!(call(&mut breaker, Health::Well, 15_000), None);
    assert_eq!(breaker.most_in_flight(at(15_000)), Some(2), "one probe has succeeded");
}

#[test]
fn it_is_as_it_was_after_a_restart() {
    let restarted = |breaker: &Breaker, now| Breaker::restore(breaker.settings, breaker.kept(), at(now));
    let mut failing = Breaker::default();
    (0..9).for_each(|_| assert!(call_fails(&mut failing, 0)));
    let mut failing = restarted(&failing, 1_000);
    assert!(call(&mut failing, Health::Failing, 1_000).is_some(), "the tenth failure in a row");

    let open = restarted(&opened(0), 1_000);
    assert_eq!(open.state(at(1_000)), opened(0).state(at(1_000)));

    let mut probing = opened(0);
    let probe = ticket(&mut probing, 15_000);
    let mut probing = restarted(&probing, 16_000);
    assert_eq!(probing.record(probe, seen(Health::Failing, None), at(16_000), MIDDLE), None, "of another life");
    (0..3).for_each(|_| assert!(matches!(probing.admit(at(16_000)), Admission::Probe(_))));
    assert!(matches!(probing.admit(at(16_000)), Admission::Wait { .. }));
    let closed = Breaker::default();
    assert_eq!(restarted(&closed, 0), closed);
}

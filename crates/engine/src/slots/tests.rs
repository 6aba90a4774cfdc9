//! Tests of the slots: shares, pools, start rates and the wait queue.

use std::collections::VecDeque;

use redrive_core::latency::ESTIMATE_FOR;

use super::*;

const QUICK: Duration = Duration::from_millis(1);

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Unknown lanes of these tenants.
fn slots(slots: usize, per_lane: usize, tenants: &[TenantKey]) -> Slots {
    let bounds = Bounds { slots, slots_per_lane: per_lane, bytes: 1 << 30, ahead: 256 };
    let mut all = Slots::new(bounds);
    tenants.iter().enumerate().for_each(|(lane, tenant)| all.add(lane, *tenant));
    all
}

/// How many slots the lane may take now.
fn more(slots: &mut Slots, lane: LaneId, now: Duration) -> usize {
    slots.room(lane, &Horizon::default(), now).0.slots
}

/// Takes as many slots as the lane may have, and begins an attempt in each.
fn fill(slots: &mut Slots, lane: LaneId, now: Duration) -> Vec<Number> {
    let mut begun = Vec::new();
    loop {
        let more = more(slots, lane, now);
        if more == 0 {
            return begun;
        }
        slots.take(lane, Room { slots: more, ahead: 0 }, now);
        begun.extend((0..more).map(|_| slots.begin(lane, now)));
    }
}

/// Makes `attempts` attempts in the lane, one after the other, that take `took` each.
fn learn(slots: &mut Slots, lane: LaneId, attempts: usize, took: Duration, end: AttemptEnd, at: Duration) -> Duration {
    let mut now = at;
    for _ in 0..attempts {
        slots.advance(now);
        slots.take(lane, Room { slots: 1, ahead: 0 }, now);
        let number = slots.begin(lane, now);
        now += took;
        slots.end(lane, number, end, now);
    }
    now
}

/// The lanes that were served since the last call.
fn served(slots: &mut Slots) -> Vec<LaneId> {
    let mut served: Vec<LaneId> = std::iter::from_fn(|| slots.next_served()).collect();
    served.sort_unstable();
    served.dedup();
    served
}

#[test]
fn slots_are_earned_and_end_at_the_lanes_limit() {
    let mut slots = slots(4_096, 20, &[0]);
    assert_eq!(fill(&mut slots, 0, secs(0)).len(), 2);
    let (room, held) = slots.room(0, &Horizon::default(), secs(0));
    assert_eq!((room, held), (Room::default(), Some(NoSlot::LaneLimit)));
    let mut slots = self::slots(4_096, 20, &[0]);
    let now = learn(&mut slots, 0, 50, QUICK, AttemptEnd::Answered, secs(0));
    assert_eq!(fill(&mut slots, 0, now).len(), 20);
}

#[test]
fn beside_a_thousand_slow_lanes_a_known_one_has_its_slots_and_a_new_one_gets_its_first_at_once() {
    let mut slots = slots(4_096, 128, &[0; 1_002]);
    let (healthy, new) = (1_000, 1_001);
    for lane in 0..1_000 {
        learn(&mut slots, lane, 1, secs(4), AttemptEnd::Answered, secs(0));
    }
    let now = learn(&mut slots, healthy, 200, QUICK, AttemptEnd::Answered, secs(4));
    for _ in 0..200 {
        (0..1_000).for_each(|lane| drop(fill(&mut slots, lane, now)));
    }
    assert!(slots.held() <= 2_048, "{} slots", slots.held());
    assert_eq!(more(&mut slots, healthy, now), 128);
    assert_eq!(more(&mut slots, new, now), 2);
}

#[test]
fn fast_lanes_that_hang_one_after_the_other_leave_slots_for_those_that_do_not_and_for_new_ones() {
    let mut slots = slots(4_096, 128, &[0; 102]);
    let (healthy, new) = (100, 101);
    let known = (0..=healthy).map(|lane| learn(&mut slots, lane, 200, QUICK, AttemptEnd::Answered, secs(0))).max();
    let mut now = known.unwrap();
    for lane in 0..100 {
        fill(&mut slots, lane, now);
        now += SLOW_AFTER;
        slots.advance(now);
        assert!(more(&mut slots, healthy, now) >= 2, "beside {lane} lanes that hang, {} slots", slots.held());
        assert_eq!(more(&mut slots, new, now), 2, "beside {lane} lanes that hang, {} slots", slots.held());
    }
}

#[test]
fn fast_lanes_that_hang_at_one_moment_leave_slots_for_a_new_one() {
    let mut slots = slots(4_096, 128, &[0; 42]);
    let (healthy, new) = (40, 41);
    let now =
        (0..=healthy).map(|lane| learn(&mut slots, lane, 200, QUICK, AttemptEnd::Answered, secs(0))).max().unwrap();
    for _ in 0..128 {
        (0..40).for_each(|lane| drop(fill(&mut slots, lane, now)));
    }
    let now = now + SLOW_AFTER;
    slots.advance(now);
    assert!(more(&mut slots, healthy, now) >= 2 && more(&mut slots, new, now) == 2, "{} slots are held", slots.held());
}

#[test]
fn more_busy_fast_lanes_than_slots_leave_a_new_one_its_turn() {
    let mut slots = slots(8, 4, &[0; 21]);
    let new = 20;
    let mut now = (0..new).map(|lane| learn(&mut slots, lane, 20, QUICK, AttemptEnd::Answered, secs(0))).max().unwrap();
    let mut begun: VecDeque<(LaneId, Number)> = VecDeque::new();
    for lane in 0..new {
        begun.extend(fill(&mut slots, lane, now).into_iter().map(|number| (lane, number)));
    }
    assert_eq!(begun.len(), 8);
    (0..=new).for_each(|lane| slots.join_queue(lane, now));
    for _ in 0..20 {
        now += QUICK;
        let (lane, number) = begun.pop_front().unwrap();
        slots.end(lane, number, AttemptEnd::Answered, now);
        for lane in served(&mut slots) {
            if lane == new {
                return;
            }
            begun.extend(fill(&mut slots, lane, now).into_iter().map(|number| (lane, number)));
            slots.join_queue(lane, now);
        }
    }
    panic!("the new lane stands in line for ever");
}

#[test]
fn a_lane_that_holds_too_much_does_not_stand_in_the_way_of_its_tenants_others() {
    let mut slots = slots(32, 16, &[0; 3]);
    let now = (0..3).map(|lane| learn(&mut slots, lane, 20, QUICK, AttemptEnd::Answered, secs(0))).max().unwrap();
    served(&mut slots);
    let take = |slots: &mut Slots, lane, count| {
        slots.take(lane, Room { slots: count, ahead: 0 }, now);
        (0..count).map(|_| slots.begin(lane, now)).collect::<Vec<_>>()
    };
    let (greedy, modest, other) = (0, 1, 2);
    take(&mut slots, greedy, 8);
    take(&mut slots, modest, 2);
    let ends = take(&mut slots, other, 14);
    slots.join_queue(greedy, now);
    slots.join_queue(modest, now);
    for number in ends.into_iter().take(5) {
        slots.end(other, number, AttemptEnd::Answered, now);
    }
    assert_eq!(served(&mut slots), [modest, other], "one holds 8 and the other one 2, and 5 are free");
}

/// The attempts that lanes with a constant backlog start in each 10 ms of `time`; `took` is the duration of an attempt.
fn starts(slots: &mut Slots, lanes: usize, time: Duration, took: impl Fn(LaneId) -> Duration) -> Vec<usize> {
    const STEP: Duration = Duration::from_millis(10);
    let mut wire: BTreeMap<Duration, Vec<(LaneId, Number)>> = BTreeMap::new();
    let mut looked_at: Vec<LaneId> = (0..lanes).collect();
    let mut started = Vec::new();
    let mut now = Duration::ZERO;
    while now < time {
        slots.advance(now);
        while let Some(ends) = wire.first_entry().filter(|ends| *ends.key() <= now) {
            ends.remove().into_iter().for_each(|(lane, number)| slots.end(lane, number, AttemptEnd::Answered, now));
        }
        looked_at.extend(served(slots));
        let mut in_step = 0;
        for lane in looked_at.drain(..) {
            let begun = fill(slots, lane, now);
            in_step += begun.len();
            wire.entry(now + took(lane)).or_default().extend(begun.into_iter().map(|number| (lane, number)));
            slots.join_queue(lane, now);
        }
        started.push(in_step);
        now += STEP;
    }
    started
}

#[test]
fn slow_lanes_that_were_given_their_work_at_one_moment_do_not_start_again_at_one_moment() {
    // lanes, slots of each, what an attempt takes, the most starts in 10 ms, the fewest in a second on the mean: one tenant's
    // lanes may hold 8/9 of 2,048 slots
    let cases = [(1_000, 128, secs(4), 22, 450), (300, 128, secs(4), 22, 450), (1_000, 2, secs(10), 12, 180)];
    for (lanes, per_lane, took, most, fewest) in cases {
        let mut slots = slots(4_096, per_lane, &vec![0; lanes]);
        let started = starts(&mut slots, lanes, took * 10, |_| took);
        // They are unknown in their first round.
        let later = &started[100 * took.as_secs() as usize..];
        let in_10_ms = later.iter().max().unwrap();
        assert!(*in_10_ms <= most, "{lanes} lanes: {in_10_ms} within 10 ms");
        let in_a_second = later.iter().sum::<usize>() / (9 * took.as_secs() as usize);
        assert!(in_a_second >= fewest, "{lanes} lanes: {in_a_second} a second");
    }
}

#[test]
fn quick_and_long_attempts_of_slow_lanes_share_one_start_rate_and_lose_nothing_by_it() {
    // Half of the lanes take half a second, half of them 8 s.
    let took = |lane: LaneId| if lane.is_multiple_of(2) { Duration::from_millis(500) } else { secs(8) };
    let mut slots = slots(4_096, 2, &[0; 600]);
    let started = starts(&mut slots, 600, secs(40), took);
    let in_a_second = started[800..].iter().sum::<usize>() / 32;
    assert!((1_150..=1_280).contains(&in_a_second), "{in_a_second} of 600 × 2 + 600 ÷ 8 that the slots can make");
}

#[test]
fn slots_that_were_taken_by_a_slow_lane_stay_counted_as_slow_when_its_figures_expire() {
    let mut slots = slots(4, 1, &[0, 1, 2, 3]);
    for lane in [0, 1, 2] {
        learn(&mut slots, lane, 1, secs(4), AttemptEnd::Answered, secs(0));
    }
    let just_known = secs(4) + ESTIMATE_FOR;
    assert_eq!([0, 1].map(|lane| fill(&mut slots, lane, just_known).len()), [1, 1], "half of them");
    let expired = just_known + Duration::from_millis(1);
    assert_eq!([0, 1].map(|lane| more(&mut slots, lane, expired)), [0, 0]);
    slots.lanes[2].pace.record(secs(4), AttemptEnd::Answered, expired);
    assert_eq!(more(&mut slots, 2, expired), 0, "the half of the slow lanes is taken");
    assert_eq!(fill(&mut slots, 3, expired).len(), 1);
}

#[test]
fn a_lane_of_large_bodies_claims_no_more_of_them_than_fit_in_memory() {
    let bounds = Bounds { slots: 64, slots_per_lane: 32, bytes: 64 << 20, ahead: 256 };
    let mut slots = Slots::new(bounds);
    slots.add(0, 0);
    let now = learn(&mut slots, 0, 100, QUICK, AttemptEnd::Answered, secs(0));
    assert_eq!(slots.room(0, &Horizon::default(), now).0.slots, 24, "half of what fast lanes may hold");
    slots.keep_bytes(0, 8 << 20);
    let room = slots.room(0, &Horizon::default(), now).0;
    assert!(room.slots + room.ahead <= 3, "{room:?} of 8 MiB each, in 48 MiB that are shared");
    slots.drop_bytes(0, 8 << 20, now);
}

#[test]
fn invented_names_that_hang_leave_slots_for_fast_lanes_and_for_new_ones_of_another_tenant() {
    let tenants: Vec<TenantKey> = (0..4_002).map(|lane| usize::from(lane >= 4_000)).collect();
    let mut slots = slots(4_096, 128, &tenants);
    let (healthy, new) = (4_000, 4_001);
    let mut now = learn(&mut slots, healthy, 200, QUICK, AttemptEnd::Answered, secs(0));
    for _ in 0..30 {
        (0..4_000).for_each(|lane| drop(fill(&mut slots, lane, now)));
        now += SLOW_AFTER;
        slots.advance(now);
        assert!(more(&mut slots, healthy, now) >= 2 && more(&mut slots, new, now) > 0, "{} are held", slots.held());
    }
}

#[test]
fn the_attempts_of_a_slow_lane_do_not_start_at_one_moment() {
    let mut slots = slots(4_096, 40, &[0]);
    let mut now = learn(&mut slots, 0, 1, secs(4), AttemptEnd::Answered, secs(0));
    let (mut started, mut wire) = (Vec::new(), VecDeque::new());
    // For a minute it has a constant backlog, and is looked at every 10 ms.
    for _ in 0..6_000 {
        slots.advance(now);
        while let Some((number, began)) = wire.front().copied()
            && now >= began + secs(4)
        {
            wire.pop_front();
            slots.end(0, number, AttemptEnd::Answered, now);
        }
        let begun = fill(&mut slots, 0, now);
        started.push(begun.len());
        wire.extend(begun.into_iter().map(|number| (number, now)));
        now += Duration::from_millis(10);
    }
    let most_in_100_ms = started.windows(10).map(|window| window.iter().sum::<usize>()).max().unwrap();
    assert!(most_in_100_ms <= 8, "{most_in_100_ms} of 40 at once");
    let all: usize = started.iter().sum();
    assert!(all > 40 * 15 * 9 / 10, "{all} attempts of the 600 that 40 slots can make in a minute");
}

#[test]
fn a_slot_that_is_reserved_for_a_claim_serves_a_task_that_is_in_memory_already() {
    let mut slots = slots(8, 1, &[0; 3]);
    let now = learn(&mut slots, 0, 9, QUICK, AttemptEnd::Answered, secs(0));
    slots.take(0, Room { slots: 0, ahead: 1 }, now);
    slots.lanes[0].reserved = 1;
    slots.hold(0, 1, now);
    assert!(slots.want(0, now).is_ok());
    assert_eq!((slots.lanes[0].held, slots.lanes[0].reserved, slots.unsent), (1, 0, 0));
}

#[test]
fn a_lane_that_hangs_is_slow_after_a_quarter_of_a_second_and_makes_way_for_unknown_ones() {
    let mut slots = slots(8, 8, &[0; 4]);
    fill(&mut slots, 0, secs(0));
    assert_eq!(more(&mut slots, 1, secs(0)), 1);
    fill(&mut slots, 1, secs(0));
    assert_eq!(more(&mut slots, 2, secs(0)), 0, "two unknown lanes hold a quarter of 8");
    slots.join_queue(2, secs(0));
    assert_eq!(slots.next_change(), Some(SLOW_AFTER));
    slots.advance(SLOW_AFTER);
    assert!(served(&mut slots).contains(&2));
    assert_eq!(more(&mut slots, 2, SLOW_AFTER), 1, "what hangs is counted as slow now");
}

#[test]
fn what_becomes_free_goes_to_a_lane_without_any_first() {
    let mut slots = slots(8, 8, &[0; 8]);
    // Lanes 0 to 4 are slow and hold all four slots of their pool; 4 holds none.
    let now = (0..5).map(|lane| learn(&mut slots, lane, 1, secs(4), AttemptEnd::Answered, secs(0))).max().unwrap();
    let begun: Vec<Number> = (0..4)
        .map(|lane| {
            slots.take(lane, Room { slots: 1, ahead: 0 }, now);
            slots.begin(lane, now)
        })
        .collect();
    assert_eq!(slots.room(4, &Horizon::default(), now), (Room::default(), Some(NoSlot::Pool)));
    slots.join_queue(4, now);
    served(&mut slots);
    slots.end(0, begun[0], AttemptEnd::Answered, now + secs(4));
    assert!(served(&mut slots).contains(&4));
    assert_eq!(more(&mut slots, 4, now + secs(4)), 1, "reserved for its claim");
    assert_eq!(more(&mut slots, 0, now + secs(4)), 0, "the one that gave it back waits");
}

#[test]
fn one_tenants_lanes_leave_a_ninth_of_the_pool_to_the_next_tenant() {
    let tenants: Vec<TenantKey> = (0..600).map(|lane| usize::from(lane == 599)).collect();
    let mut slots = slots(720, 8, &tenants);
    for _ in 0..8 {
        (0..599).for_each(|lane| drop(fill(&mut slots, lane, secs(0))));
    }
    assert_eq!(slots.held(), 160, "8/9 of a quarter");
    let (room, held) = slots.room(598, &Horizon::default(), secs(0));
    assert_eq!((room.slots, held), (0, Some(NoSlot::Tenant)));
    assert_eq!(more(&mut slots, 599, secs(0)), 2);
}

#[test]
fn tenants_take_turns_in_the_line() {
    // The slow pool has four slots, held by lanes of tenant 0. More lanes of tenant 0 are queued before the one of
    // tenant 1.
    let mut slots = slots(8, 8, &[0, 0, 0, 0, 0, 0, 1]);
    let now = (0..7).map(|lane| learn(&mut slots, lane, 1, secs(4), AttemptEnd::Answered, secs(0))).max().unwrap();
    let begun: Vec<Number> = (0..4)
        .map(|lane| {
            slots.take(lane, Room { slots: 1, ahead: 0 }, now);
            slots.begin(lane, now)
        })
        .collect();
    [4, 5, 6].into_iter().for_each(|lane| slots.join_queue(lane, now));
    served(&mut slots);
    for number in &begun[..2] {
        slots.end(0, *number, AttemptEnd::Answered, now + secs(4));
        slots.end(1, *number, AttemptEnd::Answered, now + secs(4));
    }
    let reserved: Vec<usize> = (4..7).map(|lane| slots.lanes[lane].reserved).collect();
    assert_eq!(reserved, [1, 0, 1]);
}

#[test]
fn a_failing_lane_has_two_slots_that_rest_after_each_failure() {
    let mut slots = slots(4_096, 128, &[0]);
    let mut now = learn(&mut slots, 0, 100, QUICK, AttemptEnd::Answered, secs(0));
    let mut attempts = 0;
    while now < secs(20) {
        slots.advance(now);
        let begun = fill(&mut slots, 0, now);
        attempts += begun.len();
        begun.into_iter().for_each(|number| slots.end(0, number, AttemptEnd::NoConnection, now));
        now += Duration::from_millis(10);
    }
    // The 102 slots of the first moment, and then two for each second.
    assert_eq!(attempts, 102 + 2 * 19);
    assert_eq!(slots.next_change().map(|change| change <= now + secs(1)), Some(true));
}

#[test]
fn tasks_claimed_ahead_get_their_slots_in_order_and_hold_none_before() {
    let mut slots = slots(4_096, 2, &[0]);
    let now = learn(&mut slots, 0, 20, QUICK, AttemptEnd::Answered, secs(0));
    let begun = fill(&mut slots, 0, now);
    let (room, _) = slots.room(0, &Horizon::default(), now);
    assert_eq!(room, Room { slots: 0, ahead: 10 }, "two slots, 5 ms ahead, 1 ms each");
    slots.take(0, Room { slots: 0, ahead: 2 }, now);
    let (first, mut first_grant) = slots.want(0, now).unwrap_err();
    let (second, mut second_grant) = slots.want(0, now).unwrap_err();
    assert_eq!(slots.held(), 2);
    slots.end(0, begun[0], AttemptEnd::Answered, now);
    assert!(first_grant.try_recv().is_ok() && second_grant.try_recv().is_err());
    assert!(slots.is_granted(0, first) && !slots.is_granted(0, second));
    assert!(!slots.stop_waiting(0, second), "it had no slot");
    slots.give_back(0, Room { slots: 0, ahead: 1 }, now);
    assert!(slots.stop_waiting(0, first), "it had its slot");
    slots.give_back(0, Room { slots: 1, ahead: 0 }, now);
    slots.end(0, begun[1], AttemptEnd::Answered, now);
    assert_eq!((slots.held(), slots.is_idle(0)), (0, true));
}

#[test]
fn bodies_in_memory_are_bounded_and_slow_lanes_leave_half_of_it() {
    let mut slots = slots(4_096, 128, &[0; 3]);
    slots.bytes = Quota::new(1_000);
    let now = learn(&mut slots, 0, 1, secs(4), AttemptEnd::Answered, secs(0));
    learn(&mut slots, 1, 10, QUICK, AttemptEnd::Answered, now);
    slots.keep_bytes(0, 400);
    assert_eq!(slots.room(0, &Horizon::default(), now), (Room::default(), Some(NoSlot::Memory)));
    assert!(more(&mut slots, 1, now) > 0, "a fast lane has the other half");
    slots.join_queue(0, now);
    slots.drop_bytes(0, 300, now);
    assert!(served(&mut slots).contains(&0) && more(&mut slots, 0, now) > 0);
}

#[test]
fn nothing_is_lost_or_made_by_any_order_of_events() {
    let mut random = 7_u64;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below
    };
    let mut slots = slots(16, 6, &[0, 0, 0, 0, 1, 1, 2]);
    let mut now = secs(0);
    let (mut held, mut wire) = (Vec::new(), Vec::new());
    let mut waiting: Vec<(LaneId, Number)> = Vec::new();
    for _ in 0..20_000 {
        now += Duration::from_millis(next(40) as u64);
        slots.advance(now);
        let lane = next(7);
        match next(7) {
            0 | 1 => {
                let (room, _) = slots.room(lane, &Horizon::default(), now);
                slots.take(lane, room, now);
                held.extend((0..room.slots).map(|_| lane));
                for _ in 0..room.ahead {
                    match slots.want(lane, now) {
                        Ok(()) => held.push(lane),
                        Err((number, _)) => waiting.push((lane, number)),
                    }
                }
                slots.join_queue(lane, now);
            }
            2 if !held.is_empty() => {
                let lane = held.swap_remove(next(held.len()));
                wire.push((lane, slots.begin(lane, now)));
            }
            3 | 4 if !wire.is_empty() => {
                let (lane, number) = wire.swap_remove(next(wire.len()));
                let end = if next(3) == 0 { AttemptEnd::NoConnection } else { AttemptEnd::Answered };
                slots.end(lane, number, end, now);
            }
            5 if !waiting.is_empty() => {
                let (lane, number) = waiting.swap_remove(next(waiting.len()));
                match slots.stop_waiting(lane, number) {
                    true => held.push(lane),
                    false => slots.give_back(lane, Room { slots: 0, ahead: 1 }, now),
                }
            }
            _ if !held.is_empty() => {
                let lane = held.swap_remove(next(held.len()));
                slots.give_back(lane, Room { slots: 1, ahead: 0 }, now);
            }
            _ => {}
        }
        while let Some(lane) = slots.next_served() {
            slots.unreserve(lane, now);
        }
        assert!(slots.held() <= 16, "{} of 16 slots", slots.held());
        (0..7).for_each(|lane| assert!(slots.lanes[lane].held <= 6));
    }
    for (lane, number) in waiting {
        if slots.stop_waiting(lane, number) {
            held.push(lane)
        } else {
            slots.give_back(lane, Room { slots: 0, ahead: 1 }, now)
        }
    }
    held.into_iter().for_each(|lane| slots.give_back(lane, Room { slots: 1, ahead: 0 }, now));
    wire.into_iter().for_each(|(lane, number)| slots.abandon(lane, number, now));
    slots.advance(now + secs(10));
    slots.unreserve_all(now + secs(10));
    assert_eq!(slots.held(), 0);
    assert_eq!((0..7).filter(|lane| slots.is_idle(*lane)).count(), 7);
}

use redrive_core::{Dependency, TenantId};

use super::*;

const TURN: usize = 256;
const AHEAD: usize = 256;

fn lanes(lane_concurrency: usize, max_in_flight: usize) -> Arc<Lanes> {
    Lanes::new(&Options { lane_concurrency, max_in_flight, ..Options::default() })
}

fn lane(name: &str) -> Lane {
    Lane { tenant: TenantId::default_tenant(), dependency: Dependency::try_new(name).unwrap() }
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn left(name: &str, next_due: Option<u64>) -> LaneDue {
    LaneDue { lane: lane(name), next_due: next_due.map(at) }
}

fn names(turns: &[LaneRoom]) -> Vec<(&str, usize)> {
    turns.iter().map(|turn| (turn.lane.dependency.as_str(), turn.room)).collect()
}

#[test]
fn no_more_is_on_the_wire_than_the_lane_has_slots() {
    let lanes = lanes(2, 1_000);
    let mut rooms: Vec<_> = (0..3).map(|_| lanes.reserve(&lane("a"), at(0)).unwrap()).collect();
    assert_eq!(rooms.iter_mut().map(Room::try_slot).collect::<Vec<_>>(), [true, true, false]);
    assert!(lanes.reserve(&lane("b"), at(0)).unwrap().try_slot(), "a full lane costs the others nothing");
    rooms.remove(0);
    assert!(rooms[1].try_slot());
}

#[test]
fn new_tasks_are_claimed_ahead_up_to_a_bound() {
    let lanes = lanes(2, 1_000);
    let mut rooms: Vec<_> = (0..AHEAD).map(|_| lanes.reserve(&lane("a"), at(0)).unwrap()).collect();
    assert!(lanes.reserve(&lane("a"), at(0)).is_none());
    assert!(rooms[0].try_slot());
    assert!(lanes.reserve(&lane("a"), at(0)).is_some(), "what is on the wire is not ahead any more");
}

#[test]
fn all_lanes_together_stay_within_the_total_limit() {
    let lanes = lanes(2, 3);
    let rooms: Vec<_> = ["a", "a", "b", "c"].map(|name| lanes.reserve(&lane(name), at(0))).into();
    assert_eq!(rooms.iter().map(Option::is_some).collect::<Vec<_>>(), [true, true, true, false]);
    lanes.note_due(&lane("d"), at(0));
    assert_eq!(lanes.next_turn(), None, "with no room at all nobody's turn comes");
    drop(rooms);
    assert_eq!(lanes.next_turn(), Some(at(0)));
}

#[test]
fn a_new_task_does_not_overtake_what_has_been_due_for_long() {
    let lanes = lanes(2, 100);
    lanes.note_due(&lane("a"), at(1_000));
    assert!(lanes.reserve(&lane("a"), at(2_000)).is_some(), "the claimer is about to take it");
    assert!(lanes.reserve(&lane("a"), at(2_001)).is_none());
}

#[test]
fn a_turn_comes_when_the_earliest_task_is_due() {
    let lanes = lanes(2, 1_000);
    lanes.note_due(&lane("a"), at(2_000));
    lanes.note_due(&lane("a"), at(1_000));
    lanes.note_due(&lane("a"), at(3_000));
    lanes.note_due(&lane("b"), at(1_500));
    assert_eq!(lanes.next_turn(), Some(at(1_000)));
    assert_eq!(names(&lanes.take_turns(at(999))), []);
    assert_eq!(names(&lanes.take_turns(at(1_500))), [("a", TURN), ("b", TURN)]);
}

#[test]
fn a_lane_without_room_is_not_asked_until_it_has_some() {
    let lanes = lanes(1, 1_000);
    let mut room = lanes.reserve(&lane("a"), at(0)).unwrap();
    assert!(room.try_slot());
    lanes.note_due(&lane("a"), at(5));
    assert_eq!(lanes.next_turn(), None);
    assert_eq!(names(&lanes.take_turns(at(10))), []);
    drop(room);
    assert_eq!(names(&lanes.take_turns(at(10))), [("a", TURN)]);
}

#[test]
fn room_that_a_claim_did_not_need_is_given_back() {
    let lanes = lanes(3, 100);
    lanes.note_due(&lane("a"), at(0));
    let turns = lanes.take_turns(at(0));
    let rooms = lanes.claimed(&turns[0], 1, &left("a", Some(0)));
    assert_eq!((rooms.len(), lanes.lock().in_flight), (1, 1));
}

#[test]
fn what_is_noted_during_a_claim_is_not_lost() {
    let lanes = lanes(3, 100);
    lanes.note_due(&lane("a"), at(0));
    let turns = lanes.take_turns(at(0));
    lanes.note_due(&lane("a"), at(7));
    lanes.claimed(&turns[0], 0, &left("a", Some(9)));
    assert_eq!(lanes.next_turn(), Some(at(7)));
}

#[test]
fn lanes_with_a_backlog_take_turns() {
    let lanes = lanes(TURN * 4, TURN);
    lanes.note_due(&lane("a"), at(0));
    lanes.note_due(&lane("b"), at(1));
    let mut order = Vec::new();
    for _ in 0..4 {
        let turns = lanes.take_turns(at(10));
        for turn in turns {
            order.push(turn.lane.dependency.to_string());
            let backlog = LaneDue { lane: turn.lane.clone(), next_due: Some(at(0)) };
            drop(lanes.claimed(&turn, TURN, &backlog));
        }
    }
    assert_eq!(order, ["a", "b", "a", "b"]);
}

#[test]
fn an_estimate_is_forgotten_when_nobody_has_called_for_a_while() {
    let lanes = lanes(1, 1);
    drop(lanes.reserve(&lane("a"), at(0)));
    let second = Duration::from_secs(1);
    lanes.record_latency(&lane("a"), second * 20, second);
    assert_eq!(lanes.estimate(&lane("a"), second * 2), second * 20);
    assert_eq!(lanes.estimate(&lane("a"), second + ESTIMATE_FOR + second), Duration::ZERO);
    lanes.record_latency(&lane("a"), second, second * 100);
    assert_eq!(lanes.estimate(&lane("a"), second * 100), second, "an old estimate does not weigh on a new one");
}

#[test]
fn lanes_without_work_are_forgotten_in_the_end() {
    let lanes = lanes(1, 1);
    for number in 0..REMEMBERED + 50 {
        drop(lanes.reserve(&lane(&format!("dependency-{number}")), at(0)));
    }
    assert_eq!(lanes.lock().lanes.len(), REMEMBERED);
}

#[tokio::test]
async fn room_given_back_rings_when_work_waits_for_it() {
    let lanes = lanes(1, 1_000);
    let mut room = lanes.reserve(&lane("a"), at(0)).unwrap();
    assert!(room.try_slot());
    lanes.note_due(&lane("a"), at(0));
    assert_eq!(lanes.next_turn(), None);
    drop(room);
    lanes.changed().await;
    assert_eq!(names(&lanes.take_turns(at(0))), [("a", TURN)]);
}

#[test]
fn a_lane_whose_slots_are_all_taken_claims_nothing_ahead() {
    let lanes = lanes(2, 1_000);
    let mut on_the_wire: Vec<_> = (0..2).map(|_| lanes.reserve(&lane("a"), at(0)).unwrap()).collect();
    assert!(on_the_wire[0].try_slot());
    lanes.note_due(&lane("a"), at(0));
    assert_eq!(lanes.next_turn(), Some(at(0)), "a slot is free");
    assert!(on_the_wire[1].try_slot());
    assert_eq!(names(&lanes.take_turns(at(0))), []);
    on_the_wire.pop();
    assert_eq!(names(&lanes.take_turns(at(0))), [("a", TURN)]);
}

//! Every real bug that the simulator has found: with the bug put back, its seed finds it again; without, the seed is well.
//!
//! A seed means something only as long as plans are drawn in the same way. When that changes, the first of these fails:
//! then hunt for another seed with `cargo xtask sim --bug NAME`.

#![cfg(feature = "planted")]

use redrive_core::planted::Bug;
use redrive_sim::plan::{self, Ask, Families, Family};
use redrive_sim::shrink::shrink;
use redrive_sim::world;

/// The bug, the seed that finds it, and the invariant that it breaks.
const FOUND: [(Bug, u64, u8); 7] = [
    // The store's answer to a claim took so long that the attempt was still on the wire when its lease ran out.
    (Bug::LateClaimIsSent, 117, 7),
    // The process died, or the answer to the settlement was lost, between the commit and the alert.
    (Bug::AlertOnlyOnce, 96, 9),
    // A lease ran out while its process stood still or the store took its time; an embedded store's rescuer, which only
    // looked for a while after the last lease, never looked again.
    (Bug::LeftBehindUnnoticed, 93, 13),
    // Over a shared store, a stop waited for the loop that hears of cancels, and that loop for the stop.
    (Bug::StopNeverEnds, 7, 13),
    // A tenant with many lanes in line was served before all others.
    (Bug::TenantsTakeNoTurns, 99, 8),
    // A task that was claimed ahead of its slot waited until half of its lease was gone, whatever its deadline.
    (Bug::ClaimedOutlivesDeadline, 324, 13),
    // A slow lane that had become unknown while it waited got a slot of the slow ones, and was counted as unknown.
    (Bug::StalePoolServed, 1_432, 8),
];

#[test]
fn what_was_found_once_is_found_again() {
    for (bug, seed, invariant) in FOUND {
        let violation = world::run(&plan::draw(seed, &Ask { bug: Some(bug), ..Ask::default() }), false).violation;
        assert_eq!(violation.map(|violation| violation.invariant), Some(invariant), "{} at seed {seed}", bug.as_str());
    }
}

#[test]
fn what_was_mended_is_well() {
    for (bug, seed, _) in FOUND {
        let violation = world::run(&plan::draw(seed, &Ask::default()), false).violation;
        assert!(violation.is_none(), "{} at seed {seed}: {violation:?}", bug.as_str());
    }
}

/// Seeds that a mistake of the model once made fail: an alert names its run, and a replay of that run may have succeeded
/// between its end and its alert.
#[test]
fn an_alert_of_a_run_that_was_replayed_is_no_mistake() {
    for seed in [7_005_694, 90_004_401] {
        let violation = world::run(&plan::draw(seed, &Ask::default()), false).violation;
        assert!(violation.is_none(), "seed {seed}: {violation:?}");
    }
}

/// New lanes of several tenants took the last of 16 slots, one after the other, and hung: a thirty-second of 16 is none.
#[test]
fn a_quick_lane_is_served_where_a_part_of_the_slots_is_less_than_one() {
    let seed = 1_687_991_394_040;
    let violation = world::run(&plan::draw(seed, &Ask::default()), false).violation;
    assert!(violation.is_none(), "seed {seed}: {violation:?}");
}

/// What was known of a slow lane expired while its attempt was on the wire. Its slot counted as that of an unknown lane from then
/// on, so that the slow lanes took another one, the last.
#[test]
fn slow_lanes_hold_half_also_when_what_is_known_of_them_expires() {
    let seed = 4_000_029_875;
    let violation = world::run(&plan::draw(seed, &Ask::default()), false).violation;
    assert!(violation.is_none(), "seed {seed}: {violation:?}");
}

#[test]
fn a_failure_is_made_smaller_and_still_fails() {
    let families = Families::of([Family::Dependency, Family::Client]);
    let ask = Ask { bug: Some(Bug::NewKeyOnRetry), families: Some(families), hours: Some(1.0), ..Ask::default() };
    let plan = plan::draw(1, &ask);
    let violation = world::run(&plan, false).violation.expect("the bug is found");
    let shrunk = shrink(&plan, violation, 200);
    assert_eq!(shrunk.violation.invariant, 3);
    assert!(shrunk.keep.0.len() <= 4, "{}", shrunk.keep);
    let again = plan::Plan { luck: shrunk.luck, ..shrunk.keep.of(&plan) };
    assert_eq!(world::run(&again, false).violation.map(|violation| violation.what), Some(shrunk.violation.what));
}

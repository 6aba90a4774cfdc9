//! Every seed that has found a real bug passes now.
//!
//! `cargo xtask sim --planted` checks that such a seed still finds its bug when the bug is put back: the seeds are in
//! the bugs' records (`crates/planted/bugs`).

use redrive_sim::plan::{self, Ask, Families, Family};
use redrive_sim::world;

#[test]
fn what_was_mended_is_well() {
    let found = redrive_planted::all().iter().filter_map(|bug| Some((&bug.name, bug.found.as_ref()?.seed)));
    let found: Vec<_> = found.collect();
    assert!(found.len() >= 7, "the seeds that found real bugs are kept: {found:?}");
    for (name, seed) in found {
        let violation = world::run(&plan::draw(seed, &Ask::default()), false).violation;
        assert!(violation.is_none(), "{name} at seed {seed}: {violation:?}");
    }
}

/// Seeds that once failed because of a mistake in the model: an alert names its run, and a replay of that run may have
/// succeeded between its end and its alert.
#[test]
fn an_alert_of_a_run_that_was_replayed_is_no_mistake() {
    for seed in [7_005_694, 90_004_401] {
        let violation = world::run(&plan::draw(seed, &Ask::default()), false).violation;
        assert!(violation.is_none(), "seed {seed}: {violation:?}");
    }
}

/// New lanes of several tenants took the last of 16 slots, one after the other, and hung: a thirty-second of 16 is
/// zero.
#[test]
fn a_quick_lane_is_served_where_a_part_of_the_slots_is_less_than_one() {
    let seed = 1_687_991_394_040;
    let violation = world::run(&plan::draw(seed, &Ask::default()), false).violation;
    assert!(violation.is_none(), "seed {seed}: {violation:?}");
}

/// The measurements of a slow lane expired while its attempt was on the wire. Its slot then counted as that of an
/// unknown lane, so the slow lanes took another one, the last.
#[test]
fn slow_lanes_hold_half_also_when_what_is_known_of_them_expires() {
    let seed = 4_000_029_875;
    let violation = world::run(&plan::draw(seed, &Ask::default()), false).violation;
    assert!(violation.is_none(), "seed {seed}: {violation:?}");
}

/// Seeds that once failed because of a mistake in the model: after a restart, the breaker may have opened on failures that
/// the model is not sure of, while other attempts were on the wire. Their successes do not show that it is closed, but may
/// end a streak.
#[test]
fn successes_of_attempts_from_before_an_opening_do_not_close_the_breaker() {
    let families = Families::of([Family::Guards, Family::Dependency, Family::Crash]);
    let ask = Ask { families: Some(families), ..Ask::default() };
    for seed in [70_000_000_708, 70_000_002_920] {
        let violation = world::run(&plan::draw(seed, &ask), false).violation;
        assert!(violation.is_none(), "seed {seed}: {violation:?}");
    }
}

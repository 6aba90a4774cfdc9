//! Power loss of the store on disk, at every sync of a real run and in between: what was acknowledged is there, what is
//! there is consistent, and a call in progress happened completely or not at all.
//!
//! A recording depends on its threads, so no two recordings are the same. A crash that is not survived leaves its disk
//! to be examined. For a longer check: `cargo test -p redrive-sim --test sqlite_crashes -- --ignored longer_look`, with
//! `CRASH_MIXES` for the number of mixed images of each crash point.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]
#![allow(clippy::print_stdout, reason = "how much was looked at is part of the answer")]

#[path = "sqlite_crashes/crowd.rs"]
mod crowd;
#[path = "sqlite_crashes/life.rs"]
mod life;
#[path = "sqlite_crashes/long_life.rs"]
mod long_life;
#[path = "sqlite_crashes/old_version.rs"]
mod old_version;
#[path = "sqlite_crashes/recorder.rs"]
mod recorder;
#[path = "sqlite_crashes/reopened.rs"]
mod reopened;
#[path = "sqlite_crashes/runs.rs"]
mod runs;
#[path = "sqlite_crashes/simulated.rs"]
mod simulated;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use redrive_sim::blocking::Blocking;
use redrive_sim::disk::{self, Event, Fate, FileChange, Plan, Recording, Report};
use redrive_sim::world;
use redrive_store::conformance::samples::acme;
use redrive_store_sqlite::SqliteStore;

/// The seed of a world with crashes, dead letters, replays and cancels in it.
const SIMULATED: u64 = 43;

use long_life::{ORDINARY, UnderWay, Which};

/// What an ordinary run checks: every sync point, and some of the others.
const PLAN: Plan = Plan { seed: 1, mixes: 1, between_every: 40 };

#[test]
fn a_long_life_survives_power_loss_at_every_sync() {
    let recording = runs::ordinary_life();
    let seen = runs::describe(recording);
    assert!(runs::checkpoints(recording) >= 5, "{seen}");
    assert!(runs::log_starts(recording) >= 4, "{seen}");
    let moves = "SELECT count(*) FROM meta WHERE name IN ('keys_moving_up_to', 'keys_complete_up_to')";
    assert_eq!(runs::ask_at_the_end(recording, moves), "2", "keys were moved, and not all in one slice");
    assert_life_survives(recording, ORDINARY, &PLAN);
}

fn assert_life_survives(recording: &Recording, which: Which, plan: &Plan) {
    let expected = long_life::expected(which);
    let with_the_call_under_way = AtomicUsize::new(0);
    let report = disk::check(recording, plan, |crash| {
        if long_life::survives(crash, &expected)? == UnderWay::AllOfIt {
            with_the_call_under_way.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    });
    runs::assert_survived(&format!("{which:?}"), recording, &report);
    println!("{} of the images held a call that was not acknowledged yet", with_the_call_under_way.into_inner());
}

#[test]
fn many_callers_at_once_survive_power_loss_at_every_sync() {
    let recording = runs::crowd();
    assert!(runs::log_syncs(&recording) < crowd::CALLS, "no two calls shared a commit: {}", runs::describe(&recording));
    let report = disk::check(&recording, &PLAN, crowd::survives);
    runs::assert_survived("a crowd", &recording, &report);
}

#[test]
fn a_simulated_world_survives_power_loss_at_every_sync() {
    let recording = runs::simulated(SIMULATED);
    let (tasks, syncs) = (runs::marks(&recording, "kept"), runs::log_syncs(&recording));
    assert!(tasks >= 10 && syncs >= 100, "{tasks} tasks were acknowledged, {}", runs::describe(&recording));
    let report = disk::check(&recording, &PLAN, simulated::survives);
    runs::assert_survived("a simulated world", &recording, &report);
}

#[test]
fn a_simulated_world_goes_the_same_way_on_disk_as_in_memory() {
    let directory = reopened::directory();
    let store = SqliteStore::open(reopened::options(directory.path())).unwrap();
    let plan = simulated::world_of(SIMULATED);
    let on_disk = world::run_over(&plan, Arc::new(Blocking(store)), None, false);
    let in_memory = world::run(&plan, false);
    assert!(on_disk.violation.is_none(), "{:?}", on_disk.violation);
    assert_eq!((on_disk.hash, on_disk.tally), (in_memory.hash, in_memory.tally));
}

/// The log is removed and created again, and none of that is synced for a while.
#[test]
fn a_crash_while_the_store_is_closed_and_opened_again_is_survived() {
    let which = Which { calls: 40, ..ORDINARY };
    let (recording, expected) = (runs::long_life(which), long_life::expected(which));
    let place = |call: usize| recording.events().iter().position(|event| *event == mark(call)).unwrap();
    let (before, after) = (place(which.calls / 2), place(which.calls / 2 + 1));
    let is_name = |event: &Event| matches!(event, Event::Name(..));
    let removed = before + recording.events()[before..].iter().position(is_name).unwrap();
    let closing = removed..after.min(removed + 40);
    let mut seen = BTreeSet::new();
    for point in recording.crash_points().into_iter().filter(|point| closing.contains(&point.at)) {
        for fate in (0..200).map(Fate::Mixed) {
            let crash = recording.crash(point, fate);
            let files = crash.image.files.iter().filter(|(path, _)| !path.ends_with("redrive.db-shm"));
            let is_new = seen.insert(files.map(|(path, held)| (path.clone(), held.clone())).collect::<Vec<_>>());
            let survived = if is_new { long_life::survives(&crash, &expected).map(drop) } else { Ok(()) };
            assert!(survived.is_ok(), "{point}, {fate}: {:#}", survived.unwrap_err());
        }
    }
    println!("{} images", seen.len());
}

#[test]
fn a_crash_while_coming_up_after_a_crash_is_survived() {
    let total = crash_twice(runs::ordinary_life(), 2, &Plan { between_every: 8, ..PLAN });
    println!("coming up again, all together: {total}");
}

/// Opens the store on the disks of some crashes, and crashes it again.
fn crash_twice(recording: &Recording, first_crashes: usize, plan: &Plan) -> Report {
    let points = recording.crash_points();
    let mut total = Report::default();
    for nth in 1..=first_crashes {
        let point = points[points.len() * nth / (first_crashes + 1)];
        for fate in plan.fates(point) {
            let image = recording.crash(point, fate).image;
            let before = reopened::reopen(&image, life::tenants()).unwrap();
            let again = runs::opened_again(&image);
            let report = disk::check(&again, plan, |second| {
                long_life::compare(&reopened::reopen(&second.image, life::tenants())?, &before)
            });
            runs::assert_survived(&format!("coming up after a crash {point}, {fate}"), &again, &report);
            total.sync_points += report.sync_points;
            total.points_between += report.points_between;
            total.images += report.images;
        }
    }
    total
}

#[test]
fn a_crash_while_an_old_database_is_brought_up_to_date_is_survived() {
    let (image, held) = old_version::database();
    let recording = runs::opened_again(&image);
    let report = disk::check(&recording, &Plan { mixes: 3, between_every: 3, ..PLAN }, |crash| {
        long_life::compare(&reopened::reopen(&crash.image, [acme()])?, &held)
    });
    runs::assert_survived("bringing version 1 up to date", &recording, &report);
}

#[test]
fn a_disk_that_ignores_syncs_is_found_out() {
    let recording = runs::ordinary_life();
    let expected = long_life::expected(ORDINARY);
    // All of them; those of the log; those of the directory; those of the database, which is made under this name.
    for ignored in ["", "-wal", "data", "redrive.db.new"] {
        let lying = recording.retain(|_, event| match event {
            Event::Sync(node) => !recording.name(*node).ends_with(ignored),
            _ => true,
        });
        let report = disk::check(&lying, &PLAN, |crash| long_life::survives(crash, &expected).map(drop));
        let complaint = report.failures.first().map(ToString::to_string);
        println!("syncs of {ignored:?} ignored: {complaint:?}");
        assert!(complaint.is_some(), "no check noticed that syncs of {ignored:?} were ignored");
    }
}

#[test]
fn a_disk_that_drops_a_synced_write_is_found_out() {
    let recording = runs::ordinary_life();
    let expected = long_life::expected(ORDINARY);
    let survives = |recording: &Recording, call: usize| {
        let answered = recording.events().iter().position(|event| *event == mark(call)).unwrap();
        let next = recording.crash_points().into_iter().find(|point| point.at > answered).unwrap();
        long_life::survives(&recording.crash(next, Fate::Lost), &expected)
    };
    let mut found_out = 0;
    let changes_something = |call: &usize| expected[*call] != expected[*call - 1];
    for call in (10..ORDINARY.calls).filter(changes_something).step_by(10) {
        let answered = recording.events().iter().position(|event| *event == mark(call)).unwrap();
        let is_log_write = |event: &Event| match event {
            Event::File(node, FileChange::Write { .. }) => recording.name(*node).ends_with("-wal"),
            _ => false,
        };
        let dropped = recording.events()[..answered].iter().rposition(is_log_write).unwrap();
        survives(recording, call).unwrap();
        let is_moved = |event: &Event| match event {
            Event::File(node, _) => !recording.name(*node).ends_with("-wal"),
            _ => false,
        };
        if recording.events()[dropped..answered].iter().any(is_moved) {
            // The database already contains it: it is not missed in the log.
            continue;
        }
        let lying = recording.retain(|place, _| place != dropped);
        let complaint = catch_unwind(AssertUnwindSafe(|| survives(&lying, call).is_err()));
        assert!(complaint.unwrap_or(true), "no check noticed that the last write of call {call} was dropped");
        found_out += 1;
    }
    assert!(found_out >= 1, "the database had everything already: no call could be tried");
}

fn mark(call: usize) -> Event {
    Event::Mark(call.to_string().into_bytes())
}

#[test]
fn a_life_in_a_directory_that_the_store_made_survives_too() {
    let which = Which { calls: 20, ..ORDINARY };
    assert_life_survives(&runs::life_in_a_new_directory(which), which, &PLAN);
}

#[test]
#[ignore = "takes minutes"]
fn a_longer_look() {
    let mixes = std::env::var("CRASH_MIXES").map_or(3, |mixes| mixes.parse().unwrap());
    for seed in 1..=3 {
        // The creation of a database is short, and few other points are like those of its creation.
        let short = Which { seed, calls: 2 };
        assert_life_survives(&runs::long_life(short), short, &Plan { seed, mixes: 10 * mixes, between_every: 1 });
        let which = Which { seed, calls: 300 };
        let plan = Plan { seed, mixes, between_every: 5 };
        let recording = runs::long_life(which);
        assert_life_survives(&recording, which, &plan);
        crash_twice(&recording, 4, &Plan { between_every: 2, ..plan });
        let crowd = runs::crowd();
        runs::assert_survived("a crowd", &crowd, &disk::check(&crowd, &plan, crowd::survives));
    }
}

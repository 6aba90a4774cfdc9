//! Facts about what operators set for lanes, and about the states of guards that are kept across a restart.
//!
//! A shared store keeps no states: the facts about them hold for it as they are.

use redrive_core::Lane;
use redrive_core::guards::{Controls, HeldOpen, Limits, Note};

use crate::conformance::samples::*;
use crate::conformance::whole::together;
use crate::{GuardState, GuardStates, Store};

fn note(reason: Option<&str>) -> Note {
    Note { at: at(5), by: "ops@example".to_owned(), reason: reason.map(str::to_owned) }
}

fn paused(reason: &str) -> Controls {
    Controls { pause: Some(note(Some(reason))), ..Controls::default() }
}

async fn listed(store: &dyn Store) -> Vec<(Lane, Controls)> {
    store.controls().list(None, 1_000).await.unwrap()
}

/// Names whose order changes if a store joins the two into one text, folds case or sorts by a locale.
pub(super) fn many_lanes() -> Vec<Lane> {
    let mut lanes = Vec::new();
    for tenant in ["a", "a-b", "aa", "B", "b", "a:b", "_"] {
        for dependency in ["a", "~", "!", "A", "https://a.example", "https://a.example:8443"] {
            lanes.push(lane(tenant, dependency));
        }
    }
    lanes
}

pub(super) async fn the_controls_of_a_lane_are_kept_with_every_field(store: &dyn Store) {
    let limits = Limits { concurrency: Some(0), min_concurrency: Some(1), max_concurrency: Some(u32::MAX) };
    let held_open = |until| Some(HeldOpen { note: note(None), until });
    let all = [
        ("a", paused("")),
        ("b", paused("\"quoted\", двойной, \0, \n")),
        ("c", Controls { open: held_open(None), ..Controls::default() }),
        ("d", Controls { open: held_open(Some(at(9))), ..Controls::default() }),
        ("e", Controls { limits: Some(limits), ..Controls::default() }),
        (
            "f",
            Controls {
                pause: Some(note(None)),
                open: held_open(Some(at(9))),
                limits: Some(Limits::default()),
                limits_note: Some(note(None)),
            },
        ),
    ];
    let all = all.map(|(name, controls)| (lane(TENANT, name), controls));
    for (lane, controls) in all.clone() {
        set_controls(store, lane, controls).await;
    }
    assert_eq!(listed(store).await, all);
}

pub(super) async fn controls_are_replaced_as_a_whole_and_removed_when_they_are_empty(store: &dyn Store) {
    set_controls(store, billing(), Controls::default()).await;
    assert_eq!(listed(store).await, []);
    set_controls(store, billing(), paused("first")).await;
    let limited = Controls { limits: Some(Limits::default()), ..Controls::default() };
    set_controls(store, billing(), limited.clone()).await;
    assert_eq!(listed(store).await, [(billing(), limited)]);
    for _ in 0..2 {
        set_controls(store, billing(), Controls::default()).await;
        assert_eq!(listed(store).await, []);
    }
    set_controls(store, billing(), paused("again")).await;
    assert_eq!(listed(store).await, [(billing(), paused("again"))]);
}

pub(super) async fn controls_are_replaced_only_if_they_are_the_expected_ones(store: &dyn Store) {
    let none = Controls::default;
    let replace =
        async |expected: Controls, new: Controls| store.controls().replace(billing(), expected, new).await.unwrap();
    // Expected, new, whether that was replaced, what is set then.
    for (expected, new, is_replaced, set) in [
        (paused("other"), paused("first"), false, none()),
        (none(), paused("first"), true, paused("first")),
        (none(), paused("second"), false, paused("first")),
        (none(), none(), false, paused("first")),
        (paused("other"), none(), false, paused("first")),
        (paused("first"), paused("first"), true, paused("first")),
        (paused("first"), paused("second"), true, paused("second")),
        (paused("first"), paused("third"), false, paused("second")),
        (paused("second"), none(), true, none()),
        (paused("second"), none(), false, none()),
        (none(), none(), true, none()),
    ] {
        assert_eq!(replace(expected.clone(), new.clone()).await, is_replaced, "{expected:?} by {new:?}");
        assert_eq!(controls_of(store, &billing()).await, set, "{expected:?} by {new:?}");
    }
    set_controls(store, lane(TENANT, "mail"), paused("mail")).await;
    assert!(!replace(paused("mail"), paused("first")).await, "the controls of another lane are not compared");
}

pub(super) async fn of_many_writers_at_once_none_loses_its_change_of_controls(store: &dyn Store) {
    let count = |controls: &Controls| controls.limits.and_then(|limits| limits.concurrency).unwrap_or(0);
    let add_one = async || {
        loop {
            let before = controls_of(store, &billing()).await;
            let limits = Limits { concurrency: Some(count(&before) + 1), ..Limits::default() };
            let new = Controls { limits: Some(limits), ..before.clone() };
            if store.controls().replace(billing(), before, new).await.unwrap() {
                break;
            }
        }
    };
    together((0..20).map(|_| add_one())).await;
    assert_eq!(count(&controls_of(store, &billing()).await), 20);
}

pub(super) async fn controls_belong_to_one_lane_of_one_tenant(store: &dyn Store) {
    let lanes = [lane("acme", "mail"), lane("acme", "pay"), lane("globex", "mail")];
    for lane in lanes.clone() {
        set_controls(store, lane, paused("all")).await;
    }
    set_controls(store, lanes[0].clone(), paused("mail")).await;
    set_controls(store, lanes[1].clone(), Controls::default()).await;
    assert_eq!(listed(store).await, [(lanes[0].clone(), paused("mail")), (lanes[2].clone(), paused("all"))]);
}

pub(super) async fn controls_are_listed_by_tenant_and_dependency_in_byte_order_page_by_page(store: &dyn Store) {
    let mut lanes = many_lanes();
    for lane in lanes.clone() {
        set_controls(store, lane, paused("")).await;
    }
    lanes.sort();
    for limit in [1, 4, lanes.len(), lanes.len() + 1] {
        let mut found = Vec::new();
        loop {
            let page = store.controls().list(found.last().cloned(), limit).await.unwrap();
            assert!(page.len() <= limit);
            let is_last = page.len() < limit;
            found.extend(page.into_iter().map(|(lane, _)| lane));
            if is_last {
                break;
            }
        }
        assert_eq!(found, lanes, "pages of {limit}");
    }
    assert_eq!(store.controls().list(None, 0).await.unwrap(), []);
}

pub(super) async fn a_list_of_controls_goes_on_after_a_lane_that_has_none(store: &dyn Store) {
    for name in ["a", "c", "e"] {
        set_controls(store, lane(TENANT, name), paused("")).await;
    }
    let after = store.controls().list(Some(lane(TENANT, "b")), 1).await.unwrap();
    assert_eq!(after, [(lane(TENANT, "c"), paused(""))]);
    let after = store.controls().list(Some(lane("aaa", "z")), 1).await.unwrap();
    assert_eq!(after, [(lane(TENANT, "a"), paused(""))]);
    assert_eq!(store.controls().list(Some(lane("zzz", "a")), 1).await.unwrap(), []);
}

pub(super) async fn only_a_store_with_one_owner_keeps_states_of_guards(store: &dyn Store) {
    assert!(store.is_exclusive() || store.guard_states().is_none());
}

fn state(lane: Lane, number: u32) -> GuardState {
    GuardState { lane, state: Some(guard_snapshot(number)) }
}

async fn kept(guards: &dyn GuardStates) -> Vec<GuardState> {
    guards.kept(None, 1_000).await.unwrap()
}

pub(super) async fn a_state_of_guards_is_kept_by_the_next_call_that_changes_something(store: &dyn Store) {
    let Some(guards) = store.guard_states() else { return };
    allow(store, acme()).await;
    assert_eq!(kept(guards).await, []);
    guards.keep(Vec::new());
    guards.keep(vec![state(billing(), 1), state(lane("globex", "mail"), 2)]);
    keep(store, [task(1)]).await;
    assert_eq!(kept(guards).await, [state(billing(), 1), state(lane("globex", "mail"), 2)]);
    // A state stays until another one of its lane comes.
    guards.keep(vec![state(lane("globex", "mail"), 3)]);
    set_controls(store, billing(), paused("")).await;
    assert_eq!(kept(guards).await, [state(billing(), 1), state(lane("globex", "mail"), 3)]);
}

pub(super) async fn a_later_state_of_guards_replaces_an_earlier_one(store: &dyn Store) {
    let Some(guards) = store.guard_states() else { return };
    let mut next = 0;
    // In one commit and one after the other, in one call and in several.
    for calls in [vec![vec![1]], vec![vec![2]], vec![vec![3, 4]], vec![vec![5], vec![6, 7], vec![8]]] {
        let last = *calls.last().unwrap().last().unwrap();
        for numbers in calls {
            guards.keep(numbers.into_iter().map(|number| state(billing(), number)).collect());
        }
        next += 1;
        keep(store, [task(next)]).await;
        assert_eq!(kept(guards).await, [state(billing(), last)]);
    }
}

pub(super) async fn a_lane_whose_state_is_none_has_no_kept_state(store: &dyn Store) {
    let Some(guards) = store.guard_states() else { return };
    let none = |lane| GuardState { lane, state: None };
    let other = lane("globex", "mail");
    guards.keep(vec![state(billing(), 1), state(other.clone(), 1)]);
    keep(store, [task(1)]).await;
    guards.keep(vec![none(billing())]);
    keep(store, [task(2)]).await;
    assert_eq!(kept(guards).await, [state(other.clone(), 1)]);
    // The last one counts, also before the commit; a lane without a state may lose it again.
    guards.keep(vec![state(billing(), 2), none(billing()), none(other.clone())]);
    guards.keep(vec![state(other.clone(), 2), none(lane(TENANT, "unknown"))]);
    keep(store, [task(3)]).await;
    assert_eq!(kept(guards).await, [state(other, 2)]);
}

pub(super) async fn states_of_guards_are_read_by_tenant_and_dependency_in_byte_order_page_by_page(store: &dyn Store) {
    let Some(guards) = store.guard_states() else { return };
    let mut states: Vec<GuardState> = (0..).zip(many_lanes()).map(|(number, lane)| state(lane, number)).collect();
    guards.keep(states.clone());
    keep(store, [task(1)]).await;
    states.sort_by(|a, b| a.lane.cmp(&b.lane));
    for limit in [1, 4, states.len(), states.len() + 1] {
        let mut found: Vec<GuardState> = Vec::new();
        loop {
            let page = guards.kept(found.last().map(|last| last.lane.clone()), limit).await.unwrap();
            assert!(page.len() <= limit);
            let is_last = page.len() < limit;
            found.extend(page);
            if is_last {
                break;
            }
        }
        assert_eq!(found, states, "pages of {limit}");
    }
}

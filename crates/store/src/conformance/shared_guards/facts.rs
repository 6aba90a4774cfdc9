//! Facts about shared guards, as functions that panic if the fact does not hold. Each needs fresh guards.

use redrive_core::{Lane, TenantId, Timestamp};

use super::{LATE, change, read_one, replace_one};
use crate::conformance::guards::many_lanes;
use crate::conformance::samples::*;
use crate::conformance::whole::together;
use crate::{GuardKey, SharedGuards, StateChange, VersionedState};

fn of_lane(name: &str) -> GuardKey {
    GuardKey::Lane(lane(TENANT, name))
}

async fn states(guards: &dyn SharedGuards, keys: impl IntoIterator<Item = GuardKey>) -> Vec<Option<String>> {
    let read = guards.read(keys.into_iter().collect()).await.unwrap();
    read.into_iter().map(|found| found.map(|found| found.state)).collect()
}

pub async fn a_state_is_made_once_and_replaced_by_its_version(guards: &dyn SharedGuards) {
    let key = || of_lane("a");
    assert_eq!(read_one(guards, key()).await, None);
    assert_eq!(replace_one(guards, change(key(), Some(1), "absent")).await, None);
    assert_eq!(read_one(guards, key()).await, None, "a version of a state that does not exist makes none");
    let first = replace_one(guards, change(key(), None, "first")).await.unwrap();
    assert!(first >= 1);
    assert_eq!(read_one(guards, key()).await, Some(VersionedState { version: first, state: "first".to_owned() }));
    let second = replace_one(guards, change(key(), Some(first), "second")).await.unwrap();
    let kept = Some(VersionedState { version: second, state: "second".to_owned() });
    for expected in [None, Some(first), Some(second + 1), Some(0)] {
        assert_eq!(replace_one(guards, change(key(), expected, "wrong")).await, None, "{expected:?}");
        assert_eq!(read_one(guards, key()).await, kept, "{expected:?}");
    }
}

pub async fn the_version_of_a_state_grows_and_is_never_used_again(guards: &dyn SharedGuards) {
    let (mut expected, mut last) = (None, 0);
    for round in 0..30 {
        let version = replace_one(guards, change(of_lane("a"), expected, "state")).await.unwrap();
        assert!(version > last, "{version} after {last}");
        (expected, last) = (Some(version), version);
        if round % 5 == 4 {
            assert_eq!(guards.clean(at(LATE + 1), 10).await.unwrap(), 1);
            expected = None;
        }
    }
}

pub async fn of_many_changes_each_succeeds_or_fails_alone_and_in_order(guards: &dyn SharedGuards) {
    let origin = || GuardKey::Origin(acme(), "https://d.example".to_owned());
    let c = replace_one(guards, change(of_lane("c"), None, "c")).await.unwrap();
    let d = replace_one(guards, change(origin(), None, "d")).await.unwrap();
    let changes = vec![
        change(of_lane("z"), None, "new z"),
        change(origin(), Some(d + 1), "wrong"),
        change(of_lane("c"), Some(c), "new c"),
        change(of_lane("b"), Some(1), "wrong"),
        change(of_lane("a"), None, "new a"),
    ];
    let answers = guards.replace(changes).await.unwrap();
    let replaced: Vec<bool> = answers.iter().map(Option::is_some).collect();
    assert_eq!(replaced, [true, false, true, false, true]);
    let keys = [of_lane("a"), of_lane("b"), of_lane("c"), origin(), of_lane("z"), of_lane("c")];
    let found = guards.read(keys.to_vec()).await.unwrap();
    let found: Vec<_> = found.into_iter().map(|found| found.map(|found| (Some(found.version), found.state))).collect();
    let kept = |version, state: &str| Some((version, state.to_owned()));
    let new_c = kept(answers[2], "new c");
    let expected =
        [kept(answers[4], "new a"), None, new_c.clone(), kept(Some(d), "d"), kept(answers[0], "new z"), new_c];
    assert_eq!(found, expected);
}

pub async fn of_many_writers_at_once_one_replaces_a_state(guards: &dyn SharedGuards) {
    let mut expected = None;
    for _ in 0..10 {
        let writers = (0..8).map(|n| replace_one(guards, change(of_lane("a"), expected, &format!("of {n}"))));
        let answers = (0..).zip(together(writers).await);
        let winners: Vec<(u32, u64)> = answers.filter_map(|(n, answer)| Some((n, answer?))).collect();
        let [(winner, version)] = winners[..] else { panic!("{winners:?}") };
        let kept = VersionedState { version, state: format!("of {winner}") };
        assert_eq!(read_one(guards, of_lane("a")).await, Some(kept));
        expected = Some(version);
    }
}

pub async fn writers_of_the_same_keys_in_other_orders_lose_no_change(guards: &dyn SharedGuards) {
    const KEYS: usize = 10;
    const ROUNDS: usize = 10;
    const WRITERS: usize = 4;
    // Each writer counts every key up, from its own place in the list, and repeats what another one has changed.
    let count_up = |writer: usize| async move {
        for _ in 0..ROUNDS {
            let mut left: Vec<GuardKey> = (0..KEYS).map(|n| of_lane(&format!("{}", (n + writer) % KEYS))).collect();
            if writer % 2 == 1 {
                left.reverse();
            }
            while !left.is_empty() {
                let found = guards.read(left.clone()).await.unwrap();
                let next = |(key, found): (&GuardKey, Option<VersionedState>)| {
                    let count = found.as_ref().map_or(0, |found| found.state.parse::<usize>().unwrap());
                    change(key.clone(), found.map(|found| found.version), &(count + 1).to_string())
                };
                let answers = guards.replace(left.iter().zip(found).map(next).collect()).await.unwrap();
                let mut answers = answers.into_iter();
                left.retain(|_| answers.next().unwrap().is_none());
            }
        }
    };
    together((0..WRITERS).map(count_up)).await;
    let counted = states(guards, (0..KEYS).map(|n| of_lane(&n.to_string()))).await;
    assert_eq!(counted, vec![Some((ROUNDS * WRITERS).to_string()); KEYS]);
}

pub async fn lanes_and_origins_of_the_same_name_and_of_other_tenants_have_states_of_their_own(
    guards: &dyn SharedGuards,
) {
    let origin = |tenant: &str, name: &str| GuardKey::Origin(TenantId::try_new(tenant).unwrap(), name.to_owned());
    let keys = [
        GuardKey::Lane(lane("a", "x")),
        origin("a", "x"),
        GuardKey::Lane(lane("b", "x")),
        origin("b", "x"),
        GuardKey::Lane(lane("a", "X")),
        origin("a", "X"),
    ];
    for (n, key) in keys.iter().enumerate() {
        assert!(replace_one(guards, change(key.clone(), None, &n.to_string())).await.is_some(), "{key:?}");
    }
    assert_eq!(states(guards, keys).await, (0..6).map(|n| Some(n.to_string())).collect::<Vec<_>>());
}

pub async fn names_and_states_are_kept_whatever_characters_they_have(guards: &dyn SharedGuards) {
    let long = "x".repeat(50_000);
    let texts = ["", "{\"a\":\"\\u0000\"}", "'quoted\", \\, %, двойной, 🦀, \u{1}\r\n\t\u{7f}", "NULL", "{}", &long];
    let names = ["!", "~", "'", "\"", "\\", "{},", "NULL", "http://[::1]:80", "%_", "*"];
    let mut keys: Vec<GuardKey> = names.iter().map(|name| of_lane(name)).collect();
    let origins = names.iter().chain(&["", " ", "null", "é, ü"]);
    keys.extend(origins.map(|name| GuardKey::Origin(acme(), (*name).to_owned())));
    for (n, text) in texts.iter().enumerate() {
        let found = guards.read(keys.clone()).await.unwrap();
        let next = |(key, found): (&GuardKey, Option<VersionedState>)| {
            change(key.clone(), found.map(|found| found.version), &format!("{n}{text}"))
        };
        let answers = guards.replace(keys.iter().zip(found).map(next).collect()).await.unwrap();
        assert!(answers.iter().all(Option::is_some), "{text:?}: {answers:?}");
        assert_eq!(states(guards, keys.clone()).await, vec![Some(format!("{n}{text}")); keys.len()]);
    }
}

fn open(lane: Lane, expected: Option<u64>) -> StateChange {
    StateChange { is_closed: false, ..change(GuardKey::Lane(lane), expected, "open") }
}

pub async fn lanes_that_are_not_closed_are_listed_in_byte_order_page_by_page(guards: &dyn SharedGuards) {
    let mut lanes = many_lanes();
    let closed = |lane: &Lane| lane.dependency.as_str() == "~";
    let next = |lane: &Lane| StateChange { is_closed: closed(lane), ..open(lane.clone(), None) };
    guards.replace(lanes.iter().map(next).collect()).await.unwrap();
    replace_one(guards, change(GuardKey::Origin(acme(), "a".to_owned()), None, "origin")).await;
    lanes.retain(|lane| !closed(lane));
    lanes.sort();
    for limit in [1, 4, lanes.len(), lanes.len() + 1] {
        let mut found: Vec<Lane> = Vec::new();
        loop {
            let page = guards.not_closed(found.last().cloned(), limit).await.unwrap();
            assert!(page.len() <= limit && page.iter().all(|(_, state)| state.state == "open"));
            let is_last = page.len() < limit;
            found.extend(page.into_iter().map(|(lane, _)| lane));
            if is_last {
                break;
            }
        }
        assert_eq!(found, lanes, "pages of {limit}");
    }
    assert_eq!(guards.not_closed(None, 0).await.unwrap(), []);
    let between = guards.not_closed(Some(lane("a", "b")), 1).await.unwrap();
    assert_eq!(between[0].0, lane("a", "https://a.example"), "after a lane that has no state");
}

pub async fn a_list_of_lanes_has_them_as_they_are_now(guards: &dyn SharedGuards) {
    let opened = replace_one(guards, open(billing(), None)).await;
    let listed =
        |version: Option<u64>| [(billing(), VersionedState { version: version.unwrap(), state: "open".to_owned() })];
    assert_eq!(guards.not_closed(None, 10).await.unwrap(), listed(opened));
    let closed = replace_one(guards, change(GuardKey::Lane(billing()), opened, "closed")).await;
    assert_eq!(guards.not_closed(None, 10).await.unwrap(), []);
    let opened = replace_one(guards, open(billing(), closed)).await;
    assert_eq!(guards.not_closed(None, 10).await.unwrap(), listed(opened));
    assert_eq!(guards.clean(at(LATE + 1), 10).await.unwrap(), 1);
    assert_eq!(guards.not_closed(None, 10).await.unwrap(), []);
}

pub async fn only_expired_states_are_deleted_and_no_more_than_asked_for(guards: &dyn SharedGuards) {
    let expiring = |n: u64| {
        let key = match n % 2 {
            0 => of_lane(&n.to_string()),
            _ => GuardKey::Origin(acme(), n.to_string()),
        };
        StateChange { expires_at: at(n), ..change(key, None, "state") }
    };
    let changes: Vec<StateChange> = (0..10).map(expiring).collect();
    let keys: Vec<GuardKey> = changes.iter().map(|change| change.key.clone()).collect();
    guards.replace(changes).await.unwrap();
    let left = async || states(guards, keys.clone()).await.iter().map(Option::is_some).collect::<Vec<_>>();
    assert_eq!(guards.clean(at(0), 10).await.unwrap(), 0, "none expired before");
    assert_eq!(guards.clean(at(6), 0).await.unwrap(), 0);
    assert_eq!(left().await, [true; 10]);
    assert_eq!(guards.clean(at(6), 4).await.unwrap(), 4);
    assert_eq!(left().await.iter().filter(|is_left| **is_left).count(), 6);
    assert_eq!(guards.clean(at(6), 4).await.unwrap(), 2);
    assert_eq!(left().await, (0..10).map(|n| n >= 6).collect::<Vec<_>>());
    assert_eq!(guards.clean(at(6), 4).await.unwrap(), 0);
    // A replacement also replaces the time of expiry.
    let version = read_one(guards, keys[6].clone()).await.map(|found| found.version);
    replace_one(guards, change(keys[6].clone(), version, "longer")).await;
    assert_eq!(guards.clean(at(100), 10).await.unwrap(), 3);
    assert_eq!(left().await, (0..10).map(|n| n == 6).collect::<Vec<_>>());
    assert_eq!(guards.clean(Timestamp::MAX, 10).await.unwrap(), 1);
}

pub async fn a_call_without_keys_changes_nothing(guards: &dyn SharedGuards) {
    assert_eq!(guards.read(Vec::new()).await.unwrap(), []);
    assert_eq!(guards.replace(Vec::new()).await.unwrap(), []);
    assert_eq!(guards.not_closed(None, 10).await.unwrap(), []);
    assert_eq!(guards.clean(Timestamp::MAX, 10).await.unwrap(), 0);
}

//! Facts about listing and counting tasks.

use redrive_core::{Dependency, PolicyId, Reason, Status, TaskId, policy};

use crate::conformance::samples::*;
use crate::{Expected, Store, TaskQuery};

async fn ids(store: &dyn Store, query: TaskQuery) -> Vec<TaskId> {
    list(store, query).await.into_iter().map(|found| found.task.id).collect()
}

fn newest_first(numbers: impl IntoIterator<Item = u64>) -> Vec<TaskId> {
    let mut ids: Vec<_> = numbers.into_iter().map(id).collect();
    ids.sort_by(|one, other| other.cmp(one));
    ids
}

pub(crate) async fn tasks_are_listed_newest_first_page_by_page(store: &dyn Store) {
    keep(store, (0..25).map(task)).await;
    for limit in [1, 7, 24, 25, 26, 1_000] {
        let found = ids(store, TaskQuery { limit, ..everything(acme()) }).await;
        assert_eq!(found, newest_first(0..25), "in pages of {limit}");
    }
    let below = ids(store, TaskQuery { below: Some(id(10)), ..everything(acme()) }).await;
    assert_eq!(below, newest_first(0..10));
}

pub(crate) async fn a_listed_task_comes_with_its_request_and_its_answer(store: &dyn Store) {
    let claimed = keep_and_end(store, task(1).label("a", "b"), Status::Succeeded, at(9)).await;
    let listed = list(store, everything(acme())).await;
    assert_eq!(listed, [detail(store, &claimed.task).await]);
    assert!(listed[0].answer.is_some());
}

pub(crate) async fn a_list_is_narrowed_by_status(store: &dyn Store) {
    let ends = [(1, Status::Succeeded), (2, Status::Failed), (3, Status::Exhausted), (4, Status::Failed)];
    for (n, status) in ends {
        keep_and_end(store, task(n), status, at(9)).await;
    }
    keep(store, [task(5).claimed(at(0)), task(6), task(7)]).await;
    store.tasks().cancel_one(acme(), id(7), at(1)).await.unwrap();
    let cases: [(&[Status], &[u64]); 7] = [
        (&[], &[1, 2, 3, 4, 5, 6, 7]),
        (&[Status::Pending], &[6]),
        (&[Status::InFlight], &[5]),
        (&[Status::Succeeded], &[1]),
        (&[Status::Failed, Status::Exhausted], &[2, 3, 4]),
        (&[Status::Cancelled, Status::Pending], &[6, 7]),
        (&Status::ALL, &[1, 2, 3, 4, 5, 6, 7]),
    ];
    for (statuses, expected) in cases {
        for limit in [1, 100] {
            let query = TaskQuery { statuses: statuses.to_vec(), limit, ..everything(acme()) };
            assert_eq!(ids(store, query).await, newest_first(expected.iter().copied()), "{statuses:?}");
        }
    }
}

pub(crate) async fn a_list_is_narrowed_by_the_beginning_of_the_ids(store: &dyn Store) {
    // Three ids of one millisecond, two of the next, and one much later.
    let millisecond = 1 << 15;
    let numbers = [0, 1, 8, millisecond, millisecond + 5, millisecond << 20];
    keep_and_end(store, task(9), Status::Failed, at(9)).await;
    keep(store, numbers.map(task)).await;
    keep(store, [task(10).of("globex")]).await;
    let text = |n: u64| id(n).to_string();
    let cases: [(&str, &[Status], &[u64]); 7] = [
        (&text(0)[..1], &[], &[0, 1, 8, 9, millisecond, millisecond + 5, millisecond << 20]),
        (&text(0)[..13], &[], &[0, 1, 8, 9]),
        (&text(millisecond)[..13], &[], &[millisecond, millisecond + 5]),
        (&text(8)[..18], &[], &[8, 9]),
        (&text(8), &[], &[8]),
        (&text(0)[..13], &[Status::Failed, Status::Exhausted], &[9]),
        (&text(0)[..13], &[Status::InFlight], &[]),
    ];
    for (beginning, statuses, expected) in cases {
        for limit in [1, 2, 100] {
            let id_prefix = Some(beginning.parse().unwrap());
            let query = TaskQuery { id_prefix, statuses: statuses.to_vec(), limit, ..everything(acme()) };
            let found = ids(store, query).await;
            assert_eq!(found, newest_first(expected.iter().copied()), "{beginning} {statuses:?} {limit}");
        }
    }
    // The random rest of an id counts, too.
    let other = TaskId::from_parts(id(8).sequence(), id(8).tail() ^ 1);
    let query = TaskQuery { id_prefix: Some(other.to_string().parse().unwrap()), ..everything(acme()) };
    assert_eq!(ids(store, query).await, []);
    let of_another = TaskQuery { id_prefix: Some(text(10).parse().unwrap()), ..everything(acme()) };
    assert_eq!(ids(store, of_another).await, [], "a task of another tenant");
}

pub(crate) async fn the_dead_letters_are_the_failed_and_the_exhausted(store: &dyn Store) {
    let ends = [
        (Status::Failed, Some(Reason::NotRetryable)),
        (Status::Exhausted, Some(Reason::Attempts)),
        (Status::Exhausted, Some(Reason::Deadline)),
        (Status::Succeeded, None),
        (Status::Exhausted, Some(Reason::OutcomeUnknown)),
    ];
    for (n, (status, reason)) in (1..).zip(ends) {
        let claimed = keep_and_claim(store, task(n)).await;
        settle(store, end(&claimed, status, reason, at(9))).await;
    }
    let statuses: Vec<_> = Status::ALL.into_iter().filter(|status| status.is_dead_letter()).collect();
    let letters = list(store, TaskQuery { statuses, ..everything(acme()) }).await;
    let reasons: Vec<_> = letters.iter().rev().map(|found| found.task.reason).collect();
    let expected = [Reason::NotRetryable, Reason::Attempts, Reason::Deadline, Reason::OutcomeUnknown].map(Some);
    assert_eq!(reasons, expected);
}

pub(crate) async fn a_list_is_narrowed_by_dependency(store: &dyn Store) {
    keep(store, [task(1).to("a"), task(2).to("b"), task(3).to("a"), task(4).to("A"), task(5).to("ab")]).await;
    let dependency = Some(Dependency::try_new("a").unwrap());
    assert_eq!(ids(store, TaskQuery { dependency, ..everything(acme()) }).await, newest_first([1, 3]));
}

pub(crate) async fn a_list_is_narrowed_by_policy_whatever_its_version(store: &dyn Store) {
    for attempts in [2, 3] {
        let spec = policy::Spec { max_attempts: Some(attempts), ..policy::Spec::default() };
        store.policies().put(acme(), policy_id("hooks"), spec, Expected::Anything, at(0)).await.unwrap();
        // A task for each version, so that neither version is cleaned away.
        let version = attempts - 1;
        keep(store, [task(u64::from(version)).policy("hooks", version)]).await;
    }
    keep(store, [task(3), task(4).policy("hooks", 2)]).await;
    let of = |policy| TaskQuery { policy: Some(policy), ..everything(acme()) };
    assert_eq!(ids(store, of(policy_id("hooks"))).await, newest_first([1, 2, 4]));
    assert_eq!(ids(store, of(PolicyId::default_policy())).await, newest_first([3]));
    assert_eq!(ids(store, of(policy_id("hook"))).await, []);
}

pub(crate) async fn a_list_is_narrowed_by_all_of_the_labels_exactly(store: &dyn Store) {
    keep(
        store,
        [
            task(1).label("team", "payments").label("größe", "zwölf 🦀"),
            task(2).label("team", "payments"),
            task(3).label("team", "payments%"),
            task(4).label("team", "payment_"),
            task(5).label("te\"am", "pay\\ments'; --").label("", ""),
            task(6),
            task(7).label("payments", "team"),
        ],
    )
    .await;
    type Labels<'a> = &'a [(&'a str, &'a str)];
    let cases: [(Labels<'_>, &[u64]); 9] = [
        (&[("team", "payments")], &[1, 2]),
        (&[("team", "payments"), ("größe", "zwölf 🦀")], &[1]),
        (&[("team", "payments%")], &[3]),
        (&[("team", "payment_")], &[4]),
        (&[("te\"am", "pay\\ments'; --")], &[5]),
        (&[("", "")], &[5]),
        (&[("team", "")], &[]),
        (&[("Team", "payments")], &[]),
        (&[("payments", "team")], &[7]),
    ];
    for (labels, expected) in cases {
        let labels = labels.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let found = ids(store, TaskQuery { labels, ..everything(acme()) }).await;
        assert_eq!(found, newest_first(expected.iter().copied()));
    }
}

pub(crate) async fn a_list_is_narrowed_by_acceptance_from_inclusive_to_exclusive(store: &dyn Store) {
    keep(store, (0..10).map(|n| task(n).created(at(n * 100)))).await;
    let cases = [
        (Some(300), None, 3..10),
        (Some(301), None, 4..10),
        (None, Some(300), 0..3),
        (None, Some(301), 0..4),
        (Some(200), Some(500), 2..5),
        (Some(200), Some(200), 0..0),
        (Some(5_000), None, 0..0),
    ];
    for (from, before, expected) in cases {
        let (created_from, created_before) = (from.map(at), before.map(at));
        let query = TaskQuery { created_from, created_before, limit: 2, ..everything(acme()) };
        assert_eq!(ids(store, query).await, newest_first(expected), "{from:?} to {before:?}");
    }
}

pub(crate) async fn filters_narrow_together(store: &dyn Store) {
    let sample = |n: u64| {
        let (dependency, team) =
            (["even", "odd"][n as usize % 2], ["red", "blue", "blue", "blue", "blue"][n as usize % 5]);
        task(n).to(dependency).label("team", team).created(at(n))
    };
    keep(store, (0..100).map(sample)).await;
    claim(store, lane(TENANT, "even"), 40, at(10)).await;
    let query = TaskQuery {
        statuses: vec![Status::Pending],
        dependency: Some(Dependency::try_new("even").unwrap()),
        labels: [("team".to_owned(), "red".to_owned())].into(),
        created_from: Some(at(10)),
        created_before: Some(at(90)),
        limit: 3,
        ..everything(acme())
    };
    let found = list(store, query).await;
    let all = list(store, everything(acme())).await;
    let expected = all.into_iter().filter(|found| {
        let n = found.task.created_at.since(at(0)).as_millis();
        found.task.status == Status::Pending && n % 10 == 0 && (10..90).contains(&n)
    });
    assert_eq!(found, expected.collect::<Vec<_>>());
}

pub(crate) async fn a_rare_match_is_found_however_many_tasks_are_in_between(store: &dyn Store) {
    for thousand in 0..12 {
        keep(store, (0..1_000).map(|n| task(thousand * 1_000 + n))).await;
    }
    keep(store, [task(20_000)]).await;
    for n in [0, 6_000, 11_999] {
        store.tasks().cancel_one(acme(), id(n), at(9)).await.unwrap();
    }
    let query = TaskQuery { statuses: vec![Status::Cancelled], ..everything(acme()) };
    assert_eq!(ids(store, query).await, newest_first([0, 6_000, 11_999]));
}

pub(crate) async fn a_tenant_cannot_list_or_read_tasks_of_another(store: &dyn Store) {
    keep(store, [task(1), task(2).of("other"), task(3)]).await;
    assert_eq!(ids(store, everything(acme())).await, newest_first([1, 3]));
    assert_eq!(ids(store, everything(tenant("other"))).await, newest_first([2]));
    assert_eq!(ids(store, everything(tenant("nobody"))).await, []);
    assert_eq!(store.reads().task(acme(), id(2)).await.unwrap(), None);
    assert_eq!(store.reads().task(tenant("other"), id(1)).await.unwrap(), None);
}

pub(crate) async fn an_id_that_differs_only_in_its_random_part_is_no_task(store: &dyn Store) {
    let claimed = keep_and_claim(store, task(1)).await;
    let near = TaskId::from_parts(id(1).sequence(), id(1).tail() ^ 1);
    assert_eq!(store.reads().task(acme(), near).await.unwrap(), None);
    assert_eq!(store.reads().attempts(acme(), near, 0, 10).await.unwrap(), None);
    assert_eq!(store.tasks().cancel_one(acme(), near, at(9)).await.unwrap(), crate::CancelOutcome::NotFound);
    assert_eq!(
        store.tasks().bring_one_forward(acme(), near, at(9)).await.unwrap(),
        crate::BringForwardOutcome::NotFound
    );
    let settlement = crate::Settlement { id: near, ..succeed(&claimed, at(9)) };
    assert_eq!(settle(store, settlement).await, crate::Settled::LeaseLost);
    assert_eq!(now_of(store, &claimed.task).await, claimed.task);
}

pub(crate) async fn counts_follow_every_step_of_a_life(store: &dyn Store) {
    assert_eq!(counts(store, acme()).await, [0; 6]);
    keep(store, [task(1), task(2), task(3).claimed(at(0))]).await;
    assert_eq!(counts(store, acme()).await, [2, 1, 0, 0, 0, 0]);
    let claimed = claim(store, billing(), 2, at(0)).await;
    assert_eq!(counts(store, acme()).await, [0, 3, 0, 0, 0, 0]);
    settle(store, retry(&claimed[0], at(5), at(6))).await;
    assert_eq!(counts(store, acme()).await, [1, 2, 0, 0, 0, 0]);
    store.tasks().bring_one_forward(acme(), claimed[0].task.id, at(5)).await.unwrap();
    assert_eq!(counts(store, acme()).await, [1, 2, 0, 0, 0, 0]);
    settle(store, succeed(&claimed[1], at(5))).await;
    assert_eq!(counts(store, acme()).await, [1, 1, 1, 0, 0, 0]);
    store.tasks().cancel_one(acme(), claimed[0].task.id, at(5)).await.unwrap();
    store.tasks().cancel_one(acme(), id(3), at(5)).await.unwrap();
    assert_eq!(counts(store, acme()).await, [0, 1, 1, 0, 0, 1]);
    assert_eq!(counts(store, tenant("other")).await, [0; 6]);
}

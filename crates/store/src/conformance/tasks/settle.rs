//! Facts about ending and rescheduling attempts.

use std::time::Duration;

use redrive_core::attempt::LastError;
use redrive_core::{Attempt, ErrorType, Outcome, Reason, Status, Task, TenantId};

use crate::conformance::samples::*;
use crate::{Next, Settled, Settlement, Store, Token};

pub(crate) async fn a_success_ends_the_task(store: &dyn Store) {
    let claimed = keep_and_claim(store, task(1)).await;
    assert_eq!(settle(store, succeed(&claimed, at(40))).await, Settled::Done(Status::Succeeded));
    let found = detail(store, &claimed.task).await;
    let expected =
        Task { status: Status::Succeeded, next_attempt_at: None, ended_at: Some(at(40)), ..claimed.task.clone() };
    assert_eq!(found.task, expected);
    assert_eq!(found.answer, Some(*answer(200)));
    assert_eq!(attempts(store, &claimed.task).await, [successful_attempt(&claimed)]);
}

pub(crate) async fn a_retry_waits_for_its_next_attempt(store: &dyn Store) {
    let claimed = keep_and_claim(store, task(1)).await;
    let settlement = retry(&claimed, at(40), at(900));
    assert_eq!(settle(store, settlement.clone()).await, Settled::Done(Status::Pending));
    let found = detail(store, &claimed.task).await;
    let expected = Task {
        status: Status::Pending,
        next_attempt_at: Some(at(900)),
        backoff: Some(Duration::from_millis(860)),
        last_error: failed_attempt(&claimed).error,
        ..claimed.task.clone()
    };
    assert_eq!(found.task, expected);
    assert_eq!(found.answer, None, "an answer is kept once the task has ended");
    assert_eq!(attempts(store, &claimed.task).await, [settlement.attempt.unwrap()]);
}

pub(crate) async fn each_end_keeps_its_status_and_reason(store: &dyn Store) {
    let ends = [
        (Status::Failed, Reason::NotRetryable),
        (Status::Failed, Reason::BodyLost),
        (Status::Failed, Reason::PolicyLost),
        (Status::Exhausted, Reason::Attempts),
        (Status::Exhausted, Reason::DnsAttempts),
        (Status::Exhausted, Reason::Deadline),
        (Status::Exhausted, Reason::RetryAfter),
        (Status::Exhausted, Reason::OutcomeUnknown),
        (Status::Cancelled, Reason::Cancelled),
    ];
    for ((status, reason), n) in ends.into_iter().zip(1..) {
        let claimed = keep_and_claim(store, task(n)).await;
        assert_eq!(settle(store, end(&claimed, status, Some(reason), at(7))).await, Settled::Done(status));
        let found = now_of(store, &claimed.task).await;
        assert_eq!((found.status, found.reason), (status, Some(reason)));
        assert_eq!((found.ended_at, found.next_attempt_at), (Some(at(7)), None));
    }
}

pub(crate) async fn a_settle_with_a_stale_token_changes_nothing(store: &dyn Store) {
    let stale = keep_and_claim(store, task(1)).await;
    settle(store, retry(&stale, at(10), at(20))).await;
    let current = claim(store, billing(), 1, at(20)).await.remove(0);
    let log = attempts(store, &current.task).await;
    for token in [Token(0), stale.lease.token, Token(current.lease.token.0 + 1), Token(u64::MAX >> 1)] {
        for settlement in [succeed(&stale, at(30)), retry(&stale, at(30), at(40)), unsent(&stale, at(30), at(40))] {
            assert_eq!(settle(store, Settlement { token, ..settlement }).await, Settled::LeaseLost);
        }
    }
    assert_eq!(now_of(store, &current.task).await, current.task);
    assert_eq!(attempts(store, &current.task).await, log);
    assert_eq!(settle(store, succeed(&current, at(50))).await, Settled::Done(Status::Succeeded));
}

pub(crate) async fn a_task_that_is_not_in_flight_cannot_be_settled(store: &dyn Store) {
    let claimed = keep_and_claim(store, task(1)).await;
    settle(store, retry(&claimed, at(10), at(20))).await;
    let pending = now_of(store, &claimed.task).await;
    assert_eq!(settle(store, succeed(&claimed, at(30))).await, Settled::LeaseLost, "the token is still the latest");
    assert_eq!(now_of(store, &claimed.task).await, pending);
}

pub(crate) async fn a_task_ends_exactly_once(store: &dyn Store) {
    let claimed = keep_and_claim(store, task(1)).await;
    settle(store, end(&claimed, Status::Failed, Some(Reason::NotRetryable), at(10))).await;
    let (ended, log) = (detail(store, &claimed.task).await, attempts(store, &claimed.task).await);
    let later = [
        succeed(&claimed, at(20)),
        retry(&claimed, at(20), at(30)),
        end(&claimed, Status::Failed, Some(Reason::NotRetryable), at(20)),
    ];
    for settlement in later {
        assert_eq!(settle(store, settlement).await, Settled::LeaseLost);
    }
    assert_eq!(detail(store, &claimed.task).await, ended);
    assert_eq!(attempts(store, &claimed.task).await, log);
    assert_eq!(counts(store, acme()).await, [0, 0, 0, 1, 0, 0]);
}

pub(crate) async fn of_two_settlements_in_one_call_the_first_wins(store: &dyn Store) {
    let claimed = keep_and_claim(store, task(1)).await;
    let settled = store.tasks().settle(vec![retry(&claimed, at(10), at(20)), succeed(&claimed, at(11))]).await.unwrap();
    assert_eq!(settled, [Settled::Done(Status::Pending), Settled::LeaseLost]);
    assert_eq!(attempts(store, &claimed.task).await.len(), 1);
}

pub(crate) async fn a_settlement_of_another_tenants_task_or_of_none_changes_nothing(store: &dyn Store) {
    let claimed = keep_and_claim(store, task(1)).await;
    keep(store, [task(2).of("other")]).await;
    let other_tenant = Settlement { tenant: tenant("other"), ..succeed(&claimed, at(5)) };
    let default_tenant = Settlement { tenant: TenantId::default_tenant(), ..succeed(&claimed, at(5)) };
    let nothing = Settlement { id: id(77), ..succeed(&claimed, at(5)) };
    for settlement in [other_tenant, default_tenant, nothing] {
        assert_eq!(settle(store, settlement).await, Settled::LeaseLost);
    }
    assert_eq!(now_of(store, &claimed.task).await, claimed.task);
}

pub(crate) async fn settlements_are_answered_in_order(store: &dyn Store) {
    keep(store, (0..6).map(|n| task(n).due(at(n)))).await;
    let claimed = claim(store, billing(), 6, at(10)).await;
    let settled = store
        .tasks()
        .settle(vec![
            succeed(&claimed[3], at(20)),
            Settlement { token: Token(9), ..succeed(&claimed[0], at(20)) },
            retry(&claimed[5], at(20), at(30)),
            end(&claimed[1], Status::Exhausted, Some(Reason::Deadline), at(20)),
        ])
        .await
        .unwrap();
    let expected = [
        Settled::Done(Status::Succeeded),
        Settled::LeaseLost,
        Settled::Done(Status::Pending),
        Settled::Done(Status::Exhausted),
    ];
    assert_eq!(settled, expected);
    assert_eq!(counts(store, acme()).await, [1, 3, 1, 0, 1, 0]);
}

pub(crate) async fn an_attempt_that_was_never_sent_is_taken_back(store: &dyn Store) {
    let first = keep_and_claim(store, task(1)).await;
    settle(store, unsent(&first, at(10), at(20))).await;
    let found = now_of(store, &first.task).await;
    assert_eq!((found.status, found.attempt_number, found.next_attempt_at), (Status::Pending, 0, Some(at(20))));
    assert_eq!(attempts(store, &first.task).await, []);

    let second = claim(store, billing(), 1, at(20)).await.remove(0);
    settle(store, retry(&second, at(30), at(40))).await;
    let third = claim(store, billing(), 1, at(40)).await.remove(0);
    assert_eq!((second.task.attempt_number, third.task.attempt_number), (1, 2));
    settle(store, unsent(&third, at(50), at(60))).await;
    let found = now_of(store, &first.task).await;
    assert_eq!((found.attempt_number, found.last_error), (1, failed_attempt(&second).error));
    assert_eq!(attempts(store, &first.task).await.len(), 1);
}

pub(crate) async fn a_task_can_end_without_its_attempt_having_been_sent(store: &dyn Store) {
    let claimed = keep_and_claim(store, task(1)).await;
    let next = Next::End { status: Status::Exhausted, reason: Some(Reason::Deadline), answer: None };
    assert_eq!(settle(store, settlement(&claimed, None, next, at(9))).await, Settled::Done(Status::Exhausted));
    let found = detail(store, &claimed.task).await;
    assert_eq!((found.task.attempt_number, found.task.ended_at, found.answer), (0, Some(at(9)), None));
    assert_eq!(attempts(store, &claimed.task).await, []);
}

pub(crate) async fn the_last_error_stays_until_another_one_comes(store: &dyn Store) {
    let error = |kind, message: &str| Some(LastError { kind, message: message.to_owned() });
    let first = error(ErrorType::Dns, "first");
    let second = error(ErrorType::ReadTimeout, "second");
    let steps = [(None, None), (first.clone(), first.clone()), (None, first), (second.clone(), second.clone())];
    let mut claimed = keep_and_claim(store, task(1)).await;
    for (given, expected) in steps {
        let attempt = Attempt { error: given, ..failed_attempt(&claimed) };
        let next = Next::RetryAt { at: at(5), backoff: None, dns_failures: 0 };
        settle(store, settlement(&claimed, Some(attempt), next, at(5))).await;
        claimed = claim(store, billing(), 1, at(5)).await.remove(0);
        assert_eq!(claimed.task.last_error, expected);
    }
    settle(store, succeed(&claimed, at(9))).await;
    assert_eq!(now_of(store, &claimed.task).await.last_error, second, "a success keeps it for the record");
}

pub(crate) async fn a_settlement_replaces_the_drawn_backoff(store: &dyn Store) {
    let mut claimed = keep_and_claim(store, task(1)).await;
    for backoff in [Some(Duration::from_millis(1)), Some(Duration::ZERO), None, Some(Duration::from_secs(86_400))] {
        let next = Next::RetryAt { at: at(5), backoff, dns_failures: 0 };
        settle(store, settlement(&claimed, Some(failed_attempt(&claimed)), next, at(5))).await;
        claimed = claim(store, billing(), 1, at(5)).await.remove(0);
        assert_eq!(claimed.task.backoff, backoff);
    }
}

pub(crate) async fn an_expired_lease_still_counts_if_it_was_not_taken_over(store: &dyn Store) {
    let claimed = keep_and_claim(store, task(1)).await;
    let late = at(9_000_000);
    assert!(late > claimed.lease.until);
    assert_eq!(settle(store, succeed(&claimed, late)).await, Settled::Done(Status::Succeeded));
}

pub(crate) async fn the_attempt_log_keeps_every_field(store: &dyn Store) {
    let mut claimed = keep_and_claim(store, task(1)).await;
    let mut logged = Vec::new();
    for kind in ErrorType::ALL.map(Some).into_iter().chain([None]) {
        let n = claimed.task.attempt_number;
        let attempt = Attempt {
            number: n,
            // As for a replayed task: this number is stored, not computed.
            number_in_run: n.div_ceil(2),
            started_at: at(u64::from(n) * 7),
            duration: (n % 3 != 0).then_some(Duration::from_millis(u64::from(n) * 11)),
            outcome: Outcome::ALL[n as usize % Outcome::ALL.len()],
            response_status: (n % 2 == 0).then_some(100 + n as u16 * 30),
            error: kind.map(|kind| LastError { kind, message: format!("“{n}”\n'; --\u{1F980}") }),
            backoff: (n % 4 != 0).then(|| Duration::from_millis(u64::from(n % 4) - 1)),
        };
        let next = Next::RetryAt { at: at(5), backoff: None, dns_failures: 0 };
        assert_eq!(
            settle(store, settlement(&claimed, Some(attempt.clone()), next, at(5))).await,
            Settled::Done(Status::Pending)
        );
        logged.push(attempt);
        claimed = claim(store, billing(), 1, at(5)).await.remove(0);
    }
    assert_eq!(attempts(store, &claimed.task).await, logged);
}

pub(crate) async fn attempts_are_read_page_by_page(store: &dyn Store) {
    let mut claimed = keep_and_claim(store, task(1)).await;
    for _ in 0..25 {
        settle(store, retry(&claimed, at(5), at(5))).await;
        claimed = claim(store, billing(), 1, at(5)).await.remove(0);
    }
    let page = async |after, limit| {
        let page = store.reads().attempts(acme(), id(1), after, limit).await.unwrap().unwrap();
        page.into_iter().map(|attempt| attempt.number).collect::<Vec<_>>()
    };
    assert_eq!(page(0, 10).await, (1..=10).collect::<Vec<_>>());
    assert_eq!(page(10, 10).await, (11..=20).collect::<Vec<_>>());
    assert_eq!(page(20, 10).await, (21..=25).collect::<Vec<_>>());
    assert_eq!(page(25, 10).await, [0; 0]);
    assert_eq!(page(u32::MAX, 10).await, [0; 0]);
}

pub(crate) async fn only_its_tenant_reads_a_tasks_attempts(store: &dyn Store) {
    let claimed = keep_and_claim(store, task(1)).await;
    keep(store, [task(2).of("other")]).await;
    settle(store, succeed(&claimed, at(5))).await;
    assert_eq!(store.reads().attempts(tenant("other"), id(1), 0, 10).await.unwrap(), None);
    assert_eq!(store.reads().attempts(acme(), id(77), 0, 10).await.unwrap(), None);
}

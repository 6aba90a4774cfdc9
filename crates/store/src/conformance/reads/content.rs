//! Facts about storing requests and answers byte for byte.

use std::time::Duration;

use bytes::Bytes;
use redrive_core::attempt::LastError;
use redrive_core::policy::{Approval, BackoffKind, Context, JitterKind, Spec};
use redrive_core::{Answer, Attempt, Body, Date, ErrorType, Status, Timestamp};

use crate::conformance::samples::*;
use crate::{Next, Store};

/// All byte values, among them zeros, line ends and invalid UTF-8.
fn odd_bytes() -> Bytes {
    (0..=255).chain([0, 0, b'\r', b'\n', 0xC3, 0x28, 0xFF]).collect()
}

/// A spec with every field set, and with numbers that a lossy format would round.
pub(crate) fn full_spec() -> Spec {
    Spec {
        context: Some(Context::WebhookPatient),
        max_attempts: Some(7),
        backoff: Some(BackoffKind::Schedule),
        jitter_type: Some(JitterKind::Proportional),
        jitter_ratio: Some(0.1 + 0.2),
        initial_delay_ms: Some(u64::MAX >> 11),
        multiplier: Some(1.000_000_000_000_000_2),
        max_delay_ms: Some(0),
        schedule_ms: Some(vec![5_000, 0, 36_000_000]),
        total_budget_ms: Some(1),
        attempt_timeout_ms: Some(30_000),
        connect_timeout_ms: Some(2_000),
        retryable_status_codes: Some([429, 599, 100].into()),
        retry_after_max_ms: Some(86_400_000),
        pause_on_gone: Some(true),
        approval: Some(Approval { by: "Ä".into(), until: Date::LAST, max_attempts: 7, reason: Some("\0".into()) }),
    }
}

/// Stores a sample and checks that every read returns it unchanged.
async fn comes_back(store: &dyn Store, sample: Sample) {
    let (task, request) = (sample.0.task.clone(), sample.0.request.clone());
    keep(store, [sample]).await;
    assert_eq!(detail(store, &task).await.request, request);
    assert_eq!(list(store, everything(acme())).await[0].request, request);
    let claimed = claim(store, task.lane.clone(), 1, at(0)).await.remove(0);
    assert_eq!(claimed.request, request);
    assert_eq!(store.upkeep().expired_leases(claimed.lease.until, 10).await.unwrap()[0].request, request);
    settle(store, succeed(&claimed, at(1))).await;
    assert_eq!(detail(store, &task).await.request, request);
}

pub(crate) async fn every_attempt_gets_the_same_body_byte_for_byte(store: &dyn Store) {
    let bodies = [Bytes::new(), odd_bytes(), Bytes::from_static(b"\0"), Bytes::from_static("€".as_bytes())];
    for (n, body) in (1..).zip(bodies) {
        comes_back(store, task(n).body(body)).await;
    }
}

pub(crate) async fn a_body_of_a_mebibyte_is_kept_whole(store: &dyn Store) {
    let body: Bytes = (0..1_048_576u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    comes_back(store, task(1).body(body)).await;
}

pub(crate) async fn header_fields_keep_their_order_their_case_and_their_repeats(store: &dyn Store) {
    let fields = [("x-b", "2"), ("X-A", "1"), ("x-b", "1"), ("x-b", "2"), ("x-empty", ""), ("x-ö", "\u{1F980}\t\"\\")];
    let headers: Vec<_> = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    comes_back(store, task(1).request(|request| request.headers = headers)).await;
    comes_back(store, task(2).request(|request| request.headers = Vec::new())).await;
}

pub(crate) async fn target_and_method_are_kept_as_given(store: &dyn Store) {
    for (n, method) in (1..).zip(["post", "PATCH", "X-Ünusual"]) {
        let url = "https://user@[::1]:8443/a%2Fb//?q=%00&q='; --#€".to_owned();
        let sample = task(n).request(|request| (request.method, request.target_url) = (method.to_owned(), url));
        comes_back(store, sample).await;
    }
}

pub(crate) async fn overrides_are_kept_as_given_also_empty_ones(store: &dyn Store) {
    for (n, overrides) in (1..).zip([None, Some(Spec::default()), Some(full_spec())]) {
        comes_back(store, task(n).request(|request| request.overrides = overrides)).await;
    }
}

pub(crate) async fn labels_of_any_script_are_kept(store: &dyn Store) {
    let sample = task(1).label("größe", "zwölf").label("鍵", "值").label("🦀", "\0\n\"'\\").label("", "");
    comes_back(store, sample).await;
}

pub(crate) async fn an_answer_is_kept_whole(store: &dyn Store) {
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let answers = [
        Answer { status: 204, headers: Vec::new(), body: Body::default(), truncated: false },
        Answer {
            status: 999,
            headers: vec![header("set-cookie", "a"), header("Set-Cookie", "b"), header("set-cookie", "a")],
            body: odd_bytes().into(),
            truncated: true,
        },
        Answer {
            status: 100,
            headers: vec![header("x", "")],
            body: Bytes::from(vec![0xFF; Answer::BODY_LIMIT]).into(),
            truncated: false,
        },
    ];
    for (n, answer) in (1..).zip(answers) {
        let claimed = keep_and_claim(store, task(n)).await;
        let next = Next::End { status: Status::Succeeded, reason: None, answer: Some(Box::new(answer.clone())) };
        settle(store, settlement(&claimed, Some(successful_attempt(&claimed)), next, at(5))).await;
        assert_eq!(detail(store, &claimed.task).await.answer.as_ref(), Some(&answer));
        assert_eq!(list(store, everything(acme())).await[0].answer.as_ref(), Some(&answer));
    }
}

pub(crate) async fn a_task_may_end_without_an_answer(store: &dyn Store) {
    let claimed = keep_and_claim(store, task(1)).await;
    let next = Next::End { status: Status::Exhausted, reason: None, answer: None };
    settle(store, settlement(&claimed, Some(failed_attempt(&claimed)), next, at(5))).await;
    assert_eq!(detail(store, &claimed.task).await.answer, None);
}

pub(crate) async fn an_error_message_is_kept_as_it_is(store: &dyn Store) {
    let message = format!("'; drop table tasks; -- \0 \n \u{1F980} {}", "x".repeat(5_000));
    let claimed = keep_and_claim(store, task(1)).await;
    let error = Some(LastError { kind: ErrorType::TlsCertificate, message });
    let attempt = Attempt { error: error.clone(), ..failed_attempt(&claimed) };
    let next = Next::RetryAt { at: at(9), backoff: None, dns_failures: 0 };
    settle(store, settlement(&claimed, Some(attempt), next, at(5))).await;
    assert_eq!(now_of(store, &claimed.task).await.last_error, error);
    assert_eq!(attempts(store, &claimed.task).await[0].error, error);
}

pub(crate) async fn numbers_are_kept_to_their_ends(store: &dyn Store) {
    let mut sample = task(1);
    sample.0.task.max_attempts = u32::MAX >> 1;
    sample.0.task.deadline_at = Timestamp::MAX;
    sample = sample.created(Timestamp::from_millis(0));
    sample.0.task.attempt_timeout = Duration::from_millis(1);
    sample.0.task.next_attempt_at = Some(Timestamp::MAX);
    keep(store, [sample.clone()]).await;
    assert_eq!(now_of(store, &sample.0.task).await, sample.0.task);
    assert!(claim(store, billing(), 1, at(0)).await.is_empty());
    assert_eq!(claim(store, billing(), 1, Timestamp::MAX).await.len(), 1);
}

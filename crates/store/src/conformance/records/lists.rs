//! Facts about lists and counts of records.

use redrive_core::idempotency::{Change, State};

use super::*;
use crate::conformance::samples::{acme, at, tenant};
use crate::{OperationCounts, OperationFilter};

/// Records of several operations, states, ages and tenants. Returns those of acme's operations that are present.
async fn fill(store: &dyn Store) -> Vec<RecordKey> {
    let mut present = Vec::new();
    for (n, operation) in ["pay", "refund", "pay.later"].into_iter().enumerate() {
        for (m, made) in [None, Some(Change::Complete(response("done"))), Some(Change::Release)].into_iter().enumerate()
        {
            let key = key_of(acme(), operation, &format!("k-{m}"));
            let one = own(store, key.clone(), 1, at(n as u64)).await;
            let is_present = !matches!(made, Some(Change::Release));
            if let Some(made) = made {
                make(store, key.clone(), one, made, at(10 + n as u64)).await;
            }
            present.extend(is_present.then_some(key));
        }
    }
    own(store, key_of(tenant("other"), "pay", "k-0"), 1, at(0)).await;
    own(store, key_of(acme(), "inbox/billing", "event-1"), 1, at(0)).await;
    present.sort_by_key(ToString::to_string);
    present
}

fn keys(records: Vec<(RecordKey, Record)>) -> Vec<RecordKey> {
    records.into_iter().map(|(key, _)| key).collect()
}

pub(crate) async fn every_present_record_is_on_one_page(store: &dyn Store) {
    let present = fill(store).await;
    for limit in [1, 2, 4, 100] {
        let listed = list(store, RecordQuery { limit, ..query(acme(), at(20)) }).await;
        assert_eq!(keys(listed), present, "pages of {limit}");
    }
    let listed = list(store, query(acme(), at(20))).await;
    for (key, record) in listed {
        let whole = read(store, key.clone(), at(20)).await;
        assert_eq!(whole.map(Record::without_body), Some(record), "{key}");
    }
    assert_eq!(keys(list(store, query(tenant("other"), at(20))).await), [key_of(tenant("other"), "pay", "k-0")]);
    assert_eq!(list(store, query(tenant("nobody"), at(20))).await, []);
}

pub(crate) async fn a_list_of_records_is_narrowed_by_operation_state_and_age(store: &dyn Store) {
    fill(store).await;
    let one = |operation: &str| OperationFilter::One(operation.parse().unwrap());
    let base = || query(acme(), at(20));
    let cases = [
        (RecordQuery { operations: one("pay"), ..base() }, vec!["pay/k-0", "pay/k-1"]),
        (RecordQuery { operations: one("inbox/billing"), ..base() }, vec!["inbox/billing/event-1"]),
        (RecordQuery { operations: one("unknown"), ..base() }, vec![]),
        (RecordQuery { state: Some(State::InProgress), ..base() }, vec!["pay.later/k-0", "pay/k-0", "refund/k-0"]),
        (RecordQuery { state: Some(State::FailedFinal), ..base() }, vec![]),
        (RecordQuery { updated_before: Some(at(1)), ..base() }, vec!["pay/k-0"]),
        (
            RecordQuery { state: Some(State::Succeeded), updated_before: Some(at(12)), ..base() },
            vec!["pay/k-1", "refund/k-1"],
        ),
    ];
    for (query, expected) in cases {
        let listed = keys(list(store, query.clone()).await);
        let texts: Vec<String> = listed.iter().map(|key| format!("{}/{}", key.operation, key.name)).collect();
        assert_eq!(texts, expected, "{query:?}");
    }
}

pub(crate) async fn records_are_counted_by_operation_and_state_up_to_the_bound(store: &dyn Store) {
    fill(store).await;
    for n in 0..5 {
        own(store, key(&format!("more-{n}")), 1, at(1)).await;
    }
    let counts = async |after: Option<&str>, limit, most| {
        let after = after.map(|text| text.parse().unwrap());
        store.records().counts(acme(), after, limit, most).await.unwrap()
    };
    let expected = |operation: &str, in_progress, succeeded| {
        let operation = operation.parse().unwrap();
        OperationCounts { operation, in_progress, succeeded, failed_retryable: 0, failed_final: 0 }
    };
    let all =
        [expected("inbox/billing", 1, 0), expected("pay", 6, 1), expected("pay.later", 1, 1), expected("refund", 1, 1)];
    assert_eq!(counts(None, 100, 1_000).await, all);
    assert_eq!(counts(None, 2, 4).await, [expected("inbox/billing", 1, 0), expected("pay", 4, 1)]);
    assert_eq!(counts(Some("pay"), 100, 1_000).await, all[2..]);
    assert_eq!(store.records().counts(tenant("nobody"), None, 10, 10).await.unwrap(), []);
}

//! Pages of records: their order, their bounds and their cursors.

use redrive_core::idempotency::{Operation, State};
use redrive_store::conformance::samples::{at, tenant};
use redrive_store::{RecordCursor, RecordPage};

use super::support::open;
use super::*;

fn names(records: &[(RecordKey, Record)]) -> Vec<String> {
    records.iter().map(|(key, _)| format!("{}/{}", key.operation, key.name)).collect()
}

async fn page(store: &dyn Store, query: RecordQuery) -> RecordPage {
    store.records().list(query).await.unwrap()
}

#[tokio::test]
async fn records_come_by_operation_and_then_in_the_order_in_which_they_were_made() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    for (n, (operation, name)) in
        [("refund", "z"), ("pay", "m"), ("inbox/x", "e"), ("refund", "a"), ("pay", "b"), ("pay", "y")]
            .into_iter()
            .enumerate()
    {
        let key = key_of(acme(), operation, name);
        let one = own(&store, key.clone(), 1, at(0)).await;
        if n % 2 == 0 {
            make(&store, key, one, Change::Complete(completion("done")), at(1)).await;
        }
    }
    let expected = ["pay/m", "pay/b", "pay/y", "refund/z", "refund/a"];
    for limit in 1..=6 {
        let listed = list(&store, RecordQuery { limit, ..query(acme(), at(1)) }).await;
        assert_eq!(names(&listed), expected, "pages of {limit}");
    }
    let succeeded = list(&store, RecordQuery { state: Some(State::Succeeded), limit: 1, ..query(acme(), at(1)) }).await;
    assert_eq!(names(&succeeded), ["pay/b", "refund/z"]);
    let inbox = OperationFilter::One("inbox/x".parse().unwrap());
    assert_eq!(names(&list(&store, RecordQuery { operations: inbox, ..query(acme(), at(1)) }).await), ["inbox/x/e"]);
    let released = list(&store, RecordQuery { state: Some(State::Released), ..query(acme(), at(1)) }).await;
    assert_eq!(released, []);
}

#[tokio::test]
async fn a_record_that_changes_between_two_pages_is_on_one_of_them() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    for n in 0..10 {
        own(&store, numbered(n), 1, at(0)).await;
    }
    let first = page(&store, RecordQuery { limit: 5, ..query(acme(), at(1)) }).await;
    for n in 0..10 {
        make(&store, numbered(n), owner(1, 1), Change::Complete(completion("done")), at(1)).await;
    }
    let second = page(&store, RecordQuery { after: first.next.clone(), ..query(acme(), at(1)) }).await;
    assert_eq!(second.next, None);
    let both: Vec<_> = first.records.into_iter().chain(second.records).map(|(key, _)| key).collect();
    assert_eq!(both, (0..10).map(numbered).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_cursor_stays_valid_when_everything_around_it_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    for n in 0..4 {
        own(&store, numbered(n), 1, at(0)).await;
    }
    let next = page(&store, RecordQuery { limit: 2, ..query(acme(), at(1)) }).await.next;
    assert!(next.is_some());
    assert_eq!(store.records().clean(Timestamp::MAX, 9).await.unwrap(), 4);
    store.close().await;
    let store = open(directory.path());
    own(&store, numbered(9), 1, at(2)).await;
    let rest = page(&store, RecordQuery { after: next, ..query(acme(), at(2)) }).await;
    assert_eq!(names(&rest.records), ["pay/k-9"], "a number is never used again");
}

#[tokio::test]
async fn cursors_of_elsewhere_are_harmless() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    for operation in ["a", "m", "z"] {
        own(&store, key_of(acme(), operation, "k"), 1, at(0)).await;
    }
    let one = |operation: &str| OperationFilter::One(operation.parse().unwrap());
    let cases = [
        ("m not-a-number", OperationFilter::AllNamed, vec![]),
        ("m 99999999999999999999", OperationFilter::AllNamed, vec![]),
        ("m -5", OperationFilter::AllNamed, vec!["m/k", "z/k"]),
        ("b 77", OperationFilter::AllNamed, vec!["m/k", "z/k"]),
        ("zz 0", OperationFilter::AllNamed, vec![]),
        ("a 77", one("m"), vec!["m/k"]),
        ("m 77", one("m"), vec![]),
        ("z 0", one("m"), vec![]),
    ];
    for (cursor, operations, expected) in cases {
        let after: RecordCursor = cursor.parse().unwrap();
        let listed = list(&store, RecordQuery { after: Some(after), operations, ..query(acme(), at(1)) }).await;
        assert_eq!(names(&listed), expected, "{cursor}");
    }
}

#[tokio::test]
async fn a_page_looks_at_a_bounded_number_of_rows_and_says_where_to_continue() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let many = (0..2_500).map(|n| reservation(numbered(n), 1)).collect();
    store.records().reserve(many, at(0)).await.unwrap();
    own(&store, key_of(acme(), "refund", "young"), 1, at(5)).await;
    let old = RecordQuery { updated_before: Some(at(0)), ..query(acme(), at(9)) };
    let (mut pages, mut after) = (0, None);
    loop {
        let page = page(&store, RecordQuery { after, ..old.clone() }).await;
        assert_eq!(page.records, []);
        pages += 1;
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(pages, 3);

    // Operations without a record that is listed are looked at as well.
    for start in [0, 1_000, 2_000] {
        let one = |n: u64| reservation(key_of(acme(), &format!("operation-{n}"), "k"), 1);
        store.records().reserve((start..start + 1_000).map(one).collect(), at(0)).await.unwrap();
    }
    assert_eq!(list(&store, RecordQuery { limit: 1_000, ..query(acme(), at(9)) }).await.len(), 5_501);
    let counts = store.records().counts(acme(), None, 10_000, 100).await.unwrap();
    assert_eq!((counts.len(), counts[3_000].in_progress), (3_002, 100));
    let last: Option<Operation> = Some("operation-999".parse().unwrap());
    assert_eq!(store.records().counts(acme(), last, 1, 3).await.unwrap()[0].in_progress, 3);
    assert_eq!(list(&store, query(tenant("nobody"), at(0))).await, []);
}

//! What the calls for idempotency records read.

use std::time::Duration;

use redrive_core::RecordName;
use redrive_core::idempotency::{Change, RecordKey, State};
use redrive_store::conformance::samples::{acme, at, tenant};
use redrive_store::{OperationFilter, RecordChange, RecordCursor, RecordQuery, Reservation, Store};
use tokio_postgres::Client;

use super::{Call, Round};
use crate::records as samples;

/// The number of idempotency records, of three operations in turn.
const RECORDS: u64 = 20_000;

/// The key of record `n`.
fn record(n: u64) -> RecordKey {
    let operation = ["inbox/mail", "pay", "refund"][(n % 3) as usize].parse().unwrap();
    RecordKey { tenant: acme(), operation, name: RecordName::try_new(format!("n-{n:05}")).unwrap() }
}

pub(super) fn calls() -> Vec<Call> {
    vec![
        call!("reserve records", 16, |store, round| {
            // Records of another tenant, so that there are none to count until the database is filled.
            let of = if round == Round::Empty { tenant("nobody") } else { acme() };
            let item = |n| Reservation { key: RecordKey { tenant: of.clone(), ..record(n) }, ask: samples::ask(7) };
            // Half of them are there.
            store.records().reserve((RECORDS - 8..RECORDS + 8).map(item).collect(), at(5)).await.unwrap()
        }),
        call!("change records", 16, |store, _| {
            let item = |n| RecordChange { key: record(n), owner: samples::owner(1, 1), change: Change::Release };
            store.records().change((1_000..1_016).map(item).collect(), at(5)).await.unwrap()
        }),
        call!("a record", 1, |store, _| store.records().read(record(500), at(5)).await.unwrap()),
        call!("delete a record", 1, |store, _| store.records().delete(record(501), None, at(5)).await.unwrap()),
        call!("a page of records", 16, |store, _| {
            let last = record(RECORDS - 24);
            let after = Some(RecordCursor::new(last.operation, last.name.as_str()));
            let operations = OperationFilter::One("refund".parse().unwrap());
            store.records().list(RecordQuery { after, operations, ..samples::everything(at(0)) }).await.unwrap()
        }),
        call!("a page of records in progress that are old", 32, |store, round| {
            let query = RecordQuery {
                tenant: tenant("idle"),
                state: Some(State::InProgress),
                updated_before: Some(at(0).after(Duration::from_secs(450))),
                ..samples::everything(at(0))
            };
            let page = store.records().list(query).await.unwrap();
            assert_eq!(page.records.len(), if round == Round::Empty { 0 } else { 4 });
            assert_eq!(page.next, None);
        }),
        call!("counts of records", 48, |store, round| {
            let counts = store.records().counts(acme(), None, 10, 4).await.unwrap();
            let names: Vec<_> = counts.iter().map(|of| of.operation.to_string()).collect();
            let all = ["inbox/mail", "pay", "refund"];
            assert_eq!(names, if round == Round::Empty { &[][..] } else { &all[..] });
            assert!(counts.iter().all(|of| of.succeeded == 4), "{counts:?}");
        }),
        call!("clean records", 16, |store, round| {
            let removed = store.records().clean(at(1), 16).await.unwrap();
            assert_eq!(removed, if round == Round::Empty { 0 } else { 16 });
        }),
    ]
}

pub(super) async fn fill(client: &Client) {
    let sql = "
        INSERT INTO redrive.idempotency_records (
            tenant, operation, name, execution, epoch, lease_until, retention_ms, started_at, updated_at, expires_at,
            state, request_hash
        )
        SELECT 'acme', (ARRAY['inbox/mail', 'pay', 'refund'])[n % 3 + 1], 'n-' || lpad(n::text, 5, '0'),
               '00000000-0000-0000-0000-000000000001', 1, 1800000000000, 0, 1800000000000, 1800000000000,
               1800000000000 + CASE WHEN n <= 300 THEN 0 ELSE n * 1000 END,
               CASE WHEN n >= 19000 OR n % 1000 < 16 THEN 'IN_PROGRESS' ELSE 'SUCCEEDED' END, sha256('')
        FROM generate_series(1, $1::bigint) AS n";
    client.execute(sql, &[&RECORDS.cast_signed()]).await.unwrap();
    // 900 records of one operation, of which 9 are in progress.
    let idle = "
        INSERT INTO redrive.idempotency_records
        SELECT 'idle', 'pay', 'n-' || lpad(n::text, 5, '0'), gen_random_uuid(), 1, 0, 0, 0, 1800000000000 + n * 1000,
               1900000000000, CASE WHEN n % 100 = 0 THEN 'IN_PROGRESS' ELSE 'SUCCEEDED' END, sha256('')
        FROM generate_series(1, 900) AS n";
    client.batch_execute(idle).await.unwrap();
}

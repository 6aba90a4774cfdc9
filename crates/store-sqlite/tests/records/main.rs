//! Idempotency records in the embedded store: what the conformance suite cannot see.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

mod corrupt;
mod killed;
mod lists;
mod lives;
mod reopening;
mod rollback;
#[path = "../support/mod.rs"]
mod support;

use std::path::Path;
use std::time::Duration;

use redrive_core::idempotency::{
    Change, Changed, Completion, Epoch, ExecutionId, Owner, Record, RecordKey, RequestHash, Reserve, Reserved,
    Resource, Response,
};
use redrive_core::{Body, RecordName, TenantId, Timestamp};
use redrive_store::conformance::samples::acme;
use redrive_store::{OperationFilter, RecordChanged, RecordQuery, Reservation, Store};
use redrive_store_sqlite::{Options, SqliteStore};

const LEASE: Duration = Duration::from_secs(60);
const RETENTION: Duration = Duration::from_secs(3_600);

fn key_of(tenant: TenantId, operation: &str, name: &str) -> RecordKey {
    RecordKey { tenant, operation: operation.parse().unwrap(), name: RecordName::try_new(name).unwrap() }
}

/// The key of acme's operation `pay` with this name.
fn key(name: &str) -> RecordKey {
    key_of(acme(), "pay", name)
}

fn numbered(n: u64) -> RecordKey {
    key(&format!("k-{n}"))
}

fn ask(execution: u128) -> Reserve {
    Reserve {
        request_hash: RequestHash([1; 32]),
        execution: ExecutionId::from_u128(execution),
        lease: LEASE,
        retention: RETENTION,
        is_complete: false,
    }
}

fn reservation(key: RecordKey, execution: u128) -> Reservation {
    Reservation { key, ask: ask(execution) }
}

fn owner(execution: u128, epoch: u64) -> Owner {
    Owner { execution: ExecutionId::from_u128(execution), epoch: Epoch(epoch) }
}

fn completion(text: &str) -> Completion {
    let headers = vec![("content-type".to_owned(), "text/plain".to_owned())];
    let body = Body::from(bytes::Bytes::copy_from_slice(text.as_bytes()));
    Completion {
        response: Some(Response { status: 201, headers, body }),
        resource: Some(Resource::try_new("payment", text).unwrap()),
    }
}

/// Reserves a record that must be free; returns its owner.
async fn own(store: &dyn Store, key: RecordKey, execution: u128, now: Timestamp) -> Owner {
    match store.records().reserve_one(key.clone(), ask(execution), now).await.unwrap() {
        Reserved::Granted { epoch, .. } => owner(execution, epoch.0),
        other => panic!("{key} is not free: {other:?}"),
    }
}

/// Makes a change that must be made; returns the record after it.
async fn make(store: &dyn Store, key: RecordKey, owner: Owner, change: Change, now: Timestamp) -> Record {
    match store.records().change_one(key, owner, change, now).await.unwrap() {
        RecordChanged::Decided(Changed::Done(record)) => *record,
        other => panic!("the change was not made: {other:?}"),
    }
}

async fn read(store: &dyn Store, key: RecordKey, now: Timestamp) -> Option<Record> {
    store.records().read(key, now).await.unwrap()
}

fn query(tenant: TenantId, now: Timestamp) -> RecordQuery {
    let operations = OperationFilter::AllNamed;
    RecordQuery { tenant, operations, state: None, updated_before: None, after: None, limit: 100, now }
}

/// All pages of a list, in the order of the store.
async fn list(store: &dyn Store, mut query: RecordQuery) -> Vec<(RecordKey, Record)> {
    let mut records = Vec::new();
    loop {
        let page = store.records().list(query.clone()).await.unwrap();
        records.extend(page.records);
        match page.next {
            Some(next) => query.after = Some(next),
            None => return records,
        }
    }
}

/// Opens the store with so many keys in memory.
fn open_with(directory: &Path, recent_keys: usize) -> SqliteStore {
    SqliteStore::open(Options { recent_keys, ..Options::new(directory) }).unwrap()
}

//! Facts about idempotency records.

pub(crate) mod keeping;
pub(crate) mod lists;
pub(crate) mod lives;
pub(crate) mod owners;

use std::time::Duration;

use bytes::Bytes;
use redrive_core::idempotency::{
    Change, Changed, Completion, Epoch, ExecutionId, Operation, Owner, Record, RecordKey, RequestHash, Reserve,
    Reserved, Resource, Response,
};
use redrive_core::{Body, RecordName, TenantId, Timestamp};

use super::samples::acme;
use crate::{RecordChanged, RecordQuery, Store};

/// The lease of every reservation of the suite.
const LEASE: Duration = Duration::from_secs(60);
/// The retention of every record of the suite.
const RETENTION: Duration = Duration::from_secs(3_600);

fn key_of(tenant: TenantId, operation: &str, name: &str) -> RecordKey {
    let operation: Operation = operation.parse().unwrap();
    RecordKey { tenant, operation, name: RecordName::try_new(name).unwrap() }
}

/// The key of acme's operation `pay` with this name.
fn key(name: &str) -> RecordKey {
    key_of(acme(), "pay", name)
}

/// A reservation by execution `number`, of the one request that most facts are about.
fn ask(number: u128) -> Reserve {
    Reserve {
        request_hash: RequestHash([1; 32]),
        execution: ExecutionId::from_u128(number),
        lease: LEASE,
        retention: RETENTION,
        is_complete: false,
    }
}

/// The same by another request.
fn ask_otherwise(number: u128) -> Reserve {
    Reserve { request_hash: RequestHash([2; 32]), ..ask(number) }
}

fn owner(number: u128, epoch: u64) -> Owner {
    Owner { execution: ExecutionId::from_u128(number), epoch: Epoch(epoch) }
}

fn response(body: &str) -> Completion {
    let headers = vec![("content-type".to_owned(), "text/plain".to_owned())];
    Completion {
        response: Some(Response { status: 201, headers, body: Body::from(Bytes::copy_from_slice(body.as_bytes())) }),
        resource: None,
    }
}

fn with_resource(completion: Completion) -> Completion {
    Completion { resource: Some(Resource::try_new("payment", "pay_123").unwrap()), ..completion }
}

async fn reserve(store: &dyn Store, key: RecordKey, ask: Reserve, now: Timestamp) -> Reserved {
    store.records().reserve_one(key, ask, now).await.unwrap()
}

/// Reserves a record that must be free; returns its owner.
async fn own(store: &dyn Store, key: RecordKey, number: u128, now: Timestamp) -> Owner {
    match reserve(store, key, ask(number), now).await {
        Reserved::Granted { epoch, .. } => owner(number, epoch.0),
        other => panic!("the record is not free: {other:?}"),
    }
}

async fn change(store: &dyn Store, key: RecordKey, owner: Owner, change: Change, now: Timestamp) -> Changed {
    match store.records().change_one(key, owner, change, now).await.unwrap() {
        RecordChanged::Decided(changed) => changed,
        RecordChanged::BodyGone => panic!("the blob is gone"),
    }
}

/// Makes a change that must be made; returns the record after it.
async fn make(store: &dyn Store, key: RecordKey, owner: Owner, made: Change, now: Timestamp) -> Record {
    match change(store, key, owner, made, now).await {
        Changed::Done(record) => *record,
        other => panic!("the change was not made: {other:?}"),
    }
}

async fn read(store: &dyn Store, key: RecordKey, now: Timestamp) -> Option<Record> {
    store.records().read(key, now).await.unwrap()
}

fn query(tenant: TenantId, now: Timestamp) -> RecordQuery {
    RecordQuery {
        tenant,
        operations: crate::OperationFilter::AllNamed,
        state: None,
        updated_before: None,
        after: None,
        limit: 100,
        now,
    }
}

/// All pages of a list, in the order of the keys' texts.
async fn list(store: &dyn Store, mut query: RecordQuery) -> Vec<(RecordKey, Record)> {
    let mut records = Vec::new();
    loop {
        let page = store.records().list(query.clone()).await.unwrap();
        assert!(page.records.len() <= query.limit, "a page is longer than its limit");
        records.extend(page.records);
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    records.sort_by_key(|(key, _)| key.to_string());
    records
}

//! Changes by the owners of records.

use redrive_core::idempotency::{self, Change, Record};
use redrive_core::{Body, BodyRef, Timestamp};
use redrive_store::encoding::json;
use redrive_store::{Error, RecordChange, RecordChanged};

use super::{find, rows};
use crate::keys::KeyHash;
use crate::ops::blobs;
use crate::sqlite_error::SqliteError;
use crate::writer::Writer;

/// A change with everything that can be computed before the writer runs it.
#[derive(Debug)]
pub(crate) struct EncodedChange {
    change: RecordChange,
    hash: KeyHash,
    /// The header fields of the response as JSON. A record that this change is made to has this response.
    headers: Option<String>,
}

impl EncodedChange {
    pub(crate) fn new(change: RecordChange) -> Result<Self, Error> {
        let response = match &change.change {
            Change::Complete(completion) | Change::FailFinal(completion) => completion.response.as_ref(),
            Change::FailRetryable | Change::Renew(_) | Change::Release => None,
        };
        let headers = match response {
            Some(response) => json(&response.headers, response.headers.is_empty())?,
            None => None,
        };
        Ok(EncodedChange { hash: KeyHash::of_record(&change.key), change, headers })
    }
}

pub(crate) fn change(
    writer: &mut Writer,
    change: &EncodedChange,
    now: Timestamp,
) -> Result<RecordChanged, SqliteError> {
    let EncodedChange { change: RecordChange { key, owner, change }, hash, headers } = change;
    let stored = find::by_key(writer, key, *hash)?;
    let (answer, changed) = idempotency::change(stored.as_ref().map(|row| &row.record), *owner, change, now);
    if let (Some(record), Some(stored)) = (changed, stored) {
        if let Some(body) = stored_body(&record) {
            let tenant = writer.names.tenant_key(&writer.connection, &key.tenant)?;
            match tenant {
                Some(tenant) if blobs::is_kept(&writer.connection, tenant, body)? => {}
                _ => return Ok(RecordChanged::BodyGone),
            }
        }
        rows::update(&writer.connection, stored.id, &record, headers.as_deref())?;
    }
    Ok(RecordChanged::Decided(answer))
}

/// The blob that a record's result refers to.
fn stored_body(record: &Record) -> Option<&BodyRef> {
    record.completion.response.as_ref().map(|response| &response.body).and_then(Body::stored)
}

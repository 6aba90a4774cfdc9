//! Changes by the owners of records.

use std::collections::HashSet;

use redrive_core::idempotency::{self, Change, Owner};
use redrive_core::{Body, BodyRef, Timestamp};
use redrive_store::{Error, RecordChange, RecordChanged};
use tokio_postgres::types::Type;

use super::keys::{EncodedKey, Keys};
use super::slots::{LOCK, LOCK_FREE, READ, Slot, closed, commit, fill, fill_held};
use crate::batch::Locks;
use crate::codec::Cells;
use crate::connection::Connection;
use crate::postgres_error::PostgresError;

pub(crate) const DOING: &str = "changing records";

/// A change and its time.
#[derive(Debug)]
pub(crate) struct EncodedChange {
    pub(crate) key: EncodedKey,
    owner: Owner,
    change: Change,
    now: Timestamp,
}

impl EncodedChange {
    pub(crate) fn new(RecordChange { key, owner, change }: RecordChange, now: Timestamp) -> Self {
        EncodedChange { key: EncodedKey::new(key), owner, change, now }
    }

    /// The approximate size in bytes on the wire.
    pub(crate) fn size(&self) -> usize {
        self.body().and_then(Body::inline).map_or(0, bytes::Bytes::len) + 512
    }

    fn body(&self) -> Option<&Body> {
        match &self.change {
            Change::Complete(completion) | Change::FailFinal(completion) => {
                completion.response.as_ref().map(|response| &response.body)
            }
            Change::FailRetryable | Change::Renew(_) | Change::Release => None,
        }
    }

    /// The blob that the response refers to.
    fn blob(&self) -> Option<Blob> {
        let stored = self.body().and_then(Body::stored)?;
        Some((self.key.key.tenant.to_string(), BodyRef::to_record(stored)))
    }
}

/// The tenant and the reference of a blob.
type Blob = (String, String);

/// The outcome for one item, or why it failed.
pub(crate) type Answer = Result<RecordChanged, Error>;

/// Makes each change, in order. `None` if another transaction has locked its record.
pub(crate) async fn change(
    connection: &mut Connection,
    items: &[&EncodedChange],
    locks: Locks,
) -> Result<Vec<Option<Answer>>, PostgresError> {
    let keys = Keys::of(items.iter().map(|item| item.key.text()));
    let outcome = run(connection, items, &keys, locks).await;
    match closed(connection, outcome).await {
        Err(failure) if failure.is_lock_timeout() && keys.len() == 1 => {
            let held = || Error::Unavailable(format!("{DOING}: an open transaction holds the record; try again later"));
            Ok(items.iter().map(|_| Some(Err(held()))).collect())
        }
        outcome => outcome,
    }
}

async fn run(
    connection: &mut Connection,
    items: &[&EncodedChange],
    keys: &Keys<'_>,
    locks: Locks,
) -> Result<Vec<Option<Answer>>, PostgresError> {
    let places: Vec<usize> = (0..keys.len()).collect();
    let lock = if locks == Locks::Skip { LOCK_FREE } else { LOCK };
    let rows = connection.begin_with(lock, &keys.columns(places.iter().copied()).arguments()).await?;
    let mut slots = vec![Slot::Absent; keys.len()];
    fill(&mut slots, &places, &rows, DOING)?;
    if locks == Locks::Skip {
        fill_held(connection, keys, &mut slots, &places, (READ, DOING)).await?;
    }
    let kept = lock_blobs(connection, items).await?;
    let answers = items.iter().map(|item| {
        let slot = &mut slots[keys.find(item.key.text()).unwrap_or_default()];
        (!matches!(slot, Slot::Held(_))).then(|| decide(item, slot, &kept))
    });
    let answers: Vec<Option<Answer>> = answers.collect();
    commit(connection, keys, &slots, false).await?;
    Ok(answers)
}

fn decide(item: &EncodedChange, slot: &mut Slot, kept: &HashSet<Blob>) -> Answer {
    let (answer, changed) = idempotency::change(slot.record()?, item.owner, &item.change, item.now);
    if changed.is_some() && item.blob().is_some_and(|blob| !kept.contains(&blob)) {
        return Ok(RecordChanged::BodyGone);
    }
    slot.change(changed);
    Ok(RecordChanged::Decided(answer))
}

/// Locks blobs that are kept, so that they are not condemned before the commit.
const LOCK_BLOBS: &str = "
SELECT wanted.tenant, wanted.body
FROM unnest($1::text[], $2::text[]) AS wanted (tenant, body)
CROSS JOIN LATERAL (
    SELECT FROM redrive.blobs
    WHERE blobs.tenant = wanted.tenant AND blobs.body = wanted.body AND NOT blobs.condemned
    FOR KEY SHARE
) AS blob";

async fn lock_blobs(connection: &Connection, items: &[&EncodedChange]) -> Result<HashSet<Blob>, PostgresError> {
    let mut blobs: Vec<Blob> = items.iter().filter_map(|item| item.blob()).collect();
    if blobs.is_empty() {
        return Ok(HashSet::new());
    }
    blobs.sort_unstable();
    blobs.dedup();
    let (tenants, bodies): (Vec<String>, Vec<String>) = blobs.into_iter().unzip();
    let rows = connection.query(LOCK_BLOBS, &[(&tenants, Type::TEXT_ARRAY), (&bodies, Type::TEXT_ARRAY)]).await?;
    let read = |row| {
        let mut cells = Cells::of(row);
        Ok((cells.get()?, cells.get()?))
    };
    rows.iter().map(read).collect()
}

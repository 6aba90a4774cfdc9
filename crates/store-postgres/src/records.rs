//! The contract for idempotency records: reservations and changes go to the writers' queues. A request is one call, so that it
//! is one transaction; the items for a key that another transaction holds are made afterwards and delay no other key.

use std::sync::atomic::Ordering;

use async_trait::async_trait;
use redrive_core::idempotency::{Operation, Record, RecordKey, Reserved};
use redrive_core::{Body, TenantId, Timestamp};
use redrive_store::{
    Answers, BodyAllowance, DeletedRecord, Error, OperationCounts, RecordChange, RecordChanged, RecordPage,
    RecordQuery, Records, Reservation, SeenRecord,
};

use crate::batch::{Batches, Locks, Work};
use crate::connection::Connection;
use crate::ops::records::change::EncodedChange;
use crate::ops::records::keys::EncodedKey;
use crate::ops::records::reserve::EncodedReservation;
use crate::ops::records::{change, clean, counts, delete, list, read, reserve};
use crate::pool::{call, read as read_again};
use crate::postgres_error::PostgresError;
use crate::store::PostgresStore;

/// The work of the writers of reservations.
pub(crate) struct Reserves;

impl Work for Reserves {
    type Item = EncodedReservation;
    type Answer = reserve::Answer;
    const DOING: &'static str = reserve::DOING;
    /// An execution that asks again gets its own reservation.
    const CAN_REPEAT: bool = true;

    fn size(_: &Self::Item) -> usize {
        512
    }

    fn key(item: &Self::Item) -> Option<&RecordKey> {
        Some(&item.key.key)
    }

    fn failed(error: Error) -> Result<Self::Answer, Error> {
        Ok(Err(error))
    }

    async fn run(
        &self,
        connection: &mut Connection,
        items: &[&Self::Item],
        locks: Locks,
    ) -> Result<Vec<Option<Self::Answer>>, PostgresError> {
        reserve::reserve(connection, items, locks).await
    }
}

/// The work of the writers of changes.
pub(crate) struct Changes;

impl Work for Changes {
    type Item = EncodedChange;
    type Answer = change::Answer;
    const DOING: &'static str = change::DOING;
    /// A change that was made before is answered like the first time.
    const CAN_REPEAT: bool = true;

    fn size(item: &Self::Item) -> usize {
        item.size()
    }

    fn key(item: &Self::Item) -> Option<&RecordKey> {
        Some(&item.key.key)
    }

    fn failed(error: Error) -> Result<Self::Answer, Error> {
        Ok(Err(error))
    }

    async fn run(
        &self,
        connection: &mut Connection,
        items: &[&Self::Item],
        locks: Locks,
    ) -> Result<Vec<Option<Self::Answer>>, PostgresError> {
        change::change(connection, items, locks).await
    }
}

/// Writes the items of a request as one call, and returns their answers in order.
async fn write<W, T>(queue: &Batches<W>, items: Vec<W::Item>) -> Answers<T>
where
    W: Work<Answer = Result<T, Error>>,
{
    let count = items.len();
    if count == 0 {
        return Vec::new();
    }
    queue.call(items).await.unwrap_or_else(|error| (0..count).map(|_| Err(error.clone())).collect())
}

impl PostgresStore {
    /// Reads the bodies of results that the writers have left out, as far as one answer has room for them.
    async fn add_bodies(&self, keys: Vec<RecordKey>, answers: &mut Answers<Reserved>) -> Result<(), PostgresError> {
        let mut allowance = BodyAllowance::default();
        let mut missing: Vec<(usize, EncodedKey)> = Vec::new();
        for (at, (key, answer)) in keys.into_iter().zip(answers.iter_mut()).enumerate() {
            let Ok(Reserved::Ended(record)) = answer else { continue };
            match record.completion.response.as_ref().map(|response| &response.body) {
                Some(Body::LeftOut(length)) if allowance.admits(*length) => missing.push((at, EncodedKey::new(key))),
                Some(Body::Inline(bytes)) if !allowance.admits(bytes.len() as u64) => {
                    **record = record.as_ref().clone().without_body();
                }
                _ => {}
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let read = read_again!(self.pool, |connection| read::read_each(connection, &missing))?;
        for ((at, _), read) in missing.into_iter().zip(read) {
            let Ok(Reserved::Ended(record)) = &answers[at] else { continue };
            answers[at] = match read
                .filter(|read| read.clone().without_body() == record.as_ref().clone().without_body())
            {
                Some(read) => Ok(Reserved::Ended(Box::new(read))),
                None => Err(Error::Unavailable(format!("{}: a record was removed while it was read", reserve::DOING))),
            };
        }
        Ok(())
    }
}

#[async_trait]
impl Records for PostgresStore {
    async fn reserve(&self, reservations: Vec<Reservation>, now: Timestamp) -> Result<Answers<Reserved>, Error> {
        let writers = self.writers()?;
        self.fence.check()?;
        let keys: Vec<RecordKey> = reservations.iter().map(|item| item.key.clone()).collect();
        let items = reservations.into_iter().map(|item| EncodedReservation::new(item, now)).collect();
        let mut answers = write(&writers.reserves, items).await;
        if answers.iter().any(|answer| matches!(answer, Err(Error::Full(_)))) {
            self.is_full.store(true, Ordering::Release);
        }
        self.upkeep.written();
        self.add_bodies(keys, &mut answers).await.map_err(|failure| failure.into_error(reserve::DOING))?;
        Ok(answers)
    }

    async fn change(&self, changes: Vec<RecordChange>, now: Timestamp) -> Result<Answers<RecordChanged>, Error> {
        let writers = self.writers()?;
        let items = changes.into_iter().map(|item| EncodedChange::new(item, now)).collect();
        let answers = write(&writers.changes, items).await;
        self.upkeep.written();
        Ok(answers)
    }

    async fn read(&self, key: RecordKey, now: Timestamp) -> Result<Option<Record>, Error> {
        let key = EncodedKey::new(key);
        let record = read_again!(self.pool, |connection| read::read(connection, &key))
            .map_err(|failure| failure.into_error("reading a record"))?;
        Ok(record.filter(|record| record.is_present(now)))
    }

    async fn list(&self, query: RecordQuery) -> Result<RecordPage, Error> {
        read_again!(self.pool, |connection| list::list(connection, &query))
            .map_err(|failure| failure.into_error("listing records"))
    }

    async fn delete(&self, key: RecordKey, seen: Option<SeenRecord>, now: Timestamp) -> Result<DeletedRecord, Error> {
        self.fence.check()?;
        let key = EncodedKey::new(key);
        call!(self.pool, |connection| delete::delete(connection, &key, seen, now))
            .map_err(|failure| failure.into_error(delete::DOING))
    }

    async fn counts(
        &self,
        tenant: TenantId,
        after: Option<Operation>,
        limit: usize,
        most: u32,
    ) -> Result<Vec<OperationCounts>, Error> {
        read_again!(self.pool, |connection| counts::counts(connection, &tenant, after.as_ref(), limit, most))
            .map_err(|failure| failure.into_error("counting records"))
    }

    async fn clean(&self, now: Timestamp, limit: usize) -> Result<usize, Error> {
        self.fence.check()?;
        call!(self.pool, |connection| clean::clean(connection, now, limit))
            .map_err(|failure| failure.into_error("cleaning records"))
    }
}

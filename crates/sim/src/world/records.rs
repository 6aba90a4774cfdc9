//! Idempotency records over a process's connection: the observer sees every call at the moment at which it takes effect.

use std::sync::Arc;

use async_trait::async_trait;
use redrive_core::idempotency::{Operation, Record, RecordKey, Reserved};
use redrive_core::{TenantId, Timestamp};
use redrive_store::{
    Answers, DeletedRecord, Error, OperationCounts, RecordChange, RecordChanged, RecordPage, RecordQuery, Records,
    Reservation, SeenRecord, Store,
};

use super::World;
use super::connection::{Connection, Work};
use crate::model::Whose;

#[async_trait]
impl Records for Connection {
    async fn reserve(&self, reservations: Vec<Reservation>, now: Timestamp) -> Result<Answers<Reserved>, Error> {
        let asked = reservations.clone();
        let work = move |store: Arc<dyn Store>| -> Work<Answers<Reserved>> {
            Box::pin(async move { store.records().reserve(reservations, now).await })
        };
        let seen = move |world: &Arc<World>, whose: Whose, answers: &Answers<Reserved>| {
            for (reservation, answer) in asked.iter().zip(answers) {
                if let Ok(answer) = answer {
                    world.observer().record_reserved(world.now(), whose, reservation, now, answer);
                }
            }
        };
        self.call("reserve", work, seen).await
    }

    async fn change(&self, changes: Vec<RecordChange>, now: Timestamp) -> Result<Answers<RecordChanged>, Error> {
        let asked = changes.clone();
        let work = move |store: Arc<dyn Store>| -> Work<Answers<RecordChanged>> {
            Box::pin(async move { store.records().change(changes, now).await })
        };
        let seen = move |world: &Arc<World>, whose: Whose, answers: &Answers<RecordChanged>| {
            for (change, answer) in asked.iter().zip(answers) {
                if let Ok(RecordChanged::Decided(answer)) = answer {
                    world.observer().record_changed(world.now(), whose, change, now, answer);
                }
            }
        };
        self.call("change", work, seen).await
    }

    async fn read(&self, key: RecordKey, now: Timestamp) -> Result<Option<Record>, Error> {
        let asked = key.clone();
        let work = move |store: Arc<dyn Store>| -> Work<Option<Record>> {
            Box::pin(async move { store.records().read(key, now).await })
        };
        let seen = move |world: &Arc<World>, _: Whose, shown: &Option<Record>| {
            world.observer().model.record_shown(&asked, now, shown.as_ref());
        };
        self.call("read_record", work, seen).await
    }

    async fn list(&self, query: RecordQuery) -> Result<RecordPage, Error> {
        let now = query.now;
        let work = move |store: Arc<dyn Store>| -> Work<RecordPage> {
            Box::pin(async move { store.records().list(query).await })
        };
        let seen = move |world: &Arc<World>, _: Whose, page: &RecordPage| {
            for (key, record) in &page.records {
                world.observer().model.record_listed(key, now, record);
            }
        };
        self.call("list_records", work, seen).await
    }

    async fn delete(&self, key: RecordKey, seen: Option<SeenRecord>, now: Timestamp) -> Result<DeletedRecord, Error> {
        let asked = key.clone();
        let work = move |store: Arc<dyn Store>| -> Work<DeletedRecord> {
            Box::pin(async move { store.records().delete(key, seen, now).await })
        };
        let saw = move |world: &Arc<World>, whose: Whose, answer: &DeletedRecord| {
            world.observer().record_deleted(world.now(), whose, (&asked, seen), now, answer);
        };
        self.call("delete_record", work, saw).await
    }

    async fn counts(
        &self,
        tenant: TenantId,
        after: Option<Operation>,
        limit: usize,
        most: u32,
    ) -> Result<Vec<OperationCounts>, Error> {
        let work = move |store: Arc<dyn Store>| -> Work<Vec<OperationCounts>> {
            Box::pin(async move { store.records().counts(tenant, after, limit, most).await })
        };
        self.call("count_records", work, |_, _, _| ()).await
    }

    async fn clean(&self, now: Timestamp, limit: usize) -> Result<usize, Error> {
        let work = move |store: Arc<dyn Store>| -> Work<usize> {
            Box::pin(async move { store.records().clean(now, limit).await })
        };
        let seen = move |world: &Arc<World>, whose: Whose, removed: &usize| {
            world.observer().records_cleaned(world.now(), whose, now, limit, *removed);
        };
        self.call("clean_records", work, seen).await
    }
}

//! Idempotency records.

use std::collections::BTreeMap;
use std::ops::Bound;

use redrive_core::idempotency::{self, Completion, Operation, Record, RecordKey, Reserved, State as RecordState};
use redrive_core::{Body, BodyRef, TenantId, Timestamp};

use super::state::State;
use crate::{
    Blob, DeletedRecord, OperationCounts, RecordChange, RecordChanged, RecordCursor, RecordPage, RecordQuery,
    Reservation, SeenRecord,
};

/// The most rows that one call of `list` looks at.
const LOOKED_AT: usize = 1_000;

/// All records, in the order in which they are listed: by tenant, the operation's text, and name.
pub(super) type Rows = BTreeMap<(TenantId, String, String), Row>;

/// A record and its key.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) key: RecordKey,
    pub(super) record: Record,
}

fn place(key: &RecordKey) -> (TenantId, String, String) {
    (key.tenant.clone(), key.operation.to_string(), key.name.to_string())
}

/// The blob that a result refers to.
fn stored_body(completion: &Completion) -> Option<&BodyRef> {
    completion.response.as_ref().map(|response| &response.body).and_then(Body::stored)
}

impl State {
    pub(super) fn reserve_record(&mut self, reservation: &Reservation, now: Timestamp) -> Reserved {
        let stored = self.records.get(&place(&reservation.key)).map(|row| &row.record);
        let (answer, changed) = idempotency::reserve(stored, &reservation.ask, now);
        self.put_record(&reservation.key, changed);
        answer
    }

    pub(super) fn change_record(&mut self, change: &RecordChange, now: Timestamp) -> RecordChanged {
        let RecordChange { key, owner, change } = change;
        let stored = self.records.get(&place(key)).map(|row| &row.record);
        let (answer, changed) = idempotency::change(stored, *owner, change, now);
        let body = changed.as_ref().and_then(|record| stored_body(&record.completion));
        if body.is_some_and(|body| !super::blobs::is_kept(&self.blobs, &key.tenant, body)) {
            return RecordChanged::BodyGone;
        }
        self.put_record(key, changed);
        RecordChanged::Decided(answer)
    }

    pub(super) fn record(&self, key: &RecordKey, now: Timestamp) -> Option<Record> {
        let row = self.records.get(&place(key)).filter(|row| row.record.is_present(now));
        row.map(|row| row.record.clone())
    }

    pub(super) fn delete_record(&mut self, key: &RecordKey, seen: Option<SeenRecord>, now: Timestamp) -> DeletedRecord {
        let Some(record) = self.record(key, now) else { return DeletedRecord::Absent };
        if seen.is_some_and(|seen| seen != SeenRecord::of(&record)) {
            return DeletedRecord::Changed(Box::new(record));
        }
        self.put_record(key, Some(idempotency::delete(&record, now)));
        DeletedRecord::Done(Box::new(record))
    }

    pub(super) fn list_records(&self, query: &RecordQuery) -> RecordPage {
        let from = match &query.after {
            Some(after) => {
                Bound::Excluded((query.tenant.clone(), after.operation().to_string(), after.place().to_owned()))
            }
            None => Bound::Included((query.tenant.clone(), String::new(), String::new())),
        };
        let of_tenant = self.records.range((from, Bound::Unbounded)).map(|(_, row)| row);
        let mut rows = of_tenant.take_while(|row| row.key.tenant == query.tenant);
        let mut page = RecordPage::default();
        let mut last = None;
        for row in rows.by_ref().take(LOOKED_AT) {
            last = Some(RecordCursor::new(row.key.operation.clone(), row.key.name.as_str()));
            if query.permits(&row.key, &row.record) {
                page.records.push((row.key.clone(), row.record.clone().without_body()));
            }
            if page.records.len() >= query.limit.max(1) {
                break;
            }
        }
        page.next = last.filter(|_| rows.next().is_some());
        page
    }

    pub(super) fn count_records(
        &self,
        tenant: &TenantId,
        after: Option<&Operation>,
        limit: usize,
        most: u32,
    ) -> Vec<OperationCounts> {
        let mut counts: BTreeMap<String, OperationCounts> = BTreeMap::new();
        for row in self.records.values().filter(|row| row.key.tenant == *tenant) {
            let (text, operation) = (row.key.operation.to_string(), row.key.operation.clone());
            if row.record.state == RecordState::Released || after.is_some_and(|after| text <= after.to_string()) {
                continue;
            }
            let counts = counts.entry(text).or_insert_with(|| OperationCounts::none(operation));
            if let Some(count) = counts.of_mut(row.record.state) {
                *count = (*count + 1).min(most);
            }
        }
        counts.into_values().take(limit).collect()
    }

    pub(super) fn clean_records(&mut self, now: Timestamp, limit: usize) -> usize {
        let expired = self.records.iter().filter(|(_, row)| row.record.expires_at <= now);
        let mut expired: Vec<_> = expired.map(|(place, row)| (row.record.expires_at, place.clone())).collect();
        expired.sort();
        expired.truncate(limit);
        for (_, place) in &expired {
            if let Some(row) = self.records.remove(place) {
                self.indexes.release_body(&row.key.tenant, stored_body(&row.record.completion));
            }
        }
        expired.len()
    }

    fn put_record(&mut self, key: &RecordKey, changed: Option<Record>) {
        let Some(record) = changed else { return };
        let tenant = &key.tenant;
        if let Some(body) = stored_body(&record.completion) {
            *self.indexes.bodies.entry(Blob { tenant: tenant.clone(), body: *body }).or_default() += 1;
        }
        let before = self.records.insert(place(key), Row { key: key.clone(), record });
        if let Some(before) = before {
            self.indexes.release_body(tenant, stored_body(&before.record.completion));
        }
    }
}

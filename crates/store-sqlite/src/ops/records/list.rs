//! A page of records, by operation and then oldest first.
//!
//! An index by name would cost every reservation a page read and a page write, as names are random. Within an operation the
//! order is the one in which records were made, which is the order of their numbers.

use redrive_core::idempotency::{Operation, RecordKey};
use redrive_store::{OperationFilter, RecordCursor, RecordPage, RecordQuery};
use rusqlite::{Connection, Row};

use super::find::RECORD;
use crate::codec::{RecordRow, millis, record_column, state_code};
use crate::ops::set_aside::{Damaged, readable};
use crate::readers::Reader;
use crate::sqlite_error::SqliteError;

/// The most rows that one page looks at before it returns where to continue.
const ROWS_PER_PAGE: usize = 1_000;

/// A number below every record.
const START: i64 = 0;

pub(crate) const OPERATIONS: &str = "SELECT id, name FROM operations WHERE tenant = ?1 AND name >= ?2 ORDER BY name";

/// The records of an operation that were not given up, merged from one walk for each state.
pub(crate) const WALK: &str = "SELECT id FROM records WHERE operation = ?1 AND state = 2 AND id > ?2
     UNION ALL SELECT id FROM records WHERE operation = ?1 AND state = 3 AND id > ?2
     UNION ALL SELECT id FROM records WHERE operation = ?1 AND state = 4 AND id > ?2
     UNION ALL SELECT id FROM records WHERE operation = ?1 AND state = 5 AND id > ?2
     ORDER BY id";

pub(crate) const WALK_STATE: &str =
    "SELECT id FROM records WHERE operation = ?1 AND state = ?3 AND id > ?2 ORDER BY id";

pub(crate) fn list(
    reader: &mut Reader,
    query: &RecordQuery,
    damaged: &mut Vec<Damaged>,
) -> Result<RecordPage, SqliteError> {
    let Reader { connection, names } = reader;
    let mut walk = Walk { connection, query, damaged, page: RecordPage::default(), looked_at: 0 };
    let Some(tenant) = names.tenant_key(connection, &query.tenant)? else { return Ok(walk.page) };
    let Some(start) = Start::of(query) else { return Ok(walk.page) };
    let mut select = connection.prepare_cached(OPERATIONS)?;
    let mut rows = select.query((tenant, &start.operation))?;
    while let Some(row) = rows.next()? {
        // A name that cannot be read belongs to no operation that a caller could ask for.
        let Some(operation) = row.get_ref(1)?.as_str().ok().and_then(|name| name.parse().ok()) else { continue };
        let is_permitted = query.operations.permits(&operation);
        if !is_permitted && matches!(query.operations, OperationFilter::One(_)) {
            break;
        }
        if walk.is_tired() || (is_permitted && walk.is_full()) {
            walk.page.next = Some(RecordCursor::new(operation, START.to_string()));
            break;
        }
        walk.looked_at += 1;
        if is_permitted && !walk.take(row.get(0)?, &operation, start.after(&operation))? {
            break;
        }
    }
    Ok(walk.page)
}

/// Where a page begins.
struct Start {
    operation: String,
    /// Records of this operation up to this number were on earlier pages.
    after: i64,
}

impl Start {
    /// `None` if the cursor was not made here: nothing is behind it.
    fn of(query: &RecordQuery) -> Option<Self> {
        let mut start = Start { operation: String::new(), after: START };
        if let Some(cursor) = &query.after {
            start = Start { operation: cursor.operation().to_string(), after: cursor.place().parse().ok()? };
        }
        match &query.operations {
            OperationFilter::One(one) if one.to_string() > start.operation => {
                Some(Start { operation: one.to_string(), after: START })
            }
            _ => Some(start),
        }
    }

    fn after(&self, operation: &Operation) -> i64 {
        if operation.to_string() == self.operation { self.after } else { START }
    }
}

/// A page that is being filled.
struct Walk<'a> {
    connection: &'a Connection,
    query: &'a RecordQuery,
    damaged: &'a mut Vec<Damaged>,
    page: RecordPage,
    looked_at: usize,
}

impl Walk<'_> {
    fn is_full(&self) -> bool {
        self.page.records.len() >= self.query.limit.max(1)
    }

    fn is_tired(&self) -> bool {
        self.looked_at >= ROWS_PER_PAGE
    }

    /// Takes the records of an operation. Returns false if the page ends within them.
    fn take(&mut self, number: i64, operation: &Operation, after: i64) -> Result<bool, SqliteError> {
        let mut select = self.connection.prepare_cached(if self.query.state.is_some() { WALK_STATE } else { WALK })?;
        let mut rows = match self.query.state {
            Some(state) => select.query((number, after, state_code(state)))?,
            None => select.query((number, after))?,
        };
        let mut last = after;
        while let Some(row) = rows.next()? {
            if self.is_full() || self.is_tired() {
                self.page.next = Some(RecordCursor::new(operation.clone(), last.to_string()));
                return Ok(false);
            }
            self.looked_at += 1;
            last = row.get(0)?;
            self.look(last, operation)?;
        }
        Ok(true)
    }

    fn look(&mut self, id: i64, operation: &Operation) -> Result<(), SqliteError> {
        let mut select = self.connection.prepare_cached(RECORD)?;
        let mut rows = select.query([id])?;
        let Some(row) = rows.next()? else { return Ok(()) };
        if !self.may_be_listed(row)? {
            return Ok(());
        }
        let read = readable(RecordRow::read(row), self.damaged, |problem| Damaged::record(id, problem))?;
        let Some(RecordRow { name, record, .. }) = read else { return Ok(()) };
        let key = RecordKey { tenant: self.query.tenant.clone(), operation: operation.clone(), name };
        if self.query.permits(&key, &record) {
            self.page.records.push((key, record.without_body()));
        }
        Ok(())
    }

    /// Compares the times, before the body is read. A time that cannot be read is noted later.
    fn may_be_listed(&self, row: &Row<'_>) -> Result<bool, SqliteError> {
        let (expires_at, updated_at) =
            (row.get_ref(record_column::EXPIRES_AT)?.as_i64(), row.get_ref(record_column::UPDATED_AT)?.as_i64());
        let is_kept = expires_at.map_or(true, |at| millis(self.query.now) < at);
        let is_old = self.query.updated_before.is_none_or(|before| updated_at.map_or(true, |at| at < millis(before)));
        Ok(is_kept && is_old)
    }
}

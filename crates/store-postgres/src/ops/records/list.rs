//! A page of records, in the order of the primary key. The records in progress, few of many, have an index of their own.
//!
//! A call looks at a bounded number of rows. So it first finds how far it may look (the edge), and then reads the rows up
//! to there that match.

use redrive_core::Timestamp;
use redrive_core::idempotency::{Operation, Record, RecordKey, State};
use redrive_store::{OperationFilter, RecordCursor, RecordPage, RecordQuery};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::codec::{Cells, millis, record, record_columns, record_key};
use crate::connection::Connection;
use crate::postgres_error::PostgresError;

/// The most rows of one range that one call looks at.
const LOOKED_AT: i64 = 1_000;

/// The operations of inboxes are between these texts, and no other operation is.
const FIRST_INBOX: &str = "inbox/";
const AFTER_INBOXES: &str = "inbox0";
/// A text behind every operation and every name, which consist of visible ASCII characters.
const LAST: &str = "\u{7f}";

/// A range of keys of one tenant: behind `from`, up to and including `to`. Each is an operation and a name.
#[derive(Debug, Clone)]
struct Range {
    from: (String, String),
    to: (String, String),
}

impl Range {
    fn is_empty(&self) -> bool {
        self.from >= self.to
    }
}

/// The ranges of a query, in order. Inboxes may have far more records than operations, so that a list of operations
/// does not look at them.
fn ranges(query: &RecordQuery) -> Vec<Range> {
    // A cursor may come from anywhere, and PostgreSQL refuses a NUL in a text.
    let place = |cursor: &RecordCursor| cursor.place().split('\0').next().unwrap_or_default().to_owned();
    let after = query.after.as_ref().map(|cursor| (cursor.operation().to_string(), place(cursor))).unwrap_or_default();
    let range = |from: (&str, &str), to: (&str, &str)| {
        let owned = |(operation, name): (&str, &str)| (operation.to_owned(), name.to_owned());
        Range { from: owned(from).max(after.clone()), to: owned(to) }
    };
    let ranges = match &query.operations {
        OperationFilter::One(operation) => {
            let operation = operation.to_string();
            vec![range((&operation, ""), (&operation, LAST))]
        }
        OperationFilter::AllNamed => {
            vec![range(("", ""), (FIRST_INBOX, "")), range((AFTER_INBOXES, ""), (LAST, LAST))]
        }
    };
    ranges.into_iter().filter(|range| !range.is_empty()).collect()
}

pub(crate) async fn list(connection: &Connection, query: &RecordQuery) -> Result<RecordPage, PostgresError> {
    let mut page = RecordPage::default();
    let limit = query.limit.max(1);
    for range in ranges(query) {
        let rest = limit - page.records.len();
        page.next = add(connection, query, range, rest, &mut page.records).await?;
        if page.next.is_some() || page.records.len() >= limit {
            break;
        }
    }
    Ok(page)
}

/// The statements for a list. `$only` is its condition; `$order` is what it is sorted by behind the operation, in the order of
/// the index that it is read along.
macro_rules! statements {
    ($only:literal, $order:literal) => {
        Statements {
            edge: concat!(
                "SELECT record.tenant, record.operation, record.name
                 FROM redrive.idempotency_records AS record
                 WHERE record.tenant = $1 AND (record.operation, record.name) > ($2, $3)
                   AND (record.operation, record.name) <= ($4, $5)",
                $only,
                "ORDER BY record.tenant, record.operation, ",
                $order,
                " OFFSET $6 LIMIT 1"
            ),
            page: concat!(
                "SELECT record.tenant, record.operation, record.name, ",
                record_columns!("NULL::bytea"),
                "
                 FROM redrive.idempotency_records AS record
                 WHERE record.tenant = $1 AND (record.operation, record.name) > ($2, $3)
                   AND (record.operation, record.name) <= ($4, $5)
                   AND record.state <> 'RELEASED' AND record.expires_at > $6
                   AND ($7::text IS NULL OR record.state = $7) AND ($8::bigint IS NULL OR record.updated_at < $8)",
                $only,
                "ORDER BY record.tenant, record.operation, ",
                $order,
                " LIMIT $9"
            ),
        }
    };
}

/// How a list is read.
struct Statements {
    /// Finds the last row that one call looks at.
    edge: &'static str,
    /// Reads the rows up to there that match.
    page: &'static str,
}

/// Along the primary key.
const ALL: Statements = statements!(" ", "record.name");
/// Along the index of the records in progress: the only one that has this order.
const IN_PROGRESS: Statements = statements!(" AND record.state = 'IN_PROGRESS' ", "record.name, record.updated_at");

fn statements(query: &RecordQuery) -> &'static Statements {
    if query.state == Some(State::InProgress) { &IN_PROGRESS } else { &ALL }
}

/// Adds the records of a range that match, at most `limit`. Returns where the next page begins, if there may be more in
/// this range.
async fn add(
    connection: &Connection,
    query: &RecordQuery,
    mut range: Range,
    limit: usize,
    records: &mut Vec<(RecordKey, Record)>,
) -> Result<Option<RecordCursor>, PostgresError> {
    let edge = edge(connection, query, &range).await?;
    if let Some(edge) = &edge {
        range.to = (edge.operation().to_string(), edge.place().to_owned());
    }
    let rows = page(connection, query, &range, limit).await?;
    for row in &rows {
        let mut cells = Cells::of(row);
        match record_key(&mut cells).and_then(|key| Ok((key, record(&mut cells)?))) {
            Err(failure) if failure.is_about_a_value() => {
                tracing::warn!(%failure, "an idempotency record cannot be read and is not listed");
            }
            read => records.push(read?),
        }
    }
    Ok(if rows.len() >= limit { rows.iter().rev().find_map(cursor).or(edge) } else { edge })
}

/// The last key that this call looks at, if it does not reach the end of the range.
async fn edge(
    connection: &Connection,
    query: &RecordQuery,
    Range { from, to }: &Range,
) -> Result<Option<RecordCursor>, PostgresError> {
    let arguments = [
        (&query.tenant.as_str() as _, Type::TEXT),
        (&from.0 as _, Type::TEXT),
        (&from.1 as _, Type::TEXT),
        (&to.0 as _, Type::TEXT),
        (&to.1 as _, Type::TEXT),
        (&(LOOKED_AT - 1) as _, Type::INT8),
    ];
    Ok(connection.query(statements(query).edge, &arguments).await?.first().and_then(cursor))
}

/// The place of a row. `None` if its operation cannot be read.
fn cursor(row: &Row) -> Option<RecordCursor> {
    let mut cells = Cells::from(row, 1);
    let operation = cells.parsed(|text| text.parse::<Operation>().ok()).ok()?;
    Some(RecordCursor::new(operation, cells.get::<&str>().ok()?))
}

async fn page(
    connection: &Connection,
    query: &RecordQuery,
    Range { from, to }: &Range,
    limit: usize,
) -> Result<Vec<Row>, PostgresError> {
    let state: Option<&str> = query.state.map(State::name);
    let before: Option<i64> = query.updated_before.map(millis);
    let now: Timestamp = query.now;
    let arguments = [
        (&query.tenant.as_str() as _, Type::TEXT),
        (&from.0 as _, Type::TEXT),
        (&from.1 as _, Type::TEXT),
        (&to.0 as _, Type::TEXT),
        (&to.1 as _, Type::TEXT),
        (&millis(now) as _, Type::INT8),
        (&state as _, Type::TEXT),
        (&before as _, Type::INT8),
        (&i64::try_from(limit).unwrap_or(i64::MAX) as _, Type::INT8),
    ];
    connection.query(statements(query).page, &arguments).await
}

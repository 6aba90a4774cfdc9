//! The database that the rows come from: one session, which also holds the lock of the table.
//!
//! Rows are read, and deleted once Redrive has them. There is no cursor: an id is drawn when a row is inserted, but the
//! row is seen when its transaction commits, so a row may turn up below others that have long been handed over. A
//! cursor would have gone past it; who looks for whatever is there finds it.

use std::sync::Arc;
use std::time::Duration;

use redrive_store_postgres::connect::{Address, ConnectError, Driven};
use redrive_store_postgres::describe_error;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Statement};

use super::key::Keys;
use super::row::{LARGEST_BODY, Row};
use crate::commands::outbox::name::TableName;

/// How long anything may take before the session is given up.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// The most bytes of bodies in one batch, give or take the last body: in base64 they fit into one request.
const BATCH_BYTES: i64 = 4 * 1024 * 1024;
/// The upper half of the lock's number, to stay out of the way of other users of such locks: "RDOB".
const LOCK_SPACE: i64 = 0x5244_4F42;

/// Why the source cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("{0}")]
    Connect(#[from] ConnectError),
    #[error("{}", describe_error(.0))]
    Postgres(#[from] tokio_postgres::Error),
    #[error("no answer within {CALL_TIMEOUT:?}")]
    TimedOut,
    #[error("there is no table {0}; create it with the statements of `redrive outbox table`")]
    NoTable(String),
    #[error("the role needs SELECT, UPDATE and DELETE on the table")]
    Privileges,
    #[error("the column body must be of type bytea, not {0}")]
    Body(String),
    #[error("the server is a standby, from which rows cannot be deleted; connect to the primary")]
    Standby,
}

impl Error {
    /// Whether retrying is useless until the table, its rights or the database are changed.
    pub(super) fn is_lasting(&self) -> bool {
        /// Not let in, no such database, no such column or privilege.
        const LASTING: [&str; 3] = ["28", "3D", "42"];
        match self {
            Error::NoTable(_) | Error::Body(_) | Error::Privileges => true,
            Error::Connect(error) => error.is_lasting(),
            Error::Postgres(error) => error.code().is_some_and(|code| LASTING.contains(&&code.code()[..2])),
            Error::TimedOut | Error::Standby => false,
        }
    }
}

/// Whatever the server does not answer in time fails.
async fn within_time<T>(call: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Result<T, Error> {
    tokio::time::timeout(CALL_TIMEOUT, call).await.map_or(Err(Error::TimedOut), |outcome| outcome.map_err(Error::from))
}

/// An open session.
pub(super) struct Source {
    client: Client,
    driver: JoinHandle<()>,
    news: Arc<Notify>,
    table: Table,
    read: Statement,
    delete: Statement,
    refuse: Statement,
}

/// The table, as the server knows it.
struct Table {
    oid: u32,
    schema: String,
    name: String,
    /// Both, in quotes where they need them.
    quoted: String,
}

impl Source {
    /// Connects, and finds the table.
    pub(super) async fn open(address: &Address, table: &TableName) -> Result<Self, Error> {
        let (client, driven) = address.connect().await?;
        let news = Arc::new(Notify::new());
        let driver = tokio::spawn(drive(driven, news.clone()));
        let table = find(&client, table).await?;
        // A commit that the source loses in a crash brings deleted rows back: they are handed over again, and Redrive
        // knows their keys. So there is nothing to wait for its disk for.
        let session = format!("SET synchronous_commit = off; LISTEN redrive_outbox_{}", table.oid);
        within_time(client.batch_execute(&session)).await?;
        let prepare = async |sql: &str| within_time(client.prepare(&sql.replace("{table}", &table.quoted))).await;
        let (read, delete, refuse) = (prepare(READ).await?, prepare(DELETE).await?, prepare(REFUSE).await?);
        match read.columns().iter().find(|column| column.name() == "body") {
            Some(body) if *body.type_() != Type::BYTEA => return Err(Error::Body(body.type_().to_string())),
            _ => {}
        }
        Ok(Source { client, driver, news, table, read, delete, refuse })
    }

    /// The table's name with its schema.
    pub(super) fn table(&self) -> &str {
        &self.table.quoted
    }

    /// Takes the lock of the table, if it is free. The lock ends with the session.
    pub(super) async fn try_lock(&self) -> Result<bool, Error> {
        let key = LOCK_SPACE << 32 | i64::from(self.table.oid);
        Ok(within_time(self.client.query_one("SELECT pg_try_advisory_lock($1)", &[&key])).await?.try_get(0)?)
    }

    /// The keys for rows that bring none.
    pub(super) async fn keys(&self, source: Option<&str>) -> Result<Keys, Error> {
        const PLACE: &str = "
SELECT (SELECT system_identifier::text FROM pg_control_system()), oid FROM pg_database
WHERE datname = current_database()";
        if let Some(name) = source {
            return Ok(Keys::named(name, &self.table.schema, &self.table.name));
        }
        let row = within_time(self.client.query_one(PLACE, &[])).await?;
        Ok(Keys::unnamed(row.try_get(0)?, row.try_get(1)?, self.table.oid))
    }

    /// The highest id that there is.
    pub(super) async fn newest(&self) -> Result<i64, Error> {
        let newest = format!("SELECT coalesce(max(id), 0)::bigint FROM {}", self.table.quoted);
        Ok(within_time(self.client.query_one(&newest, &[])).await?.try_get(0)?)
    }

    /// The first rows that were not refused, by their ids, up to `last`: at most `most`, and fewer if they are large.
    pub(super) async fn read(&self, most: usize, last: i64) -> Result<Vec<Row>, Error> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let bounds: [&(dyn ToSql + Sync); 4] = [&most, &last, &BATCH_BYTES, &LARGEST_BODY];
        let rows = within_time(self.client.query(&self.read, &bounds)).await?;
        Ok(rows.iter().map(row).collect::<Result<_, _>>()?)
    }

    /// Deletes rows that were handed over, and says how many: not those that were changed since they were read.
    pub(super) async fn delete(&self, rows: &[&Row]) -> Result<u64, Error> {
        let (ids, versions) = versions(rows);
        within_time(self.client.execute(&self.delete, &[&ids, &versions])).await
    }

    /// Notes why rows were refused, unless they were changed since they were read.
    pub(super) async fn refuse(&self, rows: &[&Row], reasons: &[&str]) -> Result<u64, Error> {
        let (ids, versions) = versions(rows);
        within_time(self.client.execute(&self.refuse, &[&ids, &versions, &reasons])).await
    }

    /// Waits for a notification of new rows, or until the session has ended.
    pub(super) async fn news(&self) {
        self.news.notified().await;
    }
}

impl Drop for Source {
    /// A server that does not answer must not keep the session, and with it the lock.
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// `version` is the transaction that wrote the row. Sizes first and bodies after that: of rows that do not fit into the
/// batch, and of a body that is too large, no byte is read.
const READ: &str = "
WITH first AS (
    SELECT id, coalesce(octet_length(body), 0)::bigint AS bytes
    FROM {table}
    WHERE refused IS NULL AND id <= $2
    ORDER BY id
    LIMIT $1
), sized AS (
    SELECT id, bytes, (sum(bytes) OVER (ORDER BY id) - bytes)::bigint AS bytes_before FROM first
)
SELECT
    id, outbox.xmin::text::bigint AS version, target_url, method, headers::text AS headers,
    CASE WHEN bytes <= $4 THEN body END AS body, bytes, policy_id, idempotency_key, dependency,
    to_jsonb(not_before) #>> '{}' AS not_before, labels::text AS labels
FROM sized JOIN {table} AS outbox USING (id)
WHERE bytes_before < $3
ORDER BY id";

const DELETE: &str = "
DELETE FROM {table} AS outbox
USING unnest($1::bigint[], $2::bigint[]) AS done (id, version)
WHERE outbox.id = done.id AND outbox.xmin::text::bigint = done.version";

const REFUSE: &str = "
UPDATE {table} AS outbox
SET refused = told.reason
FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS told (id, version, reason)
WHERE outbox.id = told.id AND outbox.xmin::text::bigint = told.version";

async fn find(client: &Client, table: &TableName) -> Result<Table, Error> {
    const FIND: &str = "
SELECT
    pg_class.oid, nspname::text, relname::text, format('%I.%I', nspname, relname), pg_is_in_recovery(),
    has_table_privilege(pg_class.oid, 'SELECT') AND has_table_privilege(pg_class.oid, 'UPDATE')
        AND has_table_privilege(pg_class.oid, 'DELETE')
FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE pg_class.oid = to_regclass($1) AND relkind IN ('r', 'p')";
    let found = within_time(client.query_opt(FIND, &[&table.to_string()])).await?;
    let row = found.ok_or_else(|| Error::NoTable(table.to_string()))?;
    if row.try_get(4)? {
        return Err(Error::Standby);
    }
    if !row.try_get::<_, bool>(5)? {
        return Err(Error::Privileges);
    }
    Ok(Table { oid: row.try_get(0)?, schema: row.try_get(1)?, name: row.try_get(2)?, quoted: row.try_get(3)? })
}

fn row(row: &tokio_postgres::Row) -> Result<Row, tokio_postgres::Error> {
    Ok(Row {
        id: row.try_get("id")?,
        version: row.try_get("version")?,
        target_url: row.try_get("target_url")?,
        method: row.try_get("method")?,
        headers: row.try_get("headers")?,
        body: row.try_get("body")?,
        body_bytes: row.try_get("bytes")?,
        policy_id: row.try_get("policy_id")?,
        idempotency_key: row.try_get("idempotency_key")?,
        dependency: row.try_get("dependency")?,
        not_before: row.try_get("not_before")?,
        labels: row.try_get("labels")?,
    })
}

fn versions(rows: &[&Row]) -> (Vec<i64>, Vec<i64>) {
    rows.iter().map(|row| (row.id, row.version)).unzip()
}

/// Moves the session's bytes until it ends, and passes on that there are new rows.
async fn drive(mut driven: Driven, news: Arc<Notify>) {
    loop {
        match driven.next().await {
            Some(Ok(AsyncMessage::Notification(_))) => news.notify_one(),
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                tracing::debug!(error = describe_error(&error), "the session with the outbox's database ended");
                break;
            }
            None => break,
        }
    }
    news.notify_one();
}

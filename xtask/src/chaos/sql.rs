//! The harness's own statements for PostgreSQL, from a thread without an async runtime.
//!
//! They ignore the synchronous standby and the read-only setting: a statement that waits would block the thread that
//! repairs both. Each has a timeout, because the server may stop answering at any moment.

use std::time::Duration;

use anyhow::{Context, Result};
use tokio_postgres::{NoTls, SimpleQueryMessage};

/// The timeout of a statement, its connection included.
const LIMIT: Duration = Duration::from_secs(2);
/// The settings of every session. A row that a node has locked is left alone.
const SESSION: &str =
    "SET synchronous_commit = local; SET default_transaction_read_only = off; SET lock_timeout = '200ms'";

/// The first column of each row that `statement` returns in the database at `url`; `None` for NULL.
pub fn column(url: &str, statement: &str) -> Result<Vec<Option<String>>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let rows = runtime.block_on(async { tokio::time::timeout(LIMIT, ask(url, statement)).await });
    rows.with_context(|| format!("no answer within {LIMIT:?}"))?.with_context(|| format!("running {statement:?}"))
}

/// Whether `statement`, which returns the rows that it changes, changed any.
pub fn has_changed(url: &str, statement: &str) -> Result<bool> {
    Ok(!column(url, statement)?.is_empty())
}

/// A value as an SQL literal.
pub fn literal(value: Option<&str>) -> String {
    value.map_or_else(|| "NULL".to_owned(), |text| format!("'{}'", text.replace('\'', "''")))
}

async fn ask(url: &str, statement: &str) -> Result<Vec<Option<String>>, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    let connection = tokio::spawn(connection);
    client.batch_execute(SESSION).await?;
    let messages = client.simple_query(statement).await;
    drop(client);
    // A failure of the connection is also a failure of the statement.
    connection.await.ok();
    let first = |message| match message {
        SimpleQueryMessage::Row(row) => Some(row.get(0).map(str::to_owned)),
        _ => None,
    };
    Ok(messages?.into_iter().filter_map(first).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_in_a_value_is_doubled() {
        for (value, expected) in [(None, "NULL"), (Some("it's"), "'it''s'"), (Some("5"), "'5'")] {
            assert_eq!(literal(value), expected);
        }
    }
}

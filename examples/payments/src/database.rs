//! The service's own database: its payments and its ledger.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio_postgres::{Client, NoTls, Row};

/// One row for each key: a key is never charged as two payments. `ledger` has one row for each charge.
const TABLES: &str = "
CREATE TABLE IF NOT EXISTS payments (
    key         text PRIMARY KEY,
    amount      bigint NOT NULL,
    charge      text,
    settled_by  text,
    settlements bigint NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS ledger (
    key    text NOT NULL,
    charge text NOT NULL,
    amount bigint NOT NULL
);";

pub(crate) async fn connect(database: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(database, NoTls).await.context("connecting to the database")?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            eprintln!("the connection to the database ended: {error}");
        }
    });
    Ok(client)
}

pub(crate) async fn create_tables(database: &str) -> Result<()> {
    connect(database).await?.batch_execute(TABLES).await.context("creating the tables")
}

/// Writes down that a payment is to be made, and returns its charge if it was made already.
pub(crate) async fn intend(client: &Client, key: &str, amount: i64) -> Result<Option<String>> {
    let insert = "INSERT INTO payments (key, amount) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING";
    client.execute(insert, &[&key, &amount]).await?;
    let row = client.query_one("SELECT charge FROM payments WHERE key = $1", &[&key]).await?;
    Ok(row.try_get(0)?)
}

/// Writes the charge to the payment and to the ledger in one transaction, once.
pub(crate) async fn charged(client: &mut Client, key: &str, charge: &str, amount: i64) -> Result<()> {
    let transaction = client.transaction().await?;
    let update = "UPDATE payments SET charge = $2 WHERE key = $1 AND charge IS NULL";
    if transaction.execute(update, &[&key, &charge]).await? == 1 {
        let insert = "INSERT INTO ledger (key, charge, amount) VALUES ($1, $2, $3)";
        transaction.execute(insert, &[&key, &charge, &amount]).await?;
    }
    transaction.commit().await.context("committing a charge")
}

/// Marks the payment of a charge as settled by an event, and counts how often that was done. `false` if there is no such charge.
pub(crate) async fn settled(client: &Client, charge: &str, event: &str) -> Result<bool> {
    let update = "UPDATE payments SET settled_by = $2, settlements = settlements + 1 WHERE charge = $1";
    Ok(client.execute(update, &[&charge, &event]).await? == 1)
}

/// Whether the payment of a charge was settled by this event.
pub(crate) async fn is_settled_by(client: &Client, charge: &str, event: &str) -> Result<bool> {
    let select = "SELECT FROM payments WHERE charge = $1 AND settled_by = $2";
    Ok(client.query_opt(select, &[&charge, &event]).await?.is_some())
}

/// Every payment, with the number of its charges in the ledger.
pub(crate) async fn payments(client: &Client) -> Result<Vec<Value>> {
    let select =
        "SELECT key, charge, settled_by, settlements, (SELECT count(*) FROM ledger WHERE ledger.key = payments.key)
                  FROM payments ORDER BY key";
    let rows = client.query(select, &[]).await?;
    let shown = |row: &Row| {
        let (key, charge, settled_by): (String, Option<String>, Option<String>) =
            (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let (settlements, charges): (i64, i64) = (row.try_get(3)?, row.try_get(4)?);
        Ok(json!({
            "key": key, "charge": charge, "settledBy": settled_by, "settlements": settlements, "charges": charges,
        }))
    };
    rows.iter().map(shown).collect()
}

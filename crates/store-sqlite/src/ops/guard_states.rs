//! The states of guards, and what operators have set for lanes.

use std::collections::BTreeMap;

use redrive_core::guards::{Controls, Snapshot};
use redrive_core::{Dependency, Lane, TenantId};
use redrive_store::GuardState;
use rusqlite::{Connection, OptionalExtension, Row};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::readers::Reader;
use crate::sqlite_error::SqliteError;
use crate::writer::Writer;

/// Writes states into the open transaction.
pub(crate) fn write(connection: &Connection, states: &BTreeMap<Lane, Option<Snapshot>>) -> Result<(), SqliteError> {
    let mut insert = connection
        .prepare_cached("INSERT OR REPLACE INTO guard_states (tenant, dependency, state) VALUES (?1, ?2, ?3)")?;
    let mut delete = connection.prepare_cached("DELETE FROM guard_states WHERE tenant = ?1 AND dependency = ?2")?;
    for (Lane { tenant, dependency }, state) in states {
        match state {
            Some(state) => insert.execute((tenant.as_str(), dependency.as_str(), encode(state)?))?,
            None => delete.execute((tenant.as_str(), dependency.as_str()))?,
        };
    }
    Ok(())
}

/// The kept states after a lane.
pub(crate) fn kept(reader: &mut Reader, after: Option<&Lane>, limit: usize) -> Result<Vec<GuardState>, SqliteError> {
    let select = "SELECT tenant, dependency, state FROM guard_states WHERE (tenant, dependency) > (?1, ?2)
         ORDER BY tenant, dependency";
    let states = page::<Snapshot>(&reader.connection, select, after, limit)?;
    Ok(states.into_iter().map(|(lane, state)| GuardState { lane, state: Some(state) }).collect())
}

/// Replaces the controls of a lane if they are the expected ones.
pub(crate) fn replace_controls(
    writer: &mut Writer,
    lane: &Lane,
    expected: &Controls,
    new: &Controls,
) -> Result<bool, SqliteError> {
    let (tenant, dependency) = (lane.tenant.as_str(), lane.dependency.as_str());
    let select = "SELECT tenant, dependency, controls FROM lane_controls WHERE tenant = ?1 AND dependency = ?2";
    let mut select = writer.connection.prepare_cached(select)?;
    let stored = select.query_row((tenant, dependency), |row| Ok(decode::<Controls>(row))).optional()?;
    let is_unreadable = stored == Some(None);
    if stored.flatten().map(|(_, controls)| controls).unwrap_or_default() != *expected {
        return Ok(false);
    }
    if is_unreadable {
        tracing::warn!(tenant, dependency, "the controls of a lane cannot be understood and are replaced");
    }
    if new.is_empty() {
        let delete = "DELETE FROM lane_controls WHERE tenant = ?1 AND dependency = ?2";
        writer.connection.prepare_cached(delete)?.execute((tenant, dependency))?;
    } else {
        let insert = "INSERT OR REPLACE INTO lane_controls (tenant, dependency, controls) VALUES (?1, ?2, ?3)";
        writer.connection.prepare_cached(insert)?.execute((tenant, dependency, encode(new)?))?;
    }
    Ok(true)
}

/// The controls that are set, after a lane.
pub(crate) fn controls(
    reader: &mut Reader,
    after: Option<&Lane>,
    limit: usize,
) -> Result<Vec<(Lane, Controls)>, SqliteError> {
    let select = "SELECT tenant, dependency, controls FROM lane_controls WHERE (tenant, dependency) > (?1, ?2)
         ORDER BY tenant, dependency";
    page(&reader.connection, select, after, limit)
}

/// Entries after a lane. Unreadable ones are skipped and do not count: a page that is not full would look like the last
/// one.
fn page<T: DeserializeOwned>(
    connection: &Connection,
    select: &str,
    after: Option<&Lane>,
    limit: usize,
) -> Result<Vec<(Lane, T)>, SqliteError> {
    let after = after.map_or(("", ""), |lane| (lane.tenant.as_str(), lane.dependency.as_str()));
    let mut select = connection.prepare_cached(select)?;
    let mut rows = select.query(after)?;
    let mut page = Vec::new();
    while page.len() < limit
        && let Some(row) = rows.next()?
    {
        match decode(row) {
            Some(entry) => page.push(entry),
            None => tracing::warn!("a row about a lane's guards cannot be understood and is ignored"),
        }
    }
    Ok(page)
}

/// One entry; `None` if it cannot be understood.
fn decode<T: DeserializeOwned>(row: &Row<'_>) -> Option<(Lane, T)> {
    let text = |column: usize| row.get::<_, String>(column).ok();
    let tenant = TenantId::try_new(&text(0)?).ok()?;
    let dependency = Dependency::try_new(&text(1)?).ok()?;
    Some((Lane { tenant, dependency }, serde_json::from_str(&text(2)?).ok()?))
}

fn encode(value: &impl Serialize) -> Result<String, SqliteError> {
    serde_json::to_string(value).map_err(|error| SqliteError::corrupt("the guards of a lane", error))
}

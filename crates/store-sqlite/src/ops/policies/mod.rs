//! Policies and their versions.

mod delete;
mod list;
mod put;
mod versions;

pub(crate) use delete::delete_policy;
pub(crate) use list::policies;
pub(crate) use put::put_policy;
pub(crate) use versions::{policy, policy_version};

use redrive_core::{PolicyId, Timestamp};
use redrive_store::{Expected, PolicyVersion};
use rusqlite::{Connection, Row};

use crate::sqlite_error::SqliteError;

/// The current version of a policy, with the columns that a check needs.
struct Current {
    version: u32,
    spec: String,
    created_at: Timestamp,
}

/// Whether the current version, if there is one, matches the writer's expectation.
fn is_as(current: Option<u32>, expected: Expected) -> bool {
    match expected {
        Expected::Anything => true,
        Expected::Version(version) => current == Some(version),
        Expected::Absent => current.is_none(),
    }
}

/// Reads the version in this row.
pub(crate) fn read_version(connection: &Connection, row: &str) -> Result<Option<PolicyVersion>, SqliteError> {
    let mut select =
        connection.prepare_cached("SELECT policy, version, spec, created_at FROM policy_versions WHERE id = ?1")?;
    let mut rows = select.query([row])?;
    rows.next()?.map(read).transpose()
}

/// Reads policy, version, spec and time of creation.
fn read(row: &Row<'_>) -> Result<PolicyVersion, SqliteError> {
    let (name, version): (String, u32) = (row.get(0)?, row.get(1)?);
    let place =
        |what: &dyn std::fmt::Display| SqliteError::corrupt(format_args!("policy {name:?} version {version}"), what);
    let spec = row.get_ref(2)?.as_str().map_err(|error| place(&error))?;
    Ok(PolicyVersion {
        id: PolicyId::try_new(&name).map_err(|error| place(&error))?,
        version,
        spec: serde_json::from_str(spec).map_err(|error| place(&error))?,
        created_at: Timestamp::from_millis(row.get(3)?),
    })
}

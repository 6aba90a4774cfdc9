//! The guards that all processes share: versioned states of lanes and of origins.

use std::collections::HashMap;

use redrive_core::{Lane, Timestamp};
use redrive_store::{GuardKey, StateChange, VersionedState};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::codec::{Cells, millis};
use crate::connection::Connection;
use crate::ops::lane_pages::{LaneKey, LanePages};
use crate::ops::pending_lanes::read_lane;
use crate::ops::set_aside::Aside;
use crate::postgres_error::PostgresError;

/// A key as the table has it: tenant, scope, name.
type StoredKey<'a> = (&'a str, i16, &'a str);

fn stored(key: &GuardKey) -> StoredKey<'_> {
    match key {
        GuardKey::Lane(lane) => (lane.tenant.as_str(), 0, lane.dependency.as_str()),
        GuardKey::Origin(tenant, origin) => (tenant.as_str(), 1, origin),
    }
}

const READ: &str = "
SELECT kept.version, kept.state
FROM unnest($1::text[], $2::smallint[], $3::text[]) WITH ORDINALITY AS given (tenant, scope, name, place)
LEFT JOIN redrive.shared_guards AS kept
  ON kept.tenant = given.tenant AND kept.scope = given.scope AND kept.name = given.name
ORDER BY given.place";

/// The states of these keys, in order.
pub(crate) async fn read(
    connection: &Connection,
    keys: &[GuardKey],
) -> Result<Vec<Option<VersionedState>>, PostgresError> {
    let (mut tenants, mut scopes, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for (tenant, scope, name) in keys.iter().map(stored) {
        tenants.push(tenant);
        scopes.push(scope);
        names.push(name);
    }
    let arguments =
        [(&tenants as _, Type::TEXT_ARRAY), (&scopes as _, Type::INT2_ARRAY), (&names as _, Type::TEXT_ARRAY)];
    let rows = connection.query(READ, &arguments).await?;
    let state = |row| {
        let mut cells = Cells::of(row);
        let version = cells.optional_unsigned()?;
        version.map(|version| Ok(VersionedState { version, state: cells.get()? })).transpose()
    };
    rows.iter().map(state).collect()
}

/// Compares and sets. Rows that exist are locked first, all in the order of their keys, so that two processes which
/// replace the same states wait for each other instead of ending in a deadlock. A row that another process changed
/// while this one waited is read again under its lock, so its version is compared as it is then. Only then rows are
/// inserted, also in the order of their keys. (`NOT IN` is hashed; a join would be a loop over all pairs.)
const REPLACE: &str = "
WITH given AS MATERIALIZED (
    SELECT * FROM unnest(
        $1::text[], $2::smallint[], $3::text[], $4::bigint[], $5::text[], $6::boolean[], $7::bigint[]
    ) WITH ORDINALITY AS given (tenant, scope, name, expected, state, is_closed, expires_at, place)
), locked AS MATERIALIZED (
    SELECT given.*, kept.version
    FROM given JOIN redrive.shared_guards AS kept
      ON kept.tenant = given.tenant AND kept.scope = given.scope AND kept.name = given.name
    ORDER BY given.place
    FOR UPDATE OF kept
), updated AS (
    UPDATE redrive.shared_guards AS kept SET
        version = nextval('redrive.shared_guard_versions'), state = locked.state,
        is_closed = locked.is_closed, expires_at = locked.expires_at
    FROM locked
    WHERE locked.version = locked.expected
      AND kept.tenant = locked.tenant AND kept.scope = locked.scope AND kept.name = locked.name
    RETURNING kept.tenant, kept.scope, kept.name, kept.version
), inserted AS (
    INSERT INTO redrive.shared_guards AS kept (tenant, scope, name, version, state, is_closed, expires_at)
    SELECT tenant, scope, name, nextval('redrive.shared_guard_versions'), state, is_closed, expires_at FROM given
    WHERE expected IS NULL AND place NOT IN (SELECT locked.place FROM locked)
    ORDER BY place
    ON CONFLICT DO NOTHING
    RETURNING kept.tenant, kept.scope, kept.name, kept.version
)
SELECT * FROM updated UNION ALL SELECT * FROM inserted";

/// Replaces the states whose versions are the expected ones; returns their new versions, in the order of `changes`.
pub(crate) async fn replace(
    connection: &Connection,
    changes: &[StateChange],
) -> Result<Vec<Option<u64>>, PostgresError> {
    let mut in_order: Vec<&StateChange> = changes.iter().collect();
    in_order.sort_by(|one, other| one.key.cmp(&other.key));
    let keys = || in_order.iter().map(|change| stored(&change.key));
    let tenants: Vec<&str> = keys().map(|(tenant, _, _)| tenant).collect();
    let scopes: Vec<i16> = keys().map(|(_, scope, _)| scope).collect();
    let names: Vec<&str> = keys().map(|(_, _, name)| name).collect();
    // A number that the table cannot have is the version of no state.
    let expected = |change: &&StateChange| change.expected.map(|version| i64::try_from(version).unwrap_or(-1));
    let expected: Vec<Option<i64>> = in_order.iter().map(expected).collect();
    let states: Vec<&str> = in_order.iter().map(|change| change.state.as_str()).collect();
    let closed: Vec<bool> = in_order.iter().map(|change| change.is_closed).collect();
    let expires: Vec<i64> = in_order.iter().map(|change| millis(change.expires_at)).collect();
    let rows = connection
        .query(
            REPLACE,
            &[
                (&tenants, Type::TEXT_ARRAY),
                (&scopes, Type::INT2_ARRAY),
                (&names, Type::TEXT_ARRAY),
                (&expected, Type::INT8_ARRAY),
                (&states, Type::TEXT_ARRAY),
                (&closed, Type::BOOL_ARRAY),
                (&expires, Type::INT8_ARRAY),
            ],
        )
        .await?;
    let mut replaced: HashMap<StoredKey<'_>, u64> = HashMap::with_capacity(rows.len());
    for row in &rows {
        let mut cells = Cells::of(row);
        replaced.insert((cells.get()?, cells.get()?, cells.get()?), cells.unsigned()?);
    }
    Ok(changes.iter().map(|change| replaced.get(&stored(&change.key)).copied()).collect())
}

/// The lanes whose breaker is not closed, after a lane. A row that cannot be read is skipped, and is logged once.
pub(crate) async fn not_closed(
    connection: &Connection,
    aside: &Aside,
    after: Option<&Lane>,
    limit: usize,
) -> Result<Vec<(Lane, VersionedState)>, PostgresError> {
    let mut pages = LanePages::new(aside, SHARED_GUARDS, after, limit);
    while let Some((after, limit)) = pages.next() {
        let rows = next(connection, after, limit).await?;
        pages.add(&rows, read_not_closed)?;
    }
    Ok(pages.finish())
}

/// The kind of these rows in the log.
const SHARED_GUARDS: &str = "shared guards";

const NEXT: &str = "
SELECT tenant, name, version, state FROM redrive.shared_guards
WHERE scope = 0 AND NOT is_closed AND (tenant, name) > ($1, $2)
ORDER BY tenant, name
LIMIT $3";

async fn next(connection: &Connection, after: &LaneKey, limit: i64) -> Result<Vec<Row>, PostgresError> {
    let arguments = [(&after.tenant as _, Type::TEXT), (&after.dependency as _, Type::TEXT), (&limit as _, Type::INT8)];
    connection.query(NEXT, &arguments).await
}

fn read_not_closed(row: &Row) -> Result<(Lane, VersionedState), PostgresError> {
    let mut cells = Cells::of(row);
    Ok((read_lane(&mut cells)?, VersionedState { version: cells.unsigned()?, state: cells.get()? }))
}

/// Reads the whole table if little has expired: it is small, see its definition. A row that another process replaces at
/// the moment is skipped, because it does not expire then.
const CLEAN: &str = "
WITH expired AS MATERIALIZED (
    SELECT tenant, scope, name FROM redrive.shared_guards
    WHERE expires_at < $1
    ORDER BY tenant, scope, name
    LIMIT $2
    FOR UPDATE SKIP LOCKED
), deleted AS (
    DELETE FROM redrive.shared_guards AS kept USING expired
    WHERE kept.tenant = expired.tenant AND kept.scope = expired.scope AND kept.name = expired.name
    RETURNING 1
)
SELECT count(*) FROM deleted";

/// Deletes expired states; returns how many.
pub(crate) async fn clean(connection: &Connection, now: Timestamp, limit: usize) -> Result<usize, PostgresError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = connection.query(CLEAN, &[(&millis(now), Type::INT8), (&limit, Type::INT8)]).await?;
    rows.first().map_or(Ok(0), |row| Cells::of(row).narrow())
}

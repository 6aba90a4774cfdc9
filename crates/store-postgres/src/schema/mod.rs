//! The schema and its versions.
//!
//! The first process that opens an old schema migrates it: in one transaction under a lock, so that it happens once and
//! as a whole. A version records which programs may still use it ([`Version::oldest_program`]): during a rolling
//! upgrade, those of the previous version keep working beside the new ones.

mod owner;

use std::time::Duration;

use redrive_core::{Policy, PolicyId, TenantId, policy};
use redrive_store::Expected;
use tokio_postgres::types::Type;

use crate::codec::Cells;
use crate::connection::Connection;
use crate::ops::{policies, time};
use crate::pool::{Pool, Purpose, call};
use crate::postgres_error::PostgresError;

/// One migration step of the schema.
struct Version {
    /// The oldest program that can use the schema after this step, given as the schema version that it was written for.
    oldest_program: i64,
    sql: &'static str,
}

/// All steps; the first makes version 1.
const VERSIONS: [Version; 7] = [
    Version { oldest_program: 1, sql: concat!(include_str!("v1.sql"), include_str!("enqueue.sql")) },
    Version { oldest_program: 1, sql: include_str!("v2.sql") },
    Version { oldest_program: 1, sql: include_str!("v3.sql") },
    Version { oldest_program: 1, sql: include_str!("v4.sql") },
    Version { oldest_program: 1, sql: include_str!("v5.sql") },
    Version { oldest_program: 1, sql: include_str!("v6.sql") },
    Version {
        oldest_program: 1,
        sql: concat!(include_str!("v7.sql"), include_str!("records.sql"), include_str!("fingerprint.sql")),
    },
];

/// The version that this program was written for.
pub(crate) const CURRENT: i64 = VERSIONS.len() as i64;

/// The schema version of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// The version of its schema, 0 if it has none.
    pub version: i64,
    /// The version that this program was written for.
    pub program: i64,
}

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unusable {
    #[error(
        "the database's schema is at version {version}, and this program needs {CURRENT}: run `redrive migrate`, or start \
         with --postgres-migrate true"
    )]
    Old { version: i64 },
    #[error(
        "the database's schema is at version {version}, which needs a newer program than this one (schema {CURRENT}): \
         upgrade this process"
    )]
    New { version: i64 },
}

/// Reads the catalog's tables and not its caches: while a process waits for the lock, another one may make the schema.
const EXISTS: &str = "
SELECT EXISTS (SELECT FROM pg_catalog.pg_tables WHERE schemaname = 'redrive' AND tablename = 'schema_versions')";
/// A table in a schema `redrive` that Redrive did not make.
const STRANGE: &str = "
SELECT tablename::text FROM pg_catalog.pg_tables
WHERE schemaname = 'redrive' AND tablename <> 'schema_versions' ORDER BY 1 LIMIT 1";
const READ: &str = "SELECT version, oldest_program FROM redrive.schema_versions ORDER BY version DESC LIMIT 1";
const NOTE: &str = "INSERT INTO redrive.schema_versions (version, oldest_program) VALUES ($1, $2)";

/// An advisory lock for migrations. The number is arbitrary, and nothing else uses it.
const LOCK: &str = "SELECT pg_advisory_xact_lock(7266100423114010)";

/// How often a migration tries to lock a table that other transactions use. Each try waits for two seconds, and calls
/// that came later go first in between.
const LOCK_TRIES: usize = 60;
const LOCK_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// Whether the schema exists: a role that may not create schemas may have been given one.
const HAS_SCHEMA: &str = "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'redrive')";

const BEGINNING: &str = "
CREATE TABLE IF NOT EXISTS redrive.schema_versions (
    version        bigint PRIMARY KEY,
    oldest_program bigint NOT NULL,
    made_at        timestamptz NOT NULL DEFAULT now()
);";

/// Migrates the schema; returns the version before.
pub(crate) async fn migrate(pool: &Pool) -> Result<State, PostgresError> {
    let found = call!(*pool, |connection| read(connection))?;
    if found.is_some_and(|(version, _)| version >= CURRENT) {
        return Ok(State { version: found.map_or(0, |(version, _)| version), program: CURRENT });
    }
    // Without the call timeout: a migration may take long, here or in another process that does it first.
    let mut lent = pool.lend(Purpose::Write).await?;
    let mut tries = 1;
    let outcome = loop {
        lent.begin().await?;
        let outcome = bring_up_to_date(&lent).await;
        match lent.end(outcome).await {
            Err(failure) if (failure.is_lock_timeout() || failure.is_conflict()) && tries < LOCK_TRIES => {
                tracing::warn!(%failure, tries, "a transaction of another process is in the way of the migration");
                tries += 1;
                tokio::time::sleep(LOCK_AGAIN_AFTER).await;
            }
            outcome => break outcome,
        }
    };
    lent.came_to(&outcome);
    outcome
}

/// Checks whether this program can use the schema as it is.
pub(crate) async fn check(pool: &Pool) -> Result<Result<State, Unusable>, PostgresError> {
    call!(*pool, |connection| usable(connection))
}

/// The same check for a running process: a newer program may have changed the schema.
pub(crate) async fn usable(connection: &Connection) -> Result<Result<State, Unusable>, PostgresError> {
    let (version, oldest_program) = read(connection).await?.unwrap_or_default();
    Ok(if version < CURRENT {
        Err(Unusable::Old { version })
    } else if oldest_program > CURRENT {
        Err(Unusable::New { version })
    } else {
        Ok(State { version, program: CURRENT })
    })
}

async fn read(connection: &Connection) -> Result<Option<(i64, i64)>, PostgresError> {
    let exists = connection.query(EXISTS, &[]).await?;
    if !exists.first().map_or(Ok(false), |row| Cells::of(row).get())? {
        return Ok(None);
    }
    let rows = connection.query(READ, &[]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let mut cells = Cells::of(row);
    Ok(Some((cells.get()?, cells.get()?)))
}

async fn bring_up_to_date(connection: &Connection) -> Result<State, PostgresError> {
    // Without a timeout, for a migration of this process or of another one: nothing else can be done before.
    connection.execute("SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0").await?;
    connection.query(LOCK, &[]).await?;
    // Another process may have migrated the schema while this one waited.
    let before = read(connection).await?.map_or(0, |(version, _)| version);
    if before < CURRENT {
        let strays = owner::act_as_owner(connection).await?;
        let migrated = bring_from(connection, before).await;
        migrated.map_err(|failure| match strays {
            Some(strays) => strays.explain(failure),
            None => failure,
        })?;
    }
    Ok(State { version: before, program: CURRENT })
}

async fn bring_from(connection: &Connection, before: i64) -> Result<(), PostgresError> {
    if before == 0 {
        let strange = connection.query(STRANGE, &[]).await?;
        if let Some(table) = strange.first() {
            let table: String = Cells::of(table).get()?;
            let told =
                format_args!("has a table {table} that Redrive did not make: give Redrive a database of its own");
            return Err(PostgresError::corrupt("the schema redrive", told));
        }
        let has_schema = connection.query(HAS_SCHEMA, &[]).await?;
        if !has_schema.first().map_or(Ok(false), |row| Cells::of(row).get())? {
            connection.execute("CREATE SCHEMA redrive").await?;
        }
        connection.execute(BEGINNING).await?;
    }
    let missing = usize::try_from(before).unwrap_or(usize::MAX);
    for (number, version) in (1_i64..).zip(&VERSIONS).skip(missing) {
        connection.execute(version.sql).await?;
        connection.query(NOTE, &[(&number, Type::INT8), (&version.oldest_program, Type::INT8)]).await?;
    }
    if before == 0 {
        put_default_policy(connection).await?;
    }
    Ok(())
}

/// Stores the default policy in a new schema. Running processes stored theirs at their start, so a schema that is
/// dropped and made again would have none.
async fn put_default_policy(connection: &Connection) -> Result<(), PostgresError> {
    let spec = policy::Spec::default();
    let json = serde_json::to_string(&spec).map_err(|error| PostgresError::corrupt("the default policy", error))?;
    let put = policies::Put {
        tenant: TenantId::default_tenant(),
        id: PolicyId::default_policy(),
        resolved: Policy::resolve(&spec).ok(),
        spec,
        json,
        expected: Expected::Absent,
        now: time::time(connection).await?,
    };
    policies::put(connection, &put).await.map(drop)
}

//! The schema and its versions.
//!
//! Every process brings an old schema up to date on opening, whichever comes first: one transaction under a lock, so that
//! it happens once and whole. A version says which programs may still use it ([`Version::oldest_program`]): during a
//! rolling upgrade, those of the version before go on working beside the new ones.

use std::time::Duration;

use redrive_core::{Policy, PolicyId, TenantId, policy};
use redrive_store::Expected;
use tokio_postgres::types::Type;

use crate::codec::Cells;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::ops::{policies, time};
use crate::pool::{Pool, Purpose, call};

/// One step of the schema.
struct Version {
    /// The oldest program, by the schema that it was written for, that can use the schema after this step.
    oldest_program: i64,
    sql: &'static str,
}

/// All steps; the first makes version 1.
const VERSIONS: [Version; 4] = [
    Version { oldest_program: 1, sql: concat!(include_str!("v1.sql"), include_str!("enqueue.sql")) },
    Version { oldest_program: 1, sql: include_str!("v2.sql") },
    Version { oldest_program: 1, sql: include_str!("v3.sql") },
    Version { oldest_program: 1, sql: include_str!("v4.sql") },
];

/// The version that this program was written for.
pub(crate) const CURRENT: i64 = VERSIONS.len() as i64;

/// Where the database stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// The version of its schema, 0 if there is none yet.
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

/// Asks the catalog's tables, not its caches: while a process waits for the lock, another one makes the schema.
const EXISTS: &str = "
SELECT EXISTS (SELECT FROM pg_catalog.pg_tables WHERE schemaname = 'redrive' AND tablename = 'schema_versions')";
/// A schema of that name that is somebody else's.
const STRANGE: &str = "
SELECT tablename::text FROM pg_catalog.pg_tables
WHERE schemaname = 'redrive' AND tablename <> 'schema_versions' ORDER BY 1 LIMIT 1";
const READ: &str = "SELECT version, oldest_program FROM redrive.schema_versions ORDER BY version DESC LIMIT 1";
const NOTE: &str = "INSERT INTO redrive.schema_versions (version, oldest_program) VALUES ($1, $2)";

/// Any number does, as long as nobody else uses it for something else.
const LOCK: &str = "SELECT pg_advisory_xact_lock(7266100423114010)";

/// How often a migration asks for a table that other transactions use. It waits for two seconds each time, and lets the
/// calls that came after it go first in between.
const LOCK_TRIES: usize = 60;
const LOCK_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// Who may not make schemas may have been given one.
const HAS_SCHEMA: &str = "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'redrive')";

const BEGINNING: &str = "
CREATE TABLE IF NOT EXISTS redrive.schema_versions (
    version        bigint PRIMARY KEY,
    oldest_program bigint NOT NULL,
    made_at        timestamptz NOT NULL DEFAULT now()
);";

/// Brings the schema up to date; says where it was and whether this process changed it.
pub(crate) async fn migrate(pool: &Pool) -> Result<State, Failure> {
    let found = call!(*pool, |connection| read(connection))?;
    if found.is_some_and(|(version, _)| version >= CURRENT) {
        return Ok(State { version: found.map_or(0, |(version, _)| version), program: CURRENT });
    }
    // Not within the time that other calls have: there may be much to do, here or in the process that does it first.
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

/// Whether this program can use the schema as it is.
pub(crate) async fn check(pool: &Pool) -> Result<Result<State, Unusable>, Failure> {
    call!(*pool, |connection| usable(connection))
}

/// The same, for a process that runs: a newer program may have changed the schema under it.
pub(crate) async fn usable(connection: &Connection) -> Result<Result<State, Unusable>, Failure> {
    let (version, oldest_program) = read(connection).await?.unwrap_or_default();
    Ok(if version < CURRENT {
        Err(Unusable::Old { version })
    } else if oldest_program > CURRENT {
        Err(Unusable::New { version })
    } else {
        Ok(State { version, program: CURRENT })
    })
}

async fn read(connection: &Connection) -> Result<Option<(i64, i64)>, Failure> {
    let exists = connection.query(EXISTS, &[]).await?;
    if !exists.first().map_or(Ok(false), |row| Cells::of(row).get())? {
        return Ok(None);
    }
    let rows = connection.query(READ, &[]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let mut cells = Cells::of(row);
    Ok(Some((cells.get()?, cells.get()?)))
}

async fn bring_up_to_date(connection: &Connection) -> Result<State, Failure> {
    // However long it takes, or another process takes to do it: there is nothing else to do until then.
    connection.execute("SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0").await?;
    connection.query(LOCK, &[]).await?;
    // Somebody else may have done it while this process waited.
    let before = read(connection).await?.map_or(0, |(version, _)| version);
    if before == 0 {
        let strange = connection.query(STRANGE, &[]).await?;
        if let Some(table) = strange.first() {
            let table: String = Cells::of(table).get()?;
            let told =
                format_args!("has a table {table} that Redrive did not make: give Redrive a database of its own");
            return Err(Failure::corrupt("the schema redrive", told));
        }
        let has_schema = connection.query(HAS_SCHEMA, &[]).await?;
        if !has_schema.first().map_or(Ok(false), |row| Cells::of(row).get())? {
            connection.execute("CREATE SCHEMA redrive").await?;
        }
        connection.execute(BEGINNING).await?;
    }
    bring_from(connection, before).await?;
    if before == 0 {
        put_default_policy(connection).await?;
    }
    Ok(State { version: before, program: CURRENT })
}

/// A schema that was dropped and made anew has its default policy at once: processes that run put theirs when they started.
async fn put_default_policy(connection: &Connection) -> Result<(), Failure> {
    let spec = policy::Spec::default();
    let json = serde_json::to_string(&spec).map_err(|error| Failure::corrupt("the default policy", error))?;
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

async fn bring_from(connection: &Connection, before: i64) -> Result<(), Failure> {
    let missing = usize::try_from(before).unwrap_or(usize::MAX);
    for (number, version) in (1_i64..).zip(&VERSIONS).skip(missing) {
        connection.execute(version.sql).await?;
        connection.query(NOTE, &[(&number, Type::INT8), (&version.oldest_program, Type::INT8)]).await?;
    }
    Ok(())
}

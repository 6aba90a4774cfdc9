//! Opening the store, and migrating its schema by hand.

use std::sync::Arc;
use std::time::Duration;

use redrive_store::Error;

use crate::batch::Pools;
use crate::connect::{Address, ConnectError, Terms};
use crate::connection::{Finding, OWN_SESSION, Use, settings};
use crate::options::Options;
use crate::pool::{Pool, call};
use crate::pool_sizes::PoolSizes;
use crate::postgres_error::PostgresError;
use crate::schema::{self, State};

/// Why the store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The database could not be reached or used.
    #[error(transparent)]
    Store(#[from] Error),
    /// No connection could be made.
    #[error("{0}")]
    Connect(ConnectError),
    /// The role lacks a right.
    #[error(
        "{0}; grant the role this right, or run `redrive migrate` as the schema's owner and start the nodes with \
         --postgres-migrate false"
    )]
    Right(String),
    /// The role lacks the right to change objects of the schema that belong to other roles than the schema's owner.
    #[error("{0}")]
    OtherOwners(String),
    /// This program cannot use the schema.
    #[error("{0}")]
    Schema(String),
    /// The server is too old.
    #[error("PostgreSQL 14 or newer is needed, this is {0}")]
    TooOld(String),
}

impl OpenError {
    /// Whether trying again is useless until the configuration, or the server's settings or roles, are changed.
    pub fn is_misconfiguration(&self) -> bool {
        match self {
            OpenError::Connect(error) => error.is_lasting(),
            OpenError::Right(_) | OpenError::OtherOwners(_) => true,
            OpenError::Store(_) | OpenError::Schema(_) | OpenError::TooOld(_) => false,
        }
    }

    /// The error for a failure during the operation `doing`.
    fn of(failure: PostgresError, doing: &str) -> Self {
        match failure {
            PostgresError::Unreachable(error) => OpenError::Connect(error),
            PostgresError::OtherOwners { .. } => OpenError::OtherOwners(format!("{doing}: {failure}")),
            failure if failure.is_missing_right() => OpenError::Right(format!("{doing}: {failure}")),
            failure => OpenError::Store(failure.into_error(doing)),
        }
    }
}

/// The oldest supported PostgreSQL, as its `server_version_num`.
const OLDEST_SERVER: i32 = 140_000;

/// How much earlier the server cancels a statement than the caller stops waiting for its answer.
const SOONER: Duration = Duration::from_secs(5);

pub(crate) struct Connections {
    pub(crate) pool: Pool,
    /// Connections for the calls of the background loops.
    pub(crate) loop_pool: Pool,
    /// Connections for the writers of batches, and for repeated batches.
    pub(crate) writers: Pools,
    /// The address for LISTEN, if one leads to a session.
    pub(crate) listen: Option<Address>,
}

/// Connects, checks the server, and migrates or checks the schema.
pub(crate) async fn open(options: &Options) -> Result<Connections, OpenError> {
    let ways = ways(options)?;
    check_server(&ways.pool).await?;
    if options.migrate {
        schema::migrate(&ways.pool)
            .await
            .map_err(|failure| OpenError::of(failure, "bringing the schema up to date"))?;
    }
    let usable =
        schema::check(&ways.pool).await.map_err(|failure| OpenError::of(failure, "reading the schema's version"))?;
    usable.map_err(|unusable| OpenError::Schema(unusable.to_string()))?;
    Ok(ways)
}

/// Migrates the schema, for operators who do that by hand. Returns the version before.
pub async fn migrate(options: &Options) -> Result<State, OpenError> {
    let ways = ways(options)?;
    check_server(&ways.pool).await?;
    let state = schema::migrate(&ways.pool)
        .await
        .map_err(|failure| OpenError::of(failure, "bringing the schema up to date"))?;
    ways.pool.close();
    Ok(state)
}

fn ways(options: &Options) -> Result<Connections, OpenError> {
    let statement_timeout = options.call_timeout.saturating_sub(SOONER).max(options.call_timeout / 2);
    let in_order =
        Use { finding: Finding::InOrder, lock_timeout: options.lock_timeout, statement_timeout, reads: true };
    let by_key =
        Use { finding: Finding::ByKey, lock_timeout: options.batch_lock_timeout, statement_timeout, reads: false };
    let pool = |connections, used| {
        Ok::<_, OpenError>(Pool::new(read(options, &options.url, used)?.for_writing(), options, connections, used))
    };
    let shares = PoolSizes::of(options.connections, options.writers);
    Ok(Connections {
        pool: pool(shares.others, in_order)?,
        loop_pool: pool(shares.loops, in_order)?,
        writers: Pools {
            batches: pool(shares.batches, by_key)?,
            repeats: pool(shares.repeats, by_key)?,
            commits: Arc::default(),
        },
        listen: match (&options.listen_url, options.is_pooled) {
            (Some(url), _) => {
                Some(read(&Options { is_pooled: false, ..options.clone() }, url, in_order)?.for_writing())
            }
            (None, false) => Some(read(options, &options.url, in_order)?.for_writing()),
            (None, true) => None,
        },
    })
}

/// Parses an address. For sessions of our own, it includes the settings of their use.
fn read(options: &Options, url: &str, used: Use) -> Result<Address, OpenError> {
    let own = OWN_SESSION.map(|(name, value)| (name, value.to_owned()));
    let settings: Vec<_> = if options.is_pooled { Vec::new() } else { settings(used).chain(own).collect() };
    let name = format!("redrive {}", options.node);
    let terms =
        Terms { name: &name, settings: &settings, extra_ca: &options.extra_ca, timeout: options.connect_timeout };
    Address::read(url, &terms).map_err(OpenError::Connect)
}

async fn check_server(pool: &Pool) -> Result<(), OpenError> {
    const VERSION: &str = "SELECT current_setting('server_version_num')::int, current_setting('server_version')";
    let rows = call!(*pool, |connection| connection.query(VERSION, &[]))
        .map_err(|failure| OpenError::of(failure, "opening the store"))?;
    let mut cells = rows.first().map(crate::codec::Cells::of);
    let number: i32 = cells.as_mut().map_or(Ok(0), |cells| cells.get()).unwrap_or_default();
    if number < OLDEST_SERVER {
        let version: String = cells.map_or(Ok(String::new()), |mut cells| cells.get()).unwrap_or_default();
        return Err(OpenError::TooOld(version));
    }
    Ok(())
}

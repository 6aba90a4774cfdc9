//! Opening the store, and bringing its schema up to date by hand.

use redrive_store::Error;

use crate::batch::Pools;
use crate::connect::{Address, Terms};
use crate::failure::Failure;
use crate::options::Options;
use crate::pool::{Pool, call};
use crate::schema::{self, State};

/// Why the store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The database could not be reached or used.
    #[error(transparent)]
    Store(#[from] Error),
    /// The schema is not one that this program can use.
    #[error("{0}")]
    Schema(String),
    /// The server is too old.
    #[error("PostgreSQL 14 or newer is needed, this is {0}")]
    TooOld(String),
}

/// The oldest PostgreSQL that is supported, as its `server_version_num`.
const OLDEST_SERVER: i32 = 140_000;

/// How many connections see through what a batch left open.
const APART: usize = 2;

pub(crate) struct Ways {
    pub(crate) pool: Pool,
    /// For the writers of batches, and for what is seen through apart from them.
    pub(crate) writers: Pools,
    /// For LISTEN, if there is a way to a session.
    pub(crate) listen: Option<Address>,
}

/// Connections, checked and with a schema that can be used.
pub(crate) async fn open(options: &Options) -> Result<Ways, OpenError> {
    let ways = ways(options)?;
    check_server(&ways.pool).await?;
    if options.migrate {
        schema::migrate(&ways.pool).await.map_err(|failure| failure.into_error("bringing the schema up to date"))?;
    }
    let usable =
        schema::check(&ways.pool).await.map_err(|failure| failure.into_error("reading the schema's version"))?;
    usable.map_err(|unusable| OpenError::Schema(unusable.to_string()))?;
    Ok(ways)
}

/// Brings the schema up to date, for those who do that by hand. Says which version it had before.
pub async fn migrate(options: &Options) -> Result<State, OpenError> {
    let ways = ways(options)?;
    check_server(&ways.pool).await?;
    let state =
        schema::migrate(&ways.pool).await.map_err(|failure| failure.into_error("bringing the schema up to date"))?;
    ways.pool.close();
    Ok(state)
}

fn ways(options: &Options) -> Result<Ways, OpenError> {
    let name = format!("redrive {}", options.node);
    let read = |url: &str, is_session, lock_timeout| {
        let terms = Terms {
            name: &name,
            lock_timeout: Some(lock_timeout).filter(|_| is_session),
            extra_ca: &options.extra_ca,
            timeout: options.connect_timeout,
        };
        Address::read(url, &terms).map_err(|error| Failure::from(error).into_error("opening the store"))
    };
    let listen = match (&options.listen_url, options.is_pooled) {
        (Some(url), _) => Some(read(url, true, options.lock_timeout)?),
        (None, false) => Some(read(&options.url, true, options.lock_timeout)?),
        (None, true) => None,
    };
    let pool = |connections, lock_timeout| {
        let address = read(&options.url, !options.is_pooled, lock_timeout)?;
        Ok::<_, OpenError>(Pool::new(address, options, connections, lock_timeout))
    };
    // As many that write submissions as settlements.
    let writers = 2 * options.writers.max(1);
    let others = options.connections.saturating_sub(writers + APART).max(2);
    Ok(Ways {
        pool: pool(others, options.lock_timeout)?,
        writers: Pools {
            batches: pool(writers, options.batch_lock_timeout)?,
            apart: pool(APART, options.batch_lock_timeout)?,
        },
        listen,
    })
}

async fn check_server(pool: &Pool) -> Result<(), OpenError> {
    const VERSION: &str = "SELECT current_setting('server_version_num')::int, current_setting('server_version')";
    let rows = call!(*pool, |connection| connection.query(VERSION, &[]))
        .map_err(|failure| failure.into_error("opening the store"))?;
    let mut cells = rows.first().map(crate::codec::Cells::of);
    let number: i32 = cells.as_mut().map_or(Ok(0), |cells| cells.get()).unwrap_or_default();
    if number < OLDEST_SERVER {
        let version: String = cells.map_or(Ok(String::new()), |mut cells| cells.get()).unwrap_or_default();
        return Err(OpenError::TooOld(version));
    }
    Ok(())
}

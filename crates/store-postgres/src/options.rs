//! Settings of the store, each with a bound.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use redrive_store::NodeId;

/// The database and how it is used.
#[derive(Clone)]
pub struct Options {
    /// `postgres://user:password@host:port/database?…`, or `key=value` pairs.
    pub url: String,
    /// A second address of the same database, past a transaction pooler, for LISTEN, which needs a session of its own.
    /// Without one, and with `is_pooled`, new tasks of other processes are found by scans.
    pub listen_url: Option<String>,
    /// Whether the address leads to a transaction pooler: no prepared statement and no setting outlives its
    /// transaction.
    pub is_pooled: bool,
    /// PEM files of certificate authorities to trust besides the system's, or besides those of the address
    /// (`sslrootcert`).
    pub extra_ca: Vec<PathBuf>,
    /// The name of this process.
    pub node: NodeId,
    /// The most connections, without the one for LISTEN; [`FEWEST_CONNECTIONS`](crate::FEWEST_CONNECTIONS) at least.
    pub connections: usize,
    /// How many transactions write submissions at a time; as many more write settlements. Reservations and changes of
    /// idempotency records have as many writers each, which use the same connections.
    pub writers: usize,
    /// The timeout of a call.
    pub call_timeout: Duration,
    /// How long a call waits for a lock of another transaction.
    pub lock_timeout: Duration,
    /// The same for a batch, in which one call would delay many. After this time each call is tried alone.
    pub batch_lock_timeout: Duration,
    /// The timeout for making a connection.
    pub connect_timeout: Duration,
    /// How long a session uses a plan of PostgreSQL's. Within this time the tables may grow much larger than the plan
    /// expects.
    pub plans_last: Duration,
    /// How long claims may start where the previous one ended. A task that another process wrote below that place and
    /// did not announce is found after this time. The time is in this range: the faster a claim from the beginning is,
    /// the shorter.
    pub floors_last: RangeInclusive<Duration>,
    /// How long after a write the counts are merged, and tables analysed that have outgrown their statistics.
    pub upkeep_after: Duration,
    /// How often to look at rows that were set aside, because this program may be able to read them by now. If there
    /// are none, this costs one index probe.
    pub take_back_every: Duration,
    /// Whether to migrate the schema on opening. Otherwise an old schema is an error that names the command to run.
    pub migrate: bool,
}

impl Options {
    /// The default settings for this database.
    pub fn new(url: impl Into<String>, node: NodeId) -> Self {
        Options {
            url: url.into(),
            listen_url: None,
            is_pooled: false,
            extra_ca: Vec::new(),
            node,
            connections: 12,
            writers: 2,
            call_timeout: Duration::from_secs(30),
            lock_timeout: Duration::from_secs(5),
            batch_lock_timeout: Duration::from_millis(250),
            connect_timeout: Duration::from_secs(5),
            plans_last: Duration::from_secs(1),
            floors_last: Duration::from_millis(100)..=Duration::from_secs(5),
            upkeep_after: Duration::from_secs(10),
            take_back_every: Duration::from_secs(15),
            migrate: true,
        }
    }
}

/// Written by hand, because an address may contain a password.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("node", &self.node)
            .field("is_pooled", &self.is_pooled)
            .field("connections", &self.connections)
            .field("writers", &self.writers)
            .finish_non_exhaustive()
    }
}

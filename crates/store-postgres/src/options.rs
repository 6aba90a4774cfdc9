//! Settings of the store, each with a bound.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use redrive_store::NodeId;

/// Where the database is and how it is used.
#[derive(Clone)]
pub struct Options {
    /// `postgres://user:password@host:port/database?…`, or `key=value` pairs.
    pub url: String,
    /// A second way to the same database, past a transaction pooler: for LISTEN, which needs a session of its own.
    /// Without one, and with `pooler`, new work of other processes is found by looking.
    pub listen_url: Option<String>,
    /// Whether a transaction pooler stands in between: no statement and no setting outlives its transaction.
    pub is_pooled: bool,
    /// PEM files of authorities to trust besides the system's, or besides those of the address (`sslrootcert`).
    pub extra_ca: Vec<PathBuf>,
    /// This process.
    pub node: NodeId,
    /// The most connections, the one for LISTEN not included; [`FEWEST_CONNECTIONS`](crate::FEWEST_CONNECTIONS) at least.
    pub connections: usize,
    /// How many transactions write submissions at a time, and as many settlements.
    pub writers: usize,
    /// How long a call may take before it is given up.
    pub call_timeout: Duration,
    /// How long a call waits for what another transaction holds.
    pub lock_timeout: Duration,
    /// The same for a batch, in which many calls would wait for one of them: then each is tried alone.
    pub batch_lock_timeout: Duration,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long a session uses a plan that PostgreSQL made: for how long the tables may have become much larger since.
    pub plans_last: Duration,
    /// How long a claim may start where the one before it ended. What another process wrote before that place, and did not
    /// announce, is found after this time. The shorter, the quicker such a claim is from the beginning.
    pub floors_last: RangeInclusive<Duration>,
    /// How long after a write the counts are added up, and tables analysed that have outgrown what PostgreSQL knows of them.
    pub upkeep_after: Duration,
    /// How often rows that were set aside are looked at: this program may understand them by now. A look at an empty table costs one
    /// probe of its index.
    pub take_back_every: Duration,
    /// Whether to bring the schema up to date on opening; otherwise an old one is an error that says what to run.
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

/// By hand: an address may hold a password.
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

//! One connection: statements, transactions, and the planner's settings.
//!
//! The statements are written so that every table is read through an index, a few rows at a time. PostgreSQL's planner
//! would mostly choose that by itself, but it plans by statistics, and those of a queue are wrong whenever the queue
//! has just filled or emptied. So most other plans are disabled by settings. A plan is also used for
//! [`Options::plans_last`] only, because the planner relies on the sizes of the tables when it plans: a plan that was
//! made for an empty table scans a full one.
//!
//! [`Options::plans_last`]: crate::Options::plans_last

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::{join, try_join3};
use tokio::time::Instant;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row, Statement};

use crate::pool::{Permit, UntilClosed};
use crate::postgres_error::PostgresError;

/// A statement's argument and its type.
pub(crate) type Argument<'a> = (&'a (dyn ToSql + Sync), Type);

/// What a connection is used for, which decides its settings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Use {
    pub(crate) finding: Finding,
    /// How long a statement waits for a lock of another transaction. A client's transaction that holds a key must not
    /// delay a batch.
    pub(crate) lock_timeout: Duration,
    /// How long a statement may take: less than the caller waits, so that the caller gets the answer.
    pub(crate) statement_timeout: Duration,
    /// Whether some calls only read: one connection is reserved for them.
    pub(crate) reads: bool,
}

/// How statements find their rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finding {
    /// Along an index, in its order, until enough rows are found. Rows that an index has in order are not sorted.
    InOrder,
    /// One by one, by their keys. The found rows may be sorted.
    ByKey,
}

impl Finding {
    fn settings(self) -> [(&'static str, &'static str); 2] {
        let sort = if self == Finding::InOrder { "off" } else { "on" };
        [("enable_sort", sort), ("enable_incremental_sort", sort)]
    }
}

/// Settings for every session, or for every transaction if a pooler owns the sessions.
const SESSION: [(&str, &str); 6] = [
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("jit", "off"),
    // A process that vanished must not keep its locks: the server rolls back a transaction that is idle for 30 seconds.
    ("idle_in_transaction_session_timeout", "30000"),
];

/// All settings for this use.
pub(crate) fn settings(used: Use) -> impl Iterator<Item = (&'static str, String)> {
    let said = SESSION.into_iter().chain(used.finding.settings()).map(|(name, value)| (name, value.to_owned()));
    let timeouts = [("lock_timeout", used.lock_timeout), ("statement_timeout", used.statement_timeout)];
    said.chain(timeouts.map(|(name, time)| (name, time.as_millis().to_string())))
}

/// Settings only for sessions of our own: the isolation level that the statements are written for, whatever the role's
/// default is; and how soon the server notices that this machine is gone.
pub(crate) const OWN_SESSION: [(&str, &str); 4] = [
    ("default_transaction_isolation", "read\\ committed"),
    ("tcp_keepalives_idle", "10"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "3"),
];

/// One connection to the database.
pub(crate) struct Connection {
    client: Client,
    mode: Mode,
    /// Whether a transaction is open, so that no other call may use this connection.
    is_in_transaction: bool,
    until_closed: UntilClosed,
}

enum Mode {
    /// The session belongs to this process, so statements that are used repeatedly are prepared.
    Session { statements: Mutex<HashMap<&'static str, Used>>, plans_last: Duration },
    /// A pooler may run each transaction in another session.
    Pooled { begin: String },
}

/// The state of a statement in this session.
#[derive(Clone)]
enum Used {
    /// It was run at this time without being prepared. If it comes again soon, it is prepared.
    Once(Instant),
    /// It was prepared at this time.
    Prepared(Instant, Statement),
}

impl Connection {
    /// A connection with a session of its own, whose plans are used for `plans_last`.
    pub(crate) fn session(client: Client, until_closed: UntilClosed, plans_last: Duration) -> Self {
        Self::new(client, until_closed, Mode::Session { statements: Mutex::default(), plans_last })
    }

    /// A connection through a transaction pooler.
    pub(crate) fn pooled(client: Client, until_closed: UntilClosed, used: Use) -> Self {
        let settings = settings(used).map(|(name, value)| format!("SET LOCAL {name} = {value}; "));
        Self::new(
            client,
            until_closed,
            Mode::Pooled { begin: format!("BEGIN ISOLATION LEVEL READ COMMITTED; {}", settings.collect::<String>()) },
        )
    }

    fn new(client: Client, until_closed: UntilClosed, mode: Mode) -> Self {
        Connection { client, mode, is_in_transaction: false, until_closed }
    }

    /// Closes the connection as soon as PostgreSQL has answered its last statement. Until then it counts as a
    /// connection of the pool. The statement is not cancelled: a commit that waits for a synchronous standby would
    /// become visible without being safe.
    pub(crate) fn close_with(self, permit: Permit) {
        self.until_closed.hold(permit);
    }

    /// Whether the connection can be used again.
    pub(crate) fn is_fine(&self) -> bool {
        !self.client.is_closed() && !self.is_in_transaction
    }

    /// Runs one statement as a transaction of its own, or inside the one that is open.
    pub(crate) async fn query(&self, sql: &'static str, arguments: &[Argument<'_>]) -> Result<Vec<Row>, PostgresError> {
        let statement = self.statement(sql, arguments).await?;
        self.send(statement, sql, arguments).await
    }

    /// Runs one statement and, without waiting for its answer, a second one, which reads what the first one wrote.
    pub(crate) async fn query_and_then(
        &self,
        (sql, arguments): (&'static str, &[Argument<'_>]),
        (then_sql, then_arguments): (&'static str, &[Argument<'_>]),
    ) -> Result<(Vec<Row>, Result<Vec<Row>, PostgresError>), PostgresError> {
        let first = self.statement(sql, arguments).await?;
        let then = self.statement(then_sql, then_arguments).await?;
        let sent = join(self.send(first, sql, arguments), self.send(then, then_sql, then_arguments)).await;
        Ok((sent.0?, sent.1))
    }

    /// The prepared statement, if preparing is worth it and the plan is not too old.
    async fn statement(
        &self,
        sql: &'static str,
        arguments: &[Argument<'_>],
    ) -> Result<Option<Statement>, PostgresError> {
        let Mode::Session { statements, plans_last } = &self.mode else { return Ok(None) };
        let lock = || statements.lock().unwrap_or_else(PoisonError::into_inner);
        let used = lock().get(sql).cloned();
        match used {
            Some(Used::Prepared(at, statement)) if at.elapsed() < *plans_last => Ok(Some(statement)),
            Some(Used::Once(at)) if at.elapsed() < *plans_last => {
                let types: Vec<Type> = arguments.iter().map(|(_, kind)| kind.clone()).collect();
                let statement = self.client.prepare_typed(sql, &types).await?;
                lock().insert(sql, Used::Prepared(Instant::now(), statement.clone()));
                Ok(Some(statement))
            }
            Some(_) | None => {
                lock().insert(sql, Used::Once(Instant::now()));
                Ok(None)
            }
        }
    }

    async fn send(
        &self,
        statement: Option<Statement>,
        sql: &'static str,
        arguments: &[Argument<'_>],
    ) -> Result<Vec<Row>, PostgresError> {
        match (statement, &self.mode) {
            (Some(statement), _) => {
                let values: Vec<_> = arguments.iter().map(|(value, _)| *value).collect();
                Ok(self.client.query(&statement, &values).await?)
            }
            (None, Mode::Pooled { begin }) if !self.is_in_transaction => {
                self.send_as_transaction(begin, sql, arguments).await
            }
            (None, _) => Ok(self.client.query_typed(sql, arguments).await?),
        }
    }

    /// Sends begin, statement and commit one after the other, without waiting in between.
    async fn send_as_transaction(
        &self,
        begin: &str,
        sql: &'static str,
        arguments: &[Argument<'_>],
    ) -> Result<Vec<Row>, PostgresError> {
        let (begin, run) = (self.client.batch_execute(begin), self.client.query_typed(sql, arguments));
        match try_join3(begin, run, self.client.batch_execute("COMMIT")).await {
            Ok(((), rows, ())) => Ok(rows),
            Err(error) => {
                // The first error is the one that is returned. The transaction is still open, so it is rolled back.
                if !self.client.is_closed() {
                    self.client.batch_execute("ROLLBACK").await?;
                }
                Err(error.into())
            }
        }
    }

    /// Runs statements without arguments and without results.
    pub(crate) async fn execute(&self, sql: &str) -> Result<(), PostgresError> {
        Ok(self.client.batch_execute(sql).await?)
    }

    /// Switches the open transaction to finding rows by their keys.
    pub(crate) async fn find_by_key(&self) -> Result<(), PostgresError> {
        let settings = Finding::ByKey.settings().map(|(name, value)| format!("SET LOCAL {name} = {value}; "));
        self.execute(&settings.concat()).await
    }

    /// Opens a transaction; until it has ended, no other call may use this connection.
    pub(crate) async fn begin(&mut self) -> Result<(), PostgresError> {
        self.is_in_transaction = true;
        let begin = match &self.mode {
            Mode::Session { .. } => "BEGIN",
            Mode::Pooled { begin } => begin,
        };
        Ok(self.client.batch_execute(begin).await?)
    }

    /// Opens a transaction and runs its first statement, in one round trip.
    pub(crate) async fn begin_with(
        &mut self,
        sql: &'static str,
        arguments: &[Argument<'_>],
    ) -> Result<Vec<Row>, PostgresError> {
        let statement = self.statement(sql, arguments).await?;
        self.is_in_transaction = true;
        let begin = match &self.mode {
            Mode::Session { .. } => "BEGIN",
            Mode::Pooled { begin } => begin,
        };
        let (begun, rows) = join(self.client.batch_execute(begin), self.send(statement, sql, arguments)).await;
        begun?;
        rows
    }

    /// Runs the last statement of the open transaction and commits, in one round trip. If the statement fails, the
    /// transaction is rolled back.
    pub(crate) async fn commit_with(
        &mut self,
        sql: &'static str,
        arguments: &[Argument<'_>],
    ) -> Result<Vec<Row>, PostgresError> {
        let statement = self.statement(sql, arguments).await?;
        let (rows, ended) = join(self.send(statement, sql, arguments), self.client.batch_execute("COMMIT")).await;
        self.is_in_transaction = ended.is_err();
        let rows = rows?;
        ended?;
        Ok(rows)
    }

    /// Ends the transaction, if one is open, without a change. Its locks are released without a write to the disk.
    pub(crate) async fn roll_back(&mut self) -> Result<(), PostgresError> {
        if !self.is_in_transaction {
            return Ok(());
        }
        let ended = self.client.batch_execute("ROLLBACK").await;
        self.is_in_transaction = ended.is_err();
        Ok(ended?)
    }

    /// Commits if `outcome` is `Ok`, rolls back otherwise.
    pub(crate) async fn end<T>(&mut self, outcome: Result<T, PostgresError>) -> Result<T, PostgresError> {
        let end = if outcome.is_ok() { "COMMIT" } else { "ROLLBACK" };
        let ended = self.client.batch_execute(end).await;
        self.is_in_transaction = ended.is_err();
        match (outcome, ended) {
            (Ok(value), Ok(())) => Ok(value),
            (Err(failure), _) => Err(failure),
            (Ok(_), Err(error)) => Err(error.into()),
        }
    }
}

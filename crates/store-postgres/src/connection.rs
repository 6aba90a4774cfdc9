//! One connection: statements, transactions, and what the planner is told.
//!
//! The statements are written so that every table is reached through an index, a few rows at a time. PostgreSQL's planner
//! would mostly find that out by itself, but it plans by statistics, and those of a queue are wrong whenever it has just
//! filled or emptied: so it is told not to consider anything else.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::PoisonError;

use futures_util::future::try_join3;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row, Statement};

use crate::failure::Failure;

/// A statement's argument and its type.
pub(crate) type Argument<'a> = (&'a (dyn ToSql + Sync), Type);

/// Said once per session, or with every transaction where sessions are not ours.
pub(crate) const SESSION: [(&str, &str); 8] = [
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("enable_bitmapscan", "off"),
    ("jit", "off"),
    // Others' transactions are not ours to wait for: one that holds a key open must not hold up a whole batch.
    ("lock_timeout", "2000"),
    // A process that vanished must not hold its locks: the server gives up what it has not heard the end of.
    ("idle_in_transaction_session_timeout", "30000"),
    ("statement_timeout", "60000"),
];

/// Said only to a session of our own: how soon the server notices that this machine is gone.
pub(crate) const KEEPALIVE: [(&str, &str); 3] =
    [("tcp_keepalives_idle", "10"), ("tcp_keepalives_interval", "5"), ("tcp_keepalives_count", "3")];

/// One connection to the database.
pub(crate) struct Connection {
    client: Client,
    mode: Mode,
    /// A transaction is open, so nobody else may have this connection.
    is_in_transaction: bool,
}

enum Mode {
    /// The session is ours: statements are prepared once.
    Session { statements: Mutex<HashMap<&'static str, Statement>> },
    /// Each transaction may meet another session.
    Pooled { begin: String },
}

impl Connection {
    pub(crate) fn new(client: Client, is_pooled: bool) -> Self {
        let mode = match is_pooled {
            false => Mode::Session { statements: Mutex::default() },
            true => {
                let settings = SESSION.map(|(name, value)| format!("SET LOCAL {name} = {value}; "));
                Mode::Pooled { begin: format!("BEGIN; {}", settings.concat()) }
            }
        };
        Connection { client, mode, is_in_transaction: false }
    }

    /// Whether it can be used again.
    pub(crate) fn is_fine(&self) -> bool {
        !self.client.is_closed() && !self.is_in_transaction
    }

    /// Runs one statement as a transaction of its own, or inside the one that is open.
    pub(crate) async fn query(&self, sql: &'static str, arguments: &[Argument<'_>]) -> Result<Vec<Row>, Failure> {
        match &self.mode {
            Mode::Session { .. } => self.query_prepared(sql, arguments).await,
            Mode::Pooled { .. } if self.is_in_transaction => Ok(self.client.query_typed(sql, arguments).await?),
            // Three messages on the wire, one after the other, without waiting in between.
            Mode::Pooled { begin } => {
                let (begin, run) = (self.client.batch_execute(begin), self.client.query_typed(sql, arguments));
                let outcome = try_join3(begin, run, self.client.batch_execute("COMMIT")).await;
                match outcome {
                    Ok(((), rows, ())) => Ok(rows),
                    Err(error) => {
                        // The first error is the one that tells; the transaction it left behind is closed.
                        if !self.client.is_closed() {
                            self.client.batch_execute("ROLLBACK").await?;
                        }
                        Err(error.into())
                    }
                }
            }
        }
    }

    async fn query_prepared(&self, sql: &'static str, arguments: &[Argument<'_>]) -> Result<Vec<Row>, Failure> {
        let statement = match self.known(sql) {
            Some(statement) => statement,
            None => {
                let types: Vec<Type> = arguments.iter().map(|(_, kind)| kind.clone()).collect();
                let statement = self.client.prepare_typed(sql, &types).await?;
                self.remember(sql, &statement);
                statement
            }
        };
        let values: Vec<_> = arguments.iter().map(|(value, _)| *value).collect();
        Ok(self.client.query(&statement, &values).await?)
    }

    fn known(&self, sql: &'static str) -> Option<Statement> {
        let Mode::Session { statements } = &self.mode else { return None };
        statements.lock().unwrap_or_else(PoisonError::into_inner).get(sql).cloned()
    }

    fn remember(&self, sql: &'static str, statement: &Statement) {
        if let Mode::Session { statements } = &self.mode {
            statements.lock().unwrap_or_else(PoisonError::into_inner).insert(sql, statement.clone());
        }
    }

    /// Runs statements without arguments and without results.
    pub(crate) async fn execute(&self, sql: &str) -> Result<(), Failure> {
        Ok(self.client.batch_execute(sql).await?)
    }

    /// Opens a transaction; until it has ended nobody else may have this connection.
    pub(crate) async fn begin(&mut self) -> Result<(), Failure> {
        self.is_in_transaction = true;
        let begin = match &self.mode {
            Mode::Session { .. } => "BEGIN",
            Mode::Pooled { begin } => begin,
        };
        Ok(self.client.batch_execute(begin).await?)
    }

    /// Commits what came to `Ok`, undoes everything otherwise.
    pub(crate) async fn end<T>(&mut self, outcome: Result<T, Failure>) -> Result<T, Failure> {
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

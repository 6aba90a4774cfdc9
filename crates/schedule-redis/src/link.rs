//! The shared connection to Redis.
//!
//! A call never waits for a connection: without one it fails at once, and the store does the work. The repair loop
//! makes connections ([`Link::connect`]). The calls of a batch are sent together and share round trips. Each has its
//! own outcome, because in a cluster some nodes may answer while others do not.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use redis::{ErrorKind, ServerErrorKind, Value};
use tokio::time::timeout;

use crate::connect::{Connection, Connector};
use crate::redis_call_error::RedisCallError;
use crate::script::Call;

/// The most concurrent calls of one batch.
const TOGETHER: usize = 1_000;

/// The shared connection, while there is one.
pub(crate) struct Link {
    pub(crate) connector: Connector,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connection: Option<Connection>,
    /// A number for each connection, so that the failure of an old connection does not close the new one.
    number: u64,
}

impl Link {
    pub(crate) fn new(connector: Connector) -> Self {
        Link { connector, state: Mutex::default() }
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.state().connection.is_some()
    }

    /// Makes a new connection that replaces the previous one.
    pub(crate) async fn connect(&self) -> Result<(), RedisCallError> {
        let connection = self.connector.connect().await?;
        let mut state = self.state();
        state.number += 1;
        state.connection = Some(connection);
        Ok(())
    }

    /// Drops the connection.
    pub(crate) fn disconnect(&self) {
        self.state().connection = None;
    }

    /// Makes these calls and returns the answers in order. Each call has the timeout `limit`.
    pub(crate) async fn call(&self, calls: Vec<Call>, limit: Duration) -> Vec<Result<Value, RedisCallError>> {
        let mut answers = Vec::with_capacity(calls.len());
        for together in calls.chunks(TOGETHER) {
            let (connection, number) = {
                let state = self.state();
                (state.connection.clone(), state.number)
            };
            let Some(connection) = connection else {
                answers.extend(together.iter().map(|_| Err(RedisCallError::Unconnected)));
                continue;
            };
            let asked = join_all(together.iter().map(|call| ask(connection.clone(), call, limit))).await;
            let is_over = asked.iter().any(|answer| matches!(answer, Err(failure) if failure.ends_connection()));
            if is_over && matches!(connection, Connection::Single(_)) {
                self.end(number);
            }
            answers.extend(asked);
        }
        answers
    }

    /// Makes one call.
    pub(crate) async fn call_one(&self, call: Call, limit: Duration) -> Result<Value, RedisCallError> {
        self.call(vec![call], limit).await.pop().unwrap_or(Err(RedisCallError::Unconnected))
    }

    fn end(&self, number: u64) {
        let mut state = self.state();
        if state.number == number {
            state.connection = None;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn ask(mut connection: Connection, call: &Call, limit: Duration) -> Result<Value, RedisCallError> {
    let asking = async {
        match connection.ask(call.as_command()).await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => match call.with_text() {
                Some(whole) => connection.ask(&whole).await,
                None => Err(error),
            },
            answer => answer,
        }
    };
    match timeout(limit, asking).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(RedisCallError::TimedOut(limit)),
    }
}

//! The interface of a driver for the suite.

use redrive_outbox::{Enqueue, Error, TaskId};
use redrive_testbed::Database;
use sqlx::{Connection, PgConnection};
use tokio_postgres::NoTls;

/// How a transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Commit,
    Rollback,
}

/// An error without the driver's own type.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    InvalidArgument(String),
    KeyReused(String),
    UnknownPolicy(String),
    Database(Option<String>),
}

/// A connection of one of the drivers.
pub(crate) trait Driver: Sized {
    async fn connect(database: &Database) -> Self;

    /// Runs `statement` and enqueues, in one transaction of the driver's own kind.
    async fn enqueue(&mut self, statement: &str, enqueue: &Enqueue, end: End) -> Result<TaskId, Refused>;
}

pub(crate) struct TokioPostgres(tokio_postgres::Client);

impl Driver for TokioPostgres {
    async fn connect(database: &Database) -> Self {
        let (client, connection) = tokio_postgres::connect(database.url(), NoTls).await.unwrap();
        tokio::spawn(async move { connection.await.unwrap_or_default() });
        TokioPostgres(client)
    }

    async fn enqueue(&mut self, statement: &str, enqueue: &Enqueue, end: End) -> Result<TaskId, Refused> {
        let transaction = self.0.transaction().await.unwrap();
        transaction.batch_execute(statement).await.unwrap();
        let state = |error: &tokio_postgres::Error| error.code().map(|code| code.code().to_owned());
        let id = redrive_outbox::tokio_postgres::enqueue(&transaction, enqueue).await;
        let id = id.map_err(|error| refused(error, state))?;
        match end {
            End::Commit => transaction.commit().await.unwrap(),
            End::Rollback => transaction.rollback().await.unwrap(),
        }
        Ok(id)
    }
}

pub(crate) struct Sqlx(PgConnection);

impl Driver for Sqlx {
    async fn connect(database: &Database) -> Self {
        Sqlx(PgConnection::connect(database.url()).await.unwrap())
    }

    async fn enqueue(&mut self, statement: &str, enqueue: &Enqueue, end: End) -> Result<TaskId, Refused> {
        let mut transaction = self.0.begin().await.unwrap();
        sqlx::raw_sql(statement).execute(&mut *transaction).await.unwrap();
        let state = |error: &sqlx::Error| Some(error.as_database_error()?.code()?.into_owned());
        let id = redrive_outbox::sqlx::enqueue(&mut transaction, enqueue).await;
        let id = id.map_err(|error| refused(error, state))?;
        match end {
            End::Commit => transaction.commit().await.unwrap(),
            End::Rollback => transaction.rollback().await.unwrap(),
        }
        Ok(id)
    }
}

fn refused<D: std::error::Error>(error: Error<D>, state: impl Fn(&D) -> Option<String>) -> Refused {
    match error {
        Error::InvalidArgument(message) => Refused::InvalidArgument(message),
        Error::KeyReused { message } => Refused::KeyReused(message),
        Error::UnknownPolicy { message } => Refused::UnknownPolicy(message),
        Error::Database(source) => Refused::Database(state(&source)),
        other => panic!("{other}"),
    }
}

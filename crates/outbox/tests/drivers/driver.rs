//! The interface of a driver for the suite.

use redrive_outbox::{Completion, Enqueue, Error, Event, Failure, Reservation, Reserve, Reserved, TaskId};
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
    Fenced(String),
    UnknownRecord(String),
    AlreadyEnded(String),
    EventInProgress(String),
    Database(Option<String>),
}

/// How an execution ends its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ending {
    Complete(Completion),
    Fail(Failure),
    Release,
}

/// A connection of one of the drivers.
pub(crate) trait Driver: Sized {
    async fn connect(database: &Database) -> Self;

    /// Runs `statement` and enqueues, in one transaction of the driver's own kind.
    async fn enqueue(&mut self, statement: &str, enqueue: &Enqueue, end: End) -> Result<TaskId, Refused>;

    /// Reserves a key, runs `statement`, and completes the record if it was reserved, all in one transaction.
    async fn execute(
        &mut self,
        reserve: &Reserve,
        statement: &str,
        completion: Option<&Completion>,
        end: End,
    ) -> Result<Reserved, Refused>;

    /// Ends a record in a transaction of its own.
    async fn end(&mut self, reservation: &Reservation, ending: &Ending) -> Result<(), Refused>;

    /// Asks whether an event was seen, in one transaction with `statement`.
    async fn seen(&mut self, event: &Event, statement: &str, end: End) -> Result<bool, Refused>;
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
        let id = redrive_outbox::tokio_postgres::enqueue(&transaction, enqueue).await;
        let id = id.map_err(|error| refused(error, state_of))?;
        match end {
            End::Commit => transaction.commit().await.unwrap(),
            End::Rollback => transaction.rollback().await.unwrap(),
        }
        Ok(id)
    }

    async fn execute(
        &mut self,
        reserve: &Reserve,
        statement: &str,
        completion: Option<&Completion>,
        end: End,
    ) -> Result<Reserved, Refused> {
        use redrive_outbox::tokio_postgres as redrive;
        let transaction = self.0.transaction().await.unwrap();
        let reserved = redrive::reserve(&transaction, reserve).await.map_err(|error| refused(error, state_of))?;
        if let (Reserved::Owner(own), Some(completion)) = (&reserved, completion) {
            transaction.batch_execute(statement).await.unwrap();
            redrive::complete(&transaction, own, completion).await.map_err(|error| refused(error, state_of))?;
        }
        match end {
            End::Commit => transaction.commit().await.unwrap(),
            End::Rollback => transaction.rollback().await.unwrap(),
        }
        Ok(reserved)
    }

    async fn end(&mut self, reservation: &Reservation, ending: &Ending) -> Result<(), Refused> {
        use redrive_outbox::tokio_postgres as redrive;
        let ended = match ending {
            Ending::Complete(completion) => redrive::complete(&self.0, reservation, completion).await,
            Ending::Fail(failure) => redrive::fail(&self.0, reservation, failure).await,
            Ending::Release => redrive::release(&self.0, reservation).await,
        };
        ended.map_err(|error| refused(error, state_of))
    }

    async fn seen(&mut self, event: &Event, statement: &str, end: End) -> Result<bool, Refused> {
        let transaction = self.0.transaction().await.unwrap();
        transaction.batch_execute(statement).await.unwrap();
        let seen = redrive_outbox::tokio_postgres::seen(&transaction, event).await;
        let seen = seen.map_err(|error| refused(error, state_of))?;
        match end {
            End::Commit => transaction.commit().await.unwrap(),
            End::Rollback => transaction.rollback().await.unwrap(),
        }
        Ok(seen)
    }
}

fn state_of(error: &tokio_postgres::Error) -> Option<String> {
    error.code().map(|code| code.code().to_owned())
}

pub(crate) struct Sqlx(PgConnection);

impl Driver for Sqlx {
    async fn connect(database: &Database) -> Self {
        Sqlx(PgConnection::connect(database.url()).await.unwrap())
    }

    async fn enqueue(&mut self, statement: &str, enqueue: &Enqueue, end: End) -> Result<TaskId, Refused> {
        let mut transaction = self.0.begin().await.unwrap();
        sqlx::raw_sql(statement).execute(&mut *transaction).await.unwrap();
        let id = redrive_outbox::sqlx::enqueue(&mut transaction, enqueue).await;
        let id = id.map_err(|error| refused(error, sqlx_state_of))?;
        match end {
            End::Commit => transaction.commit().await.unwrap(),
            End::Rollback => transaction.rollback().await.unwrap(),
        }
        Ok(id)
    }

    async fn execute(
        &mut self,
        reserve: &Reserve,
        statement: &str,
        completion: Option<&Completion>,
        end: End,
    ) -> Result<Reserved, Refused> {
        use redrive_outbox::sqlx as redrive;
        let mut transaction = self.0.begin().await.unwrap();
        let reserved =
            redrive::reserve(&mut transaction, reserve).await.map_err(|error| refused(error, sqlx_state_of))?;
        if let (Reserved::Owner(own), Some(completion)) = (&reserved, completion) {
            sqlx::raw_sql(statement).execute(&mut *transaction).await.unwrap();
            redrive::complete(&mut transaction, own, completion)
                .await
                .map_err(|error| refused(error, sqlx_state_of))?;
        }
        match end {
            End::Commit => transaction.commit().await.unwrap(),
            End::Rollback => transaction.rollback().await.unwrap(),
        }
        Ok(reserved)
    }

    async fn end(&mut self, reservation: &Reservation, ending: &Ending) -> Result<(), Refused> {
        use redrive_outbox::sqlx as redrive;
        let ended = match ending {
            Ending::Complete(completion) => redrive::complete(&mut self.0, reservation, completion).await,
            Ending::Fail(failure) => redrive::fail(&mut self.0, reservation, failure).await,
            Ending::Release => redrive::release(&mut self.0, reservation).await,
        };
        ended.map_err(|error| refused(error, sqlx_state_of))
    }

    async fn seen(&mut self, event: &Event, statement: &str, end: End) -> Result<bool, Refused> {
        let mut transaction = self.0.begin().await.unwrap();
        sqlx::raw_sql(statement).execute(&mut *transaction).await.unwrap();
        let seen = redrive_outbox::sqlx::seen(&mut transaction, event).await;
        let seen = seen.map_err(|error| refused(error, sqlx_state_of))?;
        match end {
            End::Commit => transaction.commit().await.unwrap(),
            End::Rollback => transaction.rollback().await.unwrap(),
        }
        Ok(seen)
    }
}

fn sqlx_state_of(error: &sqlx::Error) -> Option<String> {
    Some(error.as_database_error()?.code()?.into_owned())
}

fn refused<D: std::error::Error>(error: Error<D>, state: impl Fn(&D) -> Option<String>) -> Refused {
    match error {
        Error::InvalidArgument(message) => Refused::InvalidArgument(message),
        Error::KeyReused { message } => Refused::KeyReused(message),
        Error::UnknownPolicy { message } => Refused::UnknownPolicy(message),
        Error::Fenced { message } => Refused::Fenced(message),
        Error::UnknownRecord { message } => Refused::UnknownRecord(message),
        Error::AlreadyEnded { message } => Refused::AlreadyEnded(message),
        Error::EventInProgress { message } => Refused::EventInProgress(message),
        Error::Database(source) => Refused::Database(state(&source)),
        other => panic!("{other}"),
    }
}

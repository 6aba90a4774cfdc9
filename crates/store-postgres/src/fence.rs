//! The fence: notices that a newer program has changed the schema so that this one may not use it any more.
//!
//! The schema records which programs may use it. A process checks that at its start, and while it runs with every
//! heartbeat and every health check. A fenced process accepts and claims nothing more. It still settles its attempts in
//! flight, because their requests have been sent.

use std::sync::{Mutex, PoisonError};

use redrive_store::Error;

use crate::connection::Connection;
use crate::postgres_error::PostgresError;
use crate::schema;

/// Why this process may not use the schema, if so.
#[derive(Default)]
pub(crate) struct Fence {
    reason: Mutex<Option<String>>,
}

impl Fence {
    /// Fails if this process is fenced.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let reason = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        reason.clone().map_or(Ok(()), |reason| Err(Error::Unavailable(reason)))
    }

    /// Reads the schema's version. A change is logged once.
    pub(crate) async fn look(&self, connection: &Connection) -> Result<(), PostgresError> {
        let reason = schema::usable(connection).await?.err().map(|unusable| unusable.to_string());
        let mut known = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*known, &reason) {
            (None, Some(reason)) => tracing::error!(reason, "this process accepts and claims nothing any more"),
            (Some(_), None) => tracing::warn!("the schema can be used again: this process goes on"),
            _ => {}
        }
        *known = reason;
        Ok(())
    }
}

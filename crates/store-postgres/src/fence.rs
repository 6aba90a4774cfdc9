//! Whether a newer program has changed the schema so that this one may not use it any more.
//!
//! The schema says which programs may use it. A process looks at its start, and while it runs with every heartbeat and every
//! check; from then on it accepts and claims nothing. What it has under way it settles: that was sent already.

use std::sync::{Mutex, PoisonError};

use redrive_store::Error;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::schema;

/// Why this process may not go on, if it may not.
#[derive(Default)]
pub(crate) struct Fence {
    reason: Mutex<Option<String>>,
}

impl Fence {
    /// An error while this process is fenced off.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let reason = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        reason.clone().map_or(Ok(()), |reason| Err(Error::Unavailable(reason)))
    }

    /// Asks the database. A change is logged once.
    pub(crate) async fn look(&self, connection: &Connection) -> Result<(), Failure> {
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

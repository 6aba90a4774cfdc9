//! TEMPORARY: controls of lanes are not stored yet.

use async_trait::async_trait;
use redrive_core::Lane;
use redrive_core::guards::Controls;
use redrive_store::{Error, LaneControls};

use crate::store::PostgresStore;

#[async_trait]
impl LaneControls for PostgresStore {
    async fn put(&self, _: Lane, _: Controls) -> Result<(), Error> {
        Err(Error::Unavailable("controls of dependencies are not stored in PostgreSQL yet".into()))
    }

    async fn list(&self, _: Option<Lane>, _: usize) -> Result<Vec<(Lane, Controls)>, Error> {
        Ok(Vec::new())
    }
}

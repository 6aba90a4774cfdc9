//! Opens the blob storage for large bodies.

use std::sync::Arc;

use anyhow::Context;
use redrive_blobs::{Blobs, Credentials, Location, Parts};

use super::blob_identity::BlobStorage;
use crate::config::{Config, StoreKind};

/// The directory beside the embedded store's own files.
const DIRECTORY: &str = "blobs";

/// The location of the blob storage. A shared store has none unless one is named: other nodes could not read a
/// directory of this machine. Every body is stored in its task then, and uploads are refused.
pub(super) fn location(config: &Config) -> anyhow::Result<Option<Location>> {
    Ok(match (&config.blobs, &config.store) {
        (Some(text), _) => Some(Location::parse(text)?),
        (None, StoreKind::Memory) => Some(Location::Memory),
        (None, StoreKind::Sqlite) => Some(Location::directory(&config.data_dir.join(DIRECTORY))),
        (None, StoreKind::Postgres(_)) => None,
    })
}

/// The open blob storage. Its certificates are trusted as those of targets are.
pub(super) fn open(config: &Config, parts: Parts) -> anyhow::Result<Option<BlobStorage>> {
    let Some(location) = location(config)? else { return Ok(None) };
    let opened = Blobs::open_trusting(&location, &credentials(), &config.transport.extra_ca, parts);
    let blobs = Arc::new(opened.with_context(|| format!("cannot store large bodies in {location}"))?);
    let data_dir = (config.store == StoreKind::Sqlite).then(|| config.data_dir.clone());
    Ok(Some(BlobStorage { blobs, location, is_named: config.blobs.is_some(), data_dir }))
}

/// What other programs that speak S3 read as well.
fn credentials() -> Credentials {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    Credentials {
        access_key_id: variable("AWS_ACCESS_KEY_ID"),
        secret_access_key: variable("AWS_SECRET_ACCESS_KEY"),
        session_token: variable("AWS_SESSION_TOKEN"),
    }
}

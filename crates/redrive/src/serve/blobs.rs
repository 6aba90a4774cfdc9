//! Opens the place where large bodies are kept.

use std::sync::Arc;

use anyhow::Context;
use redrive_blobs::{Blobs, Credentials, Location, Parts};

use crate::config::{Config, StoreKind};

/// The directory beside the embedded store's own files.
const DIRECTORY: &str = "blobs";

/// The place, open. A shared store has none unless one is named: a directory of this machine is not where another node
/// would look. Every body is a part of its task then, and uploads are refused.
pub(super) fn open(config: &Config, parts: Parts) -> anyhow::Result<Option<Arc<Blobs>>> {
    let location = match (&config.blobs, &config.store) {
        (Some(text), _) => Location::parse(text)?,
        (None, StoreKind::Memory) => Location::Memory,
        (None, StoreKind::Sqlite) => Location::directory(&config.data_dir.join(DIRECTORY)),
        (None, StoreKind::Postgres(_)) => return Ok(None),
    };
    let blobs = Blobs::open(&location, &credentials(), parts).context("cannot open the place for large bodies")?;
    Ok(Some(Arc::new(blobs)))
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

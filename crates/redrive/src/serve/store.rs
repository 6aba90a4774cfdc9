//! Opens the store that the configuration names.

use std::sync::Arc;

use anyhow::Context;
use redrive_store::Store;
use redrive_store::memory::MemoryStore;
use redrive_store_sqlite::{Options, SqliteStore};

use crate::config::{Config, StoreKind};

/// The store, open. A new backend is one more arm here and one more name in the table of settings.
pub(super) async fn open(config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    match config.store {
        StoreKind::Memory => Ok(Arc::new(MemoryStore::new())),
        StoreKind::Sqlite => {
            let options = Options::new(&config.data_dir);
            // Opening reads the newest keys: nothing for a thread that has other work.
            let opened = tokio::task::spawn_blocking(move || SqliteStore::open(options)).await;
            let store = opened.context("opening the store panicked")?.context("cannot open the store")?;
            Ok(Arc::new(store))
        }
    }
}

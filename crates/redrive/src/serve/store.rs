//! Opens the store that the configuration names.

use std::sync::Arc;

use anyhow::Context;
use rand::Rng;
use redrive_dial::Authorities;
use redrive_schedule_redis::{Schedule, Scheduled};
use redrive_store::memory::MemoryStore;
use redrive_store::{NodeId, Store};
use redrive_store_postgres::{OpenError, PostgresStore};
use redrive_store_sqlite::SqliteStore;

use crate::config::{Address, Config, Pooler, StoreKind};
use crate::exit::{Exit, ExitError};
use crate::host;

/// The store, open. A new backend is one more arm here and one more name in the table of settings.
pub(super) async fn open(config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    match &config.store {
        StoreKind::Memory => Ok(Arc::new(MemoryStore::new())),
        StoreKind::Sqlite => {
            let options = redrive_store_sqlite::Options::new(&config.data_dir);
            // Opening reads the newest keys: nothing for a thread that has other work.
            let opened = tokio::task::spawn_blocking(move || SqliteStore::open(options)).await;
            let store = opened.context("opening the store panicked")?.context("cannot open the store")?;
            Ok(Arc::new(store))
        }
        StoreKind::Postgres(address) => {
            let store = PostgresStore::open(postgres_options(config, address)?).await;
            let store = store.map_err(|error| cannot("open the store", address, &error))?;
            with_schedule(config, Arc::new(store))
        }
    }
}

/// The error of a PostgreSQL that could not be used: bad configuration if trying again is useless.
pub(crate) fn cannot(attempt: &str, address: &Address, error: &OpenError) -> anyhow::Error {
    let exit = if error.is_misconfiguration() { Exit::BadConfiguration } else { Exit::Failed };
    ExitError::of(exit, format!("cannot {attempt} {address}: {error}"))
}

/// The store with a schedule in Redis in front of it, if there is to be one. A Redis that is not there is no reason not
/// to start: the store does without, and the schedule is built when Redis comes.
fn with_schedule(config: &Config, store: Arc<PostgresStore>) -> anyhow::Result<Arc<dyn Store>> {
    let Some(address) = &config.schedule else { return Ok(store) };
    let extra_ca = &config.transport.extra_ca;
    let root_certificates = match extra_ca.is_empty() {
        true => None,
        false => {
            let trusted = Authorities::of_the_system().and(extra_ca).context("cannot use extra_ca")?;
            Some(trusted.to_pem().into_bytes())
        }
    };
    let options = redrive_schedule_redis::Options { prefix: config.schedule_prefix.clone(), root_certificates };
    let schedule = Schedule::new(address.clone(), options).context("cannot use schedule_prefix")?;
    Ok(Arc::new(Scheduled::new(store, schedule).context("cannot use the schedule")?))
}

/// How the configuration says that this database is to be used.
pub(crate) fn postgres_options(config: &Config, address: &Address) -> anyhow::Result<redrive_store_postgres::Options> {
    let node = match &config.node {
        Some(node) => node.clone(),
        None => node_name(&config.store)?,
    };
    Ok(redrive_store_postgres::Options {
        listen_url: config.postgres.listen_url.as_ref().map(|url| url.secret().to_owned()),
        is_pooled: config.postgres.pooler == Pooler::Transaction,
        extra_ca: config.transport.extra_ca.clone(),
        connections: config.postgres.connections,
        migrate: config.postgres.migrate,
        ..redrive_store_postgres::Options::new(address.secret(), node)
    })
}

/// The name of a process that was given none: the machine's, with something random if other processes may use the store.
pub(super) fn node_name(store: &StoreKind) -> anyhow::Result<NodeId> {
    let host: String = host::name().chars().take(NodeId::LIMIT - 10).collect();
    if !matches!(store, StoreKind::Postgres(_)) {
        return Ok(NodeId::try_new(&host).unwrap_or_else(|_| NodeId::this()));
    }
    let random = rand::make_rng::<rand::rngs::SmallRng>().next_u32();
    NodeId::try_new(&format!("{host}-{random:08x}")).context("cannot generate a node name")
}

//! Checks of values that are valid by themselves, but not together or not on this machine.

use std::time::Duration;

use redrive_store_postgres::connect;
use redrive_transport::HttpTransport;

use super::{Loaded, Problem, Setting, StoreKind, alerts, guards, idempotency};

/// The problems of the configuration as a whole.
pub(super) fn problems(loaded: &Loaded) -> Vec<Problem> {
    let config = &loaded.config;
    let mut problems: Vec<Problem> = config
        .engine
        .problems()
        .into_iter()
        .map(|invalid| about(loaded, &format!("engine.{}", invalid.name), invalid.problem))
        .collect();
    if config.store == StoreKind::Sqlite && config.data_dir.exists() && !config.data_dir.is_dir() {
        problems.push(about(loaded, "data_dir", "must be a directory, but is a file".into()));
    }
    let stores = match &config.store {
        StoreKind::Postgres(address) => Some(("store", address)),
        _ => None,
    };
    let listen = config.postgres.listen_url.as_ref().map(|address| ("postgres.listen_url", address));
    for (key, address) in stores.into_iter().chain(listen) {
        // An address that the driver cannot parse now cannot be used later either.
        let terms = connect::Terms { name: "", settings: &[], extra_ca: &[], timeout: Duration::ZERO };
        if let Err(error) = connect::Address::read(address.secret(), &terms) {
            problems.push(about(loaded, key, error.to_string()));
        }
    }
    if config.schedule.is_some() && !matches!(config.store, StoreKind::Postgres(_)) {
        let wrong = "needs a store of postgres://…: the other stores keep their schedule in memory";
        problems.push(about(loaded, "schedule", wrong.into()));
    }
    problems.extend(guards::problems(config).into_iter().map(|(key, wrong)| about(loaded, key, wrong)));
    problems.extend(idempotency::problems(config).into_iter().map(|(key, wrong)| about(loaded, key, wrong)));
    problems.extend(alerts::problems(config).into_iter().map(|(key, wrong)| about(loaded, key, wrong)));
    let largest = config.api.max_memory_bytes / 8;
    if config.limits.body_bytes > largest {
        let wrong = format!(
            "must be at most {largest}, an eighth of api.max_memory_bytes: one connection may hold no more than that"
        );
        problems.push(about(loaded, "limits.max_body_bytes", wrong));
    }
    // Only with named files: reading the system's authorities takes a while.
    if !config.transport.extra_ca.is_empty()
        && let Err(error) = HttpTransport::new(config.transport.clone())
    {
        problems.push(about(loaded, "transport.extra_ca", format!("{:#}", anyhow::Error::new(error))));
    }
    problems
}

fn about(loaded: &Loaded, key: &str, wrong: String) -> Problem {
    let value = Setting::find(key).map_or_else(String::new, |setting| setting.written(&loaded.config));
    Problem { origin: loaded.origin(key), about: Some((key.to_owned(), value)), wrong }
}

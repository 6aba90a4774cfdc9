//! The settings of PostgreSQL.

use redrive_store_postgres::FEWEST_CONNECTIONS;

use super::{Setting, YES_OR_NO};
use crate::config::Pooler;
use crate::config::value::{count, name_of, read_listen_url, text};

const POOLERS: [(&str, Pooler); 2] = [("none", Pooler::None), ("transaction", Pooler::Transaction)];

pub(super) const CONNECTIONS: Setting = Setting {
    key: "postgres.connections",
    variable: "REDRIVE_POSTGRES_CONNECTIONS",
    flag: "postgres-connections",
    value_name: "N",
    meaning: "the maximum number of connections to PostgreSQL, not counting the one for LISTEN",
    repeats: false,
    read: |config, given| given.count(FEWEST_CONNECTIONS..=1_000).map(|count| config.postgres.connections = count),
    show: |config| count(config.postgres.connections),
};

pub(super) const POOLER: Setting = Setting {
    key: "postgres.pooler",
    variable: "REDRIVE_POSTGRES_POOLER",
    flag: "postgres-pooler",
    value_name: "none|transaction",
    meaning: "the connection pooler in front of PostgreSQL: transaction for one in transaction mode, such as PgBouncer",
    repeats: false,
    read: |config, given| given.one_of(&POOLERS).map(|pooler| config.postgres.pooler = pooler),
    show: |config| text(name_of(&POOLERS, config.postgres.pooler)),
};

pub(super) const LISTEN_URL: Setting = Setting {
    key: "postgres.listen_url",
    variable: "REDRIVE_POSTGRES_LISTEN_URL",
    flag: "postgres-listen-url",
    value_name: "URL|same",
    meaning: "an address of PostgreSQL that bypasses a transaction pooler, for LISTEN; without it, nodes poll for \
        new tasks",
    repeats: false,
    read: |config, given| read_listen_url(given).map(|url| config.postgres.listen_url = url),
    show: |config| config.postgres.listen_url.as_ref().map_or_else(|| text("same"), |url| text(&url.to_string())),
};

pub(super) const MIGRATE: Setting = Setting {
    key: "postgres.migrate",
    variable: "REDRIVE_POSTGRES_MIGRATE",
    flag: "postgres-migrate",
    value_name: "true|false",
    meaning: "whether to update PostgreSQL's schema at the start; if not, run `redrive migrate`",
    repeats: false,
    read: |config, given| given.one_of(&YES_OR_NO).map(|migrate| config.postgres.migrate = migrate),
    show: |config| text(name_of(&YES_OR_NO, config.postgres.migrate)),
};

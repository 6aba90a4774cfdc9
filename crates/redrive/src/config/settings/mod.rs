//! The table of settings: each is declared here, or in the file of its section.

mod api;
mod engine;
mod guards;
mod limits;
mod log;
mod postgres;
mod transport;

use std::time::Duration;

use redrive_server::Standard;
use toml::Value;

use super::given::{Expected, Given};
use super::value::{
    count, name_of, path, read_blobs, read_host_name, read_node, read_schedule, read_secret_name, read_store,
    read_threads, show_store, text,
};
use super::{Config, alerts, idempotency};

/// One setting.
pub struct Setting {
    /// Its key in the file; what is before the dot is the section.
    pub key: &'static str,
    /// Its environment variable.
    pub variable: &'static str,
    /// Its flag, without the dashes.
    pub flag: &'static str,
    /// What stands for the value in the help.
    pub value_name: &'static str,
    /// What it means, in a line.
    pub meaning: &'static str,
    /// Whether the flag may be given several times.
    pub repeats: bool,
    /// Puts a given value into the configuration.
    pub(super) read: fn(&mut Config, &Given) -> Result<(), Expected>,
    /// The value in force.
    pub(super) show: fn(&Config) -> Value,
}

const YES_OR_NO: [(&str, bool); 2] = [("true", true), ("false", false)];
const ON_OR_OFF: [(&str, bool); 2] = [("on", true), ("off", false)];

const STANDARDS: [(&str, Standard); 3] =
    [("off", Standard::Off), ("warn", Standard::Warn), ("enforce", Standard::Enforce)];

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);
const YEARS: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Every setting, in the order in which people see them.
pub static SETTINGS: [Setting; 62] = [
    Setting {
        key: "listen",
        variable: "REDRIVE_LISTEN",
        flag: "listen",
        value_name: "HOST:PORT",
        meaning: "the address of the API; port 0 takes any free port",
        repeats: false,
        read: |config, given| given.listen_address().map(|address| config.listen = address),
        show: |config| text(&config.listen),
    },
    Setting {
        key: "host_names",
        variable: "REDRIVE_HOST_NAMES",
        flag: "host-names",
        value_name: "NAME",
        meaning: "host names of the API, besides localhost and the address it listens on: NAME, *.DOMAIN for all names below it, \
            an IP address, or * for any; requests for other host names are refused (in the variable: separated by ',')",
        repeats: true,
        read: |config, given| given.words(read_host_name).map(|names| config.host_names = names),
        show: |config| Value::Array(config.host_names.iter().map(|name| text(&name.to_string())).collect()),
    },
    Setting {
        key: "secret_names",
        variable: "REDRIVE_SECRET_NAMES",
        flag: "secret-names",
        value_name: "PART",
        meaning: "parts of names of headers and URL parameters whose values are shown as ***, besides token, key, auth and \
            the others that /docs lists (in the variable: separated by ',')",
        repeats: true,
        read: |config, given| given.words(read_secret_name).map(|names| config.secret_names = names),
        show: |config| Value::Array(config.secret_names.iter().map(|name| text(name)).collect()),
    },
    Setting {
        key: "data_dir",
        variable: "REDRIVE_DATA_DIR",
        flag: "data-dir",
        value_name: "DIR",
        meaning: "the directory of the embedded store; created if it does not exist",
        repeats: false,
        read: |config, given| given.path().map(|path| config.data_dir = path),
        show: |config| path(&config.data_dir),
    },
    Setting {
        key: "store",
        variable: "REDRIVE_STORE",
        flag: "store",
        value_name: "sqlite|memory|URL",
        meaning: "where tasks are stored: sqlite (a file), memory (lost when the process ends) or postgres://… (shared by \
            several nodes)",
        repeats: false,
        read: |config, given| read_store(given).map(|store| config.store = store),
        show: |config| show_store(&config.store),
    },
    Setting {
        key: "node",
        variable: "REDRIVE_NODE",
        flag: "node",
        value_name: "NAME|auto",
        meaning: "the name of this node, unique among the nodes of one PostgreSQL; auto generates one",
        repeats: false,
        read: |config, given| read_node(given).map(|node| config.node = node),
        show: |config| config.node.as_ref().map_or_else(|| text("auto"), |node| text(node.as_str())),
    },
    Setting {
        key: "blobs",
        variable: "REDRIVE_BLOBS",
        flag: "blobs",
        value_name: "URL|auto",
        meaning: "where large bodies are stored: file:///DIR or s3://BUCKET/PREFIX?endpoint=URL&region=NAME, with the keys in \
            AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; auto is the directory blobs in data_dir, or with a \
            store of postgres://… none",
        repeats: false,
        read: |config, given| read_blobs(given).map(|blobs| config.blobs = blobs),
        show: |config| text(config.blobs.as_deref().unwrap_or("auto")),
    },
    Setting {
        key: "metrics",
        variable: "REDRIVE_METRICS",
        flag: "metrics",
        value_name: "on|off",
        meaning: "whether attempts and tasks are counted for /metrics; off leaves what is read from the service's state",
        repeats: false,
        read: |config, given| given.one_of(&ON_OR_OFF).map(|is_on| config.metrics = is_on),
        show: |config| text(name_of(&ON_OR_OFF, config.metrics)),
    },
    Setting {
        key: "events",
        variable: "REDRIVE_EVENTS",
        flag: "events",
        value_name: "N",
        meaning: "how many of the last events are kept in memory for /events and `redrive events`; 0 turns events off",
        repeats: false,
        read: |config, given| given.count(0..=1_000_000).map(|count| config.events = count),
        show: |config| count(config.events),
    },
    Setting {
        key: "schedule",
        variable: "REDRIVE_SCHEDULE",
        flag: "schedule",
        value_name: "store|URL",
        meaning: "where nodes look for due work: the store itself, or redis://HOST, redis+sentinel://HOST,…/SERVICE, \
            redis+cluster://HOST,… in front of PostgreSQL (rediss for TLS)",
        repeats: false,
        read: |config, given| read_schedule(given).map(|schedule| config.schedule = schedule),
        show: |config| config.schedule.as_ref().map_or_else(|| text("store"), |address| text(&address.to_string())),
    },
    Setting {
        key: "schedule_prefix",
        variable: "REDRIVE_SCHEDULE_PREFIX",
        flag: "schedule-prefix",
        value_name: "NAME",
        meaning: "the prefix of all keys in Redis; deployments that share a Redis need different ones",
        repeats: false,
        read: |config, given| given.text().map(|prefix| config.schedule_prefix = prefix.to_owned()),
        show: |config| text(&config.schedule_prefix),
    },
    Setting {
        key: "standard",
        variable: "REDRIVE_STANDARD",
        flag: "standard",
        value_name: "off|warn|enforce",
        meaning: "how the retry standard applies to policies and submissions: off, warn (the answer lists violations) or \
            enforce (violations of a MUST are refused)",
        repeats: false,
        read: |config, given| given.one_of(&STANDARDS).map(|standard| config.standard = standard),
        show: |config| text(name_of(&STANDARDS, config.standard)),
    },
    Setting {
        key: "worker_threads",
        variable: "REDRIVE_WORKER_THREADS",
        flag: "worker-threads",
        value_name: "N|auto",
        meaning: "the number of worker threads; auto is one per core",
        repeats: false,
        read: |config, given| read_threads(given).map(|threads| config.worker_threads = threads),
        show: |config| config.worker_threads.map_or_else(|| text("auto"), count),
    },
    log::LEVEL,
    log::FORMAT,
    log::SUCCESSES,
    log::KEYS,
    engine::LANE_CONCURRENCY,
    engine::MAX_IN_FLIGHT,
    engine::MAX_BODY_BYTES,
    engine::LEASE_MARGIN,
    engine::SHUTDOWN_GRACE,
    engine::RETENTION,
    engine::BLOB_GRACE,
    guards::BUDGET,
    guards::BUDGET_FLOOR,
    guards::BUDGET_PERCENT,
    guards::BUDGET_DRAIN,
    guards::BREAKER,
    guards::BREAKER_FAILURES,
    guards::BREAKER_FAILURE_PERCENT,
    guards::BREAKER_OPEN,
    guards::BREAKER_LONGEST_OPEN,
    guards::BREAKER_PROBES,
    guards::CONCURRENCY,
    guards::CONCURRENCY_START,
    guards::CONCURRENCY_MIN,
    postgres::CONNECTIONS,
    postgres::POOLER,
    postgres::LISTEN_URL,
    postgres::MIGRATE,
    idempotency::RETENTION,
    idempotency::FINANCIAL_RETENTION,
    idempotency::LEASE,
    idempotency::INBOX_WINDOW,
    idempotency::OPERATIONS,
    idempotency::CONSUMERS,
    alerts::WAIT,
    alerts::INTERVAL,
    alerts::REPEAT,
    alerts::RULES,
    alerts::SINKS,
    transport::EXTRA_CA,
    transport::DNS_SERVER,
    transport::MAX_IDLE_PER_ORIGIN,
    limits::MAX_BODY_BYTES,
    limits::MAX_STORED_BODY_BYTES,
    limits::INLINE_BODY_BYTES,
    limits::KEPT_ANSWER_BYTES,
    api::MAX_MEMORY_BYTES,
    api::MAX_CONNECTIONS,
    api::WRITE_TIMEOUT,
];

impl Setting {
    /// The setting with this key.
    pub fn find(key: &str) -> Option<&'static Setting> {
        SETTINGS.iter().find(|setting| setting.key == key)
    }

    /// Its section in the file and its name there.
    pub fn place(&self) -> (Option<&'static str>, &'static str) {
        self.key.split_once('.').map_or((None, self.key), |(section, name)| (Some(section), name))
    }

    /// The value in force, as it would stand in the file.
    pub fn written(&self, config: &Config) -> String {
        (self.show)(config).to_string()
    }

    /// The value in force, for people: without quotes.
    pub fn readable(&self, config: &Config) -> String {
        match (self.show)(config) {
            Value::String(text) => text,
            other => other.to_string(),
        }
    }

    /// The value in force, for programs.
    pub fn to_json(&self, config: &Config) -> serde_json::Value {
        serde_json::to_value((self.show)(config)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_from_the_key_and_are_unique() {
        let mut flags: Vec<_> = SETTINGS.iter().map(|setting| setting.flag).collect();
        flags.sort_unstable();
        flags.dedup();
        assert_eq!(flags.len(), SETTINGS.len());
        for setting in &SETTINGS {
            let expected = format!("REDRIVE_{}", setting.key.replace('.', "_").to_uppercase());
            assert_eq!(setting.variable, expected);
            assert!(!setting.meaning.is_empty() && !setting.meaning.ends_with('.'), "{}", setting.key);
        }
    }

    #[test]
    fn every_value_shown_can_be_given_back() {
        let config = Config::default();
        for setting in &SETTINGS {
            let mut changed = Config::default();
            let readable = match setting.repeats {
                true => Given::Many(Vec::new()),
                false => Given::Plain(setting.readable(&config)),
            };
            assert_eq!((setting.read)(&mut changed, &readable), Ok(()), "{}", setting.key);
            assert_eq!(changed, config, "{}", setting.key);
        }
    }
}

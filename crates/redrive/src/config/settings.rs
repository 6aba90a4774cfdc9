//! The table of settings: each is declared here, or in the file of its section.

use std::time::Duration;

use redrive_core::guards::budget::Drain;
use redrive_engine::{Options, SuccessLevel};
use redrive_server::Standard;
use redrive_store_postgres::FEWEST_CONNECTIONS;
use toml::Value;

use super::given::{Expected, Given};
use super::value::{
    bytes, count, duration, limit_inline, name_of, number, path, read_blobs, read_host_name, read_listen_url,
    read_log_level, read_node, read_schedule, read_secret_name, read_store, read_threads, show_store, text,
};
use super::{Config, LogFormat, Pooler, alerts, idempotency};

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

const POOLERS: [(&str, Pooler); 2] = [("none", Pooler::None), ("transaction", Pooler::Transaction)];
const YES_OR_NO: [(&str, bool); 2] = [("true", true), ("false", false)];
const ON_OR_OFF: [(&str, bool); 2] = [("on", true), ("off", false)];
const DRAINS: [(&str, Drain); 2] = [("earned", Drain::Earned), ("strict", Drain::Strict)];
/// Whether the limit adapts.
const CONCURRENCIES: [(&str, bool); 2] = [("adaptive", true), ("fixed", false)];
const SUCCESS_LEVELS: [(&str, SuccessLevel); 2] = [("info", SuccessLevel::Info), ("debug", SuccessLevel::Debug)];
/// Whether keys are hashed.
const LOGGED_KEYS: [(&str, bool); 2] = [("plain", false), ("hashed", true)];
const LOG_FORMATS: [(&str, LogFormat); 2] = [("text", LogFormat::Text), ("json", LogFormat::Json)];

const STANDARDS: [(&str, Standard); 3] =
    [("off", Standard::Off), ("warn", Standard::Warn), ("enforce", Standard::Enforce)];

/// Where DNS servers listen.
const DNS_PORT: u16 = 53;

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
    Setting {
        key: "log.level",
        variable: "REDRIVE_LOG_LEVEL",
        flag: "log-level",
        value_name: "LEVEL",
        meaning: "the log level: error, warn, info, debug, trace, also per module (info,redrive_engine=debug)",
        repeats: false,
        read: |config, given| read_log_level(given).map(|level| config.log_level = level),
        show: |config| text(&config.log_level),
    },
    Setting {
        key: "log.format",
        variable: "REDRIVE_LOG_FORMAT",
        flag: "log-format",
        value_name: "text|json",
        meaning: "the log format: text for people, json for programs",
        repeats: false,
        read: |config, given| given.one_of(&LOG_FORMATS).map(|format| config.log_format = format),
        show: |config| text(name_of(&LOG_FORMATS, config.log_format)),
    },
    Setting {
        key: "log.successes",
        variable: "REDRIVE_LOG_SUCCESSES",
        flag: "log-successes",
        value_name: "info|debug",
        meaning: "the level of attempts that succeed; attempts that fail are logged at info",
        repeats: false,
        read: |config, given| given.one_of(&SUCCESS_LEVELS).map(|level| config.engine.log.successes = level),
        show: |config| text(name_of(&SUCCESS_LEVELS, config.engine.log.successes)),
    },
    Setting {
        key: "log.keys",
        variable: "REDRIVE_LOG_KEYS",
        flag: "log-keys",
        value_name: "plain|hashed",
        meaning: "how idempotency keys are logged: as they are, or as the beginning of their SHA-256",
        repeats: false,
        read: |config, given| given.one_of(&LOGGED_KEYS).map(|is_hashed| config.engine.log.hashes_keys = is_hashed),
        show: |config| text(name_of(&LOGGED_KEYS, config.engine.log.hashes_keys)),
    },
    Setting {
        key: "engine.lane_concurrency",
        variable: "REDRIVE_ENGINE_LANE_CONCURRENCY",
        flag: "lane-concurrency",
        value_name: "N",
        meaning: "the maximum number of concurrent attempts to one dependency, per node: N nodes make N times as many",
        repeats: false,
        read: |config, given| given.count(1..=100_000).map(|count| config.engine.lane_concurrency = count),
        show: |config| count(config.engine.lane_concurrency),
    },
    Setting {
        key: "engine.max_in_flight",
        variable: "REDRIVE_ENGINE_MAX_IN_FLIGHT",
        flag: "max-in-flight",
        value_name: "N",
        meaning: "the maximum number of concurrent attempts in total, per node; at least engine.lane_concurrency",
        repeats: false,
        read: |config, given| given.count(1..=1_000_000).map(|count| config.engine.max_in_flight = count),
        show: |config| count(config.engine.max_in_flight),
    },
    Setting {
        key: "engine.max_body_bytes",
        variable: "REDRIVE_ENGINE_MAX_BODY_BYTES",
        flag: "max-body-memory",
        value_name: "BYTES",
        meaning: "the maximum memory for bodies of claimed tasks, per node; other tasks wait in the store",
        repeats: false,
        read: |config, given| {
            given.count(Options::MIN_BODY_BYTES..=1_099_511_627_776).map(|bytes| config.engine.max_body_bytes = bytes)
        },
        show: |config| count(config.engine.max_body_bytes),
    },
    Setting {
        key: "engine.lease_margin",
        variable: "REDRIVE_ENGINE_LEASE_MARGIN",
        flag: "lease-margin",
        value_name: "DURATION",
        meaning: "how long after the timeout of an attempt its lease expires and another worker may take over the task",
        repeats: false,
        read: |config, given| {
            given.duration(Options::MIN_LEASE_MARGIN..=HOUR).map(|margin| config.engine.lease_margin = margin)
        },
        show: |config| duration(config.engine.lease_margin),
    },
    Setting {
        key: "engine.shutdown_grace",
        variable: "REDRIVE_ENGINE_SHUTDOWN_GRACE",
        flag: "shutdown-grace",
        value_name: "DURATION",
        meaning: "how long attempts in progress may take to finish when the service stops",
        repeats: false,
        read: |config, given| given.duration(Duration::ZERO..=HOUR).map(|grace| config.engine.shutdown_grace = grace),
        show: |config| duration(config.engine.shutdown_grace),
    },
    Setting {
        key: "engine.retention",
        variable: "REDRIVE_ENGINE_RETENTION",
        flag: "retention",
        value_name: "DURATION",
        meaning: "how long an ended task and its idempotency key are kept",
        repeats: false,
        read: |config, given| {
            given.duration(Options::MIN_RETENTION..=YEARS).map(|retention| config.engine.retention = retention)
        },
        show: |config| duration(config.engine.retention),
    },
    Setting {
        key: "engine.blob_grace",
        variable: "REDRIVE_ENGINE_BLOB_GRACE",
        flag: "blob-grace",
        value_name: "DURATION",
        meaning: "how long an uploaded body that no task refers to is kept; checked every 10 minutes",
        repeats: false,
        read: |config, given| given.duration(MINUTE..=YEARS).map(|grace| config.engine.blob_grace = grace),
        show: |config| duration(config.engine.blob_grace),
    },
    Setting {
        key: "guards.budget",
        variable: "REDRIVE_GUARDS_BUDGET",
        flag: "budget",
        value_name: "on|off",
        meaning: "whether retries are limited by a retry budget, per dependency, over all nodes",
        repeats: false,
        read: |config, given| given.one_of(&ON_OR_OFF).map(|has| config.guards.has_budget = has),
        show: |config| text(name_of(&ON_OR_OFF, config.guards.has_budget)),
    },
    Setting {
        key: "guards.budget_floor",
        variable: "REDRIVE_GUARDS_BUDGET_FLOOR",
        flag: "budget-floor",
        value_name: "N",
        meaning: "how many retries in 30 s the budget allows at any traffic",
        repeats: false,
        read: |config, given| given.number(0..=1_000_000).map(|floor| config.guards.budget.floor = floor),
        show: |config| number(config.guards.budget.floor),
    },
    Setting {
        key: "guards.budget_percent",
        variable: "REDRIVE_GUARDS_BUDGET_PERCENT",
        flag: "budget-percent",
        value_name: "N",
        meaning: "how many retries the budget allows besides, in percent of the first attempts of 30 s",
        repeats: false,
        read: |config, given| given.number(0..=100).map(|percent| config.guards.budget.percent = percent),
        show: |config| number(config.guards.budget.percent),
    },
    Setting {
        key: "guards.budget_drain",
        variable: "REDRIVE_GUARDS_BUDGET_DRAIN",
        flag: "budget-drain",
        value_name: "earned|strict",
        meaning: "how a backlog of retries drains: earned (retries that succeed at a healthy dependency are refunded) or strict \
            (no retry is refunded)",
        repeats: false,
        read: |config, given| given.one_of(&DRAINS).map(|drain| config.guards.budget.drain = drain),
        show: |config| text(config.guards.budget.drain.as_str()),
    },
    Setting {
        key: "guards.breaker",
        variable: "REDRIVE_GUARDS_BREAKER",
        flag: "breaker",
        value_name: "on|off",
        meaning: "whether a circuit breaker stops calls to a dependency that keeps failing",
        repeats: false,
        read: |config, given| given.one_of(&ON_OR_OFF).map(|has| config.guards.has_breaker = has),
        show: |config| text(name_of(&ON_OR_OFF, config.guards.has_breaker)),
    },
    Setting {
        key: "guards.breaker_failures",
        variable: "REDRIVE_GUARDS_BREAKER_FAILURES",
        flag: "breaker-failures",
        value_name: "N",
        meaning: "how many failures in a row open the circuit breaker",
        repeats: false,
        read: |config, given| {
            given.number(1..=10_000).map(|failures| config.guards.breaker.failures_in_a_row = failures)
        },
        show: |config| number(config.guards.breaker.failures_in_a_row),
    },
    Setting {
        key: "guards.breaker_failure_percent",
        variable: "REDRIVE_GUARDS_BREAKER_FAILURE_PERCENT",
        flag: "breaker-failure-percent",
        value_name: "N",
        meaning: "what percentage of failures among at least 20 calls in 30 s opens the circuit breaker",
        repeats: false,
        read: |config, given| given.number(1..=100).map(|percent| config.guards.breaker.failure_percent = percent),
        show: |config| number(config.guards.breaker.failure_percent),
    },
    Setting {
        key: "guards.breaker_open",
        variable: "REDRIVE_GUARDS_BREAKER_OPEN",
        flag: "breaker-open",
        value_name: "DURATION",
        meaning: "how long the circuit breaker is open the first time, give or take 20 %; twice as long each further time",
        repeats: false,
        read: |config, given| given.duration(SECOND..=HOUR).map(|open| config.guards.breaker.open = open),
        show: |config| duration(config.guards.breaker.open),
    },
    Setting {
        key: "guards.breaker_longest_open",
        variable: "REDRIVE_GUARDS_BREAKER_LONGEST_OPEN",
        flag: "breaker-longest-open",
        value_name: "DURATION",
        meaning: "the longest time that the circuit breaker is open, give or take 20 %, unless a Retry-After asks for more",
        repeats: false,
        read: |config, given| given.duration(SECOND..=DAY).map(|open| config.guards.breaker.longest_open = open),
        show: |config| duration(config.guards.breaker.longest_open),
    },
    Setting {
        key: "guards.breaker_probes",
        variable: "REDRIVE_GUARDS_BREAKER_PROBES",
        flag: "breaker-probes",
        value_name: "N",
        meaning: "how many calls test the dependency when the circuit breaker has been open; all must succeed to close it",
        repeats: false,
        read: |config, given| given.number(1..=100).map(|probes| config.guards.breaker.probes = probes),
        show: |config| number(config.guards.breaker.probes),
    },
    Setting {
        key: "guards.concurrency",
        variable: "REDRIVE_GUARDS_CONCURRENCY",
        flag: "concurrency",
        value_name: "adaptive|fixed",
        meaning: "the limit of concurrent attempts to one dependency: adaptive (follows the dependency's latency, up to \
            engine.lane_concurrency) or fixed (engine.lane_concurrency)",
        repeats: false,
        read: |config, given| given.one_of(&CONCURRENCIES).map(|adapts| config.guards.concurrency.is_adaptive = adapts),
        show: |config| text(name_of(&CONCURRENCIES, config.guards.concurrency.is_adaptive)),
    },
    Setting {
        key: "guards.concurrency_start",
        variable: "REDRIVE_GUARDS_CONCURRENCY_START",
        flag: "concurrency-start",
        value_name: "N",
        meaning: "the adaptive limit before anything is known of a dependency",
        repeats: false,
        read: |config, given| given.number(1..=100_000).map(|start| config.guards.concurrency.start = start),
        show: |config| number(config.guards.concurrency.start),
    },
    Setting {
        key: "guards.concurrency_min",
        variable: "REDRIVE_GUARDS_CONCURRENCY_MIN",
        flag: "concurrency-min",
        value_name: "N",
        meaning: "the adaptive limit is never lower",
        repeats: false,
        read: |config, given| given.number(1..=100_000).map(|least| config.guards.concurrency.least = least),
        show: |config| number(config.guards.concurrency.least),
    },
    Setting {
        key: "postgres.connections",
        variable: "REDRIVE_POSTGRES_CONNECTIONS",
        flag: "postgres-connections",
        value_name: "N",
        meaning: "the maximum number of connections to PostgreSQL, not counting the one for LISTEN",
        repeats: false,
        read: |config, given| given.count(FEWEST_CONNECTIONS..=1_000).map(|count| config.postgres.connections = count),
        show: |config| count(config.postgres.connections),
    },
    Setting {
        key: "postgres.pooler",
        variable: "REDRIVE_POSTGRES_POOLER",
        flag: "postgres-pooler",
        value_name: "none|transaction",
        meaning: "the connection pooler in front of PostgreSQL: transaction for one in transaction mode, such as PgBouncer",
        repeats: false,
        read: |config, given| given.one_of(&POOLERS).map(|pooler| config.postgres.pooler = pooler),
        show: |config| text(name_of(&POOLERS, config.postgres.pooler)),
    },
    Setting {
        key: "postgres.listen_url",
        variable: "REDRIVE_POSTGRES_LISTEN_URL",
        flag: "postgres-listen-url",
        value_name: "URL|same",
        meaning: "an address of PostgreSQL that bypasses a transaction pooler, for LISTEN; without it, nodes poll for \
            new tasks",
        repeats: false,
        read: |config, given| read_listen_url(given).map(|url| config.postgres.listen_url = url),
        show: |config| config.postgres.listen_url.as_ref().map_or_else(|| text("same"), |url| text(&url.to_string())),
    },
    Setting {
        key: "postgres.migrate",
        variable: "REDRIVE_POSTGRES_MIGRATE",
        flag: "postgres-migrate",
        value_name: "true|false",
        meaning: "whether to update PostgreSQL's schema at the start; if not, run `redrive migrate`",
        repeats: false,
        read: |config, given| given.one_of(&YES_OR_NO).map(|migrate| config.postgres.migrate = migrate),
        show: |config| text(name_of(&YES_OR_NO, config.postgres.migrate)),
    },
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
    Setting {
        key: "transport.extra_ca",
        variable: "REDRIVE_TRANSPORT_EXTRA_CA",
        flag: "extra-ca",
        value_name: "FILE",
        meaning: "PEM files of certificate authorities to trust besides the system's, for targets, PostgreSQL, Redis and \
            object storage (in the variable: separated by ':')",
        repeats: true,
        read: |config, given| given.paths().map(|paths| config.transport.extra_ca = paths),
        show: |config| Value::Array(config.transport.extra_ca.iter().map(|file| path(file)).collect()),
    },
    Setting {
        key: "transport.dns_server",
        variable: "REDRIVE_TRANSPORT_DNS_SERVER",
        flag: "dns-server",
        value_name: "IP[:PORT]",
        meaning: "DNS servers for the names of targets, instead of those in /etc/resolv.conf, whose search list is not used \
            then; the default port is 53; /etc/hosts always comes first (in the variable: separated by ',')",
        repeats: true,
        read: |config, given| given.addresses(DNS_PORT).map(|servers| config.transport.dns_servers = servers),
        show: |config| {
            Value::Array(config.transport.dns_servers.iter().map(|address| text(&address.to_string())).collect())
        },
    },
    Setting {
        key: "transport.max_idle_per_origin",
        variable: "REDRIVE_TRANSPORT_MAX_IDLE_PER_ORIGIN",
        flag: "max-idle-per-origin",
        value_name: "N",
        meaning: "the maximum number of idle connections that are kept per tenant and origin (scheme, host and port)",
        repeats: false,
        read: |config, given| given.count(0..=100_000).map(|count| config.transport.max_idle_per_origin = count),
        show: |config| count(config.transport.max_idle_per_origin),
    },
    Setting {
        key: "limits.max_body_bytes",
        variable: "REDRIVE_LIMITS_MAX_BODY_BYTES",
        flag: "max-body-bytes",
        value_name: "BYTES",
        meaning: "the largest body of a submission; larger bodies must be uploaded first",
        repeats: false,
        read: |config, given| given.count(1_024..=1_073_741_824).map(|bytes| config.limits.body_bytes = bytes),
        show: |config| count(config.limits.body_bytes),
    },
    Setting {
        key: "limits.max_stored_body_bytes",
        variable: "REDRIVE_LIMITS_MAX_STORED_BODY_BYTES",
        flag: "max-stored-body-bytes",
        value_name: "BYTES",
        meaning: "the largest body of an upload",
        repeats: false,
        read: |config, given| {
            given.count(1_024..=1_073_741_824).map(|bytes| config.limits.stored_body_bytes = bytes as u64)
        },
        show: |config| bytes(config.limits.stored_body_bytes),
    },
    Setting {
        key: "limits.inline_body_bytes",
        variable: "REDRIVE_LIMITS_INLINE_BODY_BYTES",
        flag: "inline-body-bytes",
        value_name: "BYTES",
        meaning: "the largest request body and answer that are stored in the task; larger ones are stored as blobs",
        repeats: false,
        read: |config, given| given.count(1_024..=16_777_216).map(|bytes| limit_inline(config, bytes)),
        show: |config| count(config.limits.inline_body_bytes),
    },
    Setting {
        key: "limits.kept_answer_bytes",
        variable: "REDRIVE_LIMITS_KEPT_ANSWER_BYTES",
        flag: "kept-answer-bytes",
        value_name: "BYTES",
        meaning: "how much of an answer's body is kept",
        repeats: false,
        read: |config, given| {
            given.count(0..=67_108_864).map(|bytes| config.transport.kept_answer_bytes = bytes as u64)
        },
        show: |config| bytes(config.transport.kept_answer_bytes),
    },
    Setting {
        key: "api.max_memory_bytes",
        variable: "REDRIVE_API_MAX_MEMORY_BYTES",
        flag: "max-api-memory",
        value_name: "BYTES",
        meaning: "the maximum memory for requests and answers of the API; requests that do not fit are answered 503. A quarter is \
            reserved for those of at most 64 KiB; a connection holds at most an eighth, which also limits a request",
        repeats: false,
        read: |config, given| {
            given.count(67_108_864..=1_099_511_627_776).map(|bytes| config.api.max_memory_bytes = bytes)
        },
        show: |config| count(config.api.max_memory_bytes),
    },
    Setting {
        key: "api.max_connections",
        variable: "REDRIVE_API_MAX_CONNECTIONS",
        flag: "max-api-connections",
        value_name: "N",
        meaning: "the maximum number of connections to the API; when it is reached, the longest idle one is closed",
        repeats: false,
        read: |config, given| given.count(1..=1_000_000).map(|count| config.api.max_connections = count),
        show: |config| count(config.api.max_connections),
    },
    Setting {
        key: "api.write_timeout",
        variable: "REDRIVE_API_WRITE_TIMEOUT",
        flag: "api-write-timeout",
        value_name: "DURATION",
        meaning: "how long a client may read nothing of its answer before its connection is closed",
        repeats: false,
        read: |config, given| given.duration(SECOND..=HOUR).map(|timeout| config.api.write_timeout = timeout),
        show: |config| duration(config.api.write_timeout),
    },
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

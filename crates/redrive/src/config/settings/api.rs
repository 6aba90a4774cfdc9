//! The settings of the HTTP server.

use super::{HOUR, SECOND, Setting};
use crate::config::value::{count, duration};

pub(super) const MAX_MEMORY_BYTES: Setting = Setting {
    key: "api.max_memory_bytes",
    variable: "REDRIVE_API_MAX_MEMORY_BYTES",
    flag: "max-api-memory",
    value_name: "BYTES",
    meaning: "the maximum memory for requests and answers of the API; requests that do not fit are answered 503. A quarter is \
        reserved for those of at most 64 KiB; a connection holds at most an eighth, which also limits a request",
    repeats: false,
    read: |config, given| given.count(67_108_864..=1_099_511_627_776).map(|bytes| config.api.max_memory_bytes = bytes),
    show: |config| count(config.api.max_memory_bytes),
};

pub(super) const MAX_CONNECTIONS: Setting = Setting {
    key: "api.max_connections",
    variable: "REDRIVE_API_MAX_CONNECTIONS",
    flag: "max-api-connections",
    value_name: "N",
    meaning: "the maximum number of connections to the API; when it is reached, the longest idle one is closed",
    repeats: false,
    read: |config, given| given.count(1..=1_000_000).map(|count| config.api.max_connections = count),
    show: |config| count(config.api.max_connections),
};

pub(super) const WRITE_TIMEOUT: Setting = Setting {
    key: "api.write_timeout",
    variable: "REDRIVE_API_WRITE_TIMEOUT",
    flag: "api-write-timeout",
    value_name: "DURATION",
    meaning: "how long a client may read nothing of its answer before its connection is closed",
    repeats: false,
    read: |config, given| given.duration(SECOND..=HOUR).map(|timeout| config.api.write_timeout = timeout),
    show: |config| duration(config.api.write_timeout),
};

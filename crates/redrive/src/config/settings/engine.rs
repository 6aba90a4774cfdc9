//! The settings of the engine.

use std::time::Duration;

use redrive_engine::Options;

use super::{HOUR, MINUTE, Setting, YEARS};
use crate::config::value::{count, duration};

pub(super) const LANE_CONCURRENCY: Setting = Setting {
    key: "engine.lane_concurrency",
    variable: "REDRIVE_ENGINE_LANE_CONCURRENCY",
    flag: "lane-concurrency",
    value_name: "N",
    meaning: "the maximum number of concurrent attempts to one dependency, per node: N nodes make N times as many",
    repeats: false,
    read: |config, given| given.count(1..=100_000).map(|count| config.engine.lane_concurrency = count),
    show: |config| count(config.engine.lane_concurrency),
};

pub(super) const MAX_IN_FLIGHT: Setting = Setting {
    key: "engine.max_in_flight",
    variable: "REDRIVE_ENGINE_MAX_IN_FLIGHT",
    flag: "max-in-flight",
    value_name: "N",
    meaning: "the maximum number of concurrent attempts in total, per node; at least engine.lane_concurrency",
    repeats: false,
    read: |config, given| given.count(1..=1_000_000).map(|count| config.engine.max_in_flight = count),
    show: |config| count(config.engine.max_in_flight),
};

pub(super) const MAX_BODY_BYTES: Setting = Setting {
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
};

pub(super) const LEASE_MARGIN: Setting = Setting {
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
};

pub(super) const SHUTDOWN_GRACE: Setting = Setting {
    key: "engine.shutdown_grace",
    variable: "REDRIVE_ENGINE_SHUTDOWN_GRACE",
    flag: "shutdown-grace",
    value_name: "DURATION",
    meaning: "how long attempts in progress may take to finish when the service stops",
    repeats: false,
    read: |config, given| given.duration(Duration::ZERO..=HOUR).map(|grace| config.engine.shutdown_grace = grace),
    show: |config| duration(config.engine.shutdown_grace),
};

pub(super) const RETENTION: Setting = Setting {
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
};

pub(super) const BLOB_GRACE: Setting = Setting {
    key: "engine.blob_grace",
    variable: "REDRIVE_ENGINE_BLOB_GRACE",
    flag: "blob-grace",
    value_name: "DURATION",
    meaning: "how long an uploaded body that no task refers to is kept; checked every 10 minutes",
    repeats: false,
    read: |config, given| given.duration(MINUTE..=YEARS).map(|grace| config.engine.blob_grace = grace),
    show: |config| duration(config.engine.blob_grace),
};

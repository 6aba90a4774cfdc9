//! The settings of the guards.

use redrive_core::guards::budget::Drain;

use super::{DAY, HOUR, ON_OR_OFF, SECOND, Setting};
use crate::config::value::{duration, name_of, number, text};

const DRAINS: [(&str, Drain); 2] = [("earned", Drain::Earned), ("strict", Drain::Strict)];
/// Whether the limit adapts.
const CONCURRENCIES: [(&str, bool); 2] = [("adaptive", true), ("fixed", false)];

pub(super) const BUDGET: Setting = Setting {
    key: "guards.budget",
    variable: "REDRIVE_GUARDS_BUDGET",
    flag: "budget",
    value_name: "on|off",
    meaning: "whether retries are limited by a retry budget, per dependency, over all nodes",
    repeats: false,
    read: |config, given| given.one_of(&ON_OR_OFF).map(|has| config.guards.has_budget = has),
    show: |config| text(name_of(&ON_OR_OFF, config.guards.has_budget)),
};

pub(super) const BUDGET_FLOOR: Setting = Setting {
    key: "guards.budget_floor",
    variable: "REDRIVE_GUARDS_BUDGET_FLOOR",
    flag: "budget-floor",
    value_name: "N",
    meaning: "how many retries in 30 s the budget allows at any traffic",
    repeats: false,
    read: |config, given| given.number(0..=1_000_000).map(|floor| config.guards.budget.floor = floor),
    show: |config| number(config.guards.budget.floor),
};

pub(super) const BUDGET_PERCENT: Setting = Setting {
    key: "guards.budget_percent",
    variable: "REDRIVE_GUARDS_BUDGET_PERCENT",
    flag: "budget-percent",
    value_name: "N",
    meaning: "how many more retries the budget allows, in percent of the first attempts of 30 s",
    repeats: false,
    read: |config, given| given.number(0..=100).map(|percent| config.guards.budget.percent = percent),
    show: |config| number(config.guards.budget.percent),
};

pub(super) const BUDGET_DRAIN: Setting = Setting {
    key: "guards.budget_drain",
    variable: "REDRIVE_GUARDS_BUDGET_DRAIN",
    flag: "budget-drain",
    value_name: "earned|strict",
    meaning: "how a backlog of retries drains: earned (retries that succeed at a healthy dependency are refunded) or strict \
        (no retry is refunded)",
    repeats: false,
    read: |config, given| given.one_of(&DRAINS).map(|drain| config.guards.budget.drain = drain),
    show: |config| text(config.guards.budget.drain.as_str()),
};

pub(super) const BREAKER: Setting = Setting {
    key: "guards.breaker",
    variable: "REDRIVE_GUARDS_BREAKER",
    flag: "breaker",
    value_name: "on|off",
    meaning: "whether a circuit breaker stops calls to a dependency that keeps failing",
    repeats: false,
    read: |config, given| given.one_of(&ON_OR_OFF).map(|has| config.guards.has_breaker = has),
    show: |config| text(name_of(&ON_OR_OFF, config.guards.has_breaker)),
};

pub(super) const BREAKER_FAILURES: Setting = Setting {
    key: "guards.breaker_failures",
    variable: "REDRIVE_GUARDS_BREAKER_FAILURES",
    flag: "breaker-failures",
    value_name: "N",
    meaning: "how many failures in a row open the circuit breaker",
    repeats: false,
    read: |config, given| given.number(1..=10_000).map(|failures| config.guards.breaker.failures_in_a_row = failures),
    show: |config| number(config.guards.breaker.failures_in_a_row),
};

pub(super) const BREAKER_FAILURE_PERCENT: Setting = Setting {
    key: "guards.breaker_failure_percent",
    variable: "REDRIVE_GUARDS_BREAKER_FAILURE_PERCENT",
    flag: "breaker-failure-percent",
    value_name: "N",
    meaning: "what percentage of failures among at least 20 calls in 30 s opens the circuit breaker",
    repeats: false,
    read: |config, given| given.number(1..=100).map(|percent| config.guards.breaker.failure_percent = percent),
    show: |config| number(config.guards.breaker.failure_percent),
};

pub(super) const BREAKER_OPEN: Setting = Setting {
    key: "guards.breaker_open",
    variable: "REDRIVE_GUARDS_BREAKER_OPEN",
    flag: "breaker-open",
    value_name: "DURATION",
    meaning: "how long the circuit breaker is open the first time, give or take 20 %; twice as long each further time",
    repeats: false,
    read: |config, given| given.duration(SECOND..=HOUR).map(|open| config.guards.breaker.open = open),
    show: |config| duration(config.guards.breaker.open),
};

pub(super) const BREAKER_LONGEST_OPEN: Setting = Setting {
    key: "guards.breaker_longest_open",
    variable: "REDRIVE_GUARDS_BREAKER_LONGEST_OPEN",
    flag: "breaker-longest-open",
    value_name: "DURATION",
    meaning: "the longest time that the circuit breaker is open, give or take 20 %, unless a Retry-After asks for more",
    repeats: false,
    read: |config, given| given.duration(SECOND..=DAY).map(|open| config.guards.breaker.longest_open = open),
    show: |config| duration(config.guards.breaker.longest_open),
};

pub(super) const BREAKER_PROBES: Setting = Setting {
    key: "guards.breaker_probes",
    variable: "REDRIVE_GUARDS_BREAKER_PROBES",
    flag: "breaker-probes",
    value_name: "N",
    meaning: "how many calls test the dependency when the circuit breaker has been open; all must succeed to close it",
    repeats: false,
    read: |config, given| given.number(1..=100).map(|probes| config.guards.breaker.probes = probes),
    show: |config| number(config.guards.breaker.probes),
};

pub(super) const CONCURRENCY: Setting = Setting {
    key: "guards.concurrency",
    variable: "REDRIVE_GUARDS_CONCURRENCY",
    flag: "concurrency",
    value_name: "adaptive|fixed",
    meaning: "the limit of concurrent attempts to one dependency: adaptive (follows the dependency's latency, up to \
        engine.lane_concurrency) or fixed (engine.lane_concurrency)",
    repeats: false,
    read: |config, given| given.one_of(&CONCURRENCIES).map(|adapts| config.guards.concurrency.is_adaptive = adapts),
    show: |config| text(name_of(&CONCURRENCIES, config.guards.concurrency.is_adaptive)),
};

pub(super) const CONCURRENCY_START: Setting = Setting {
    key: "guards.concurrency_start",
    variable: "REDRIVE_GUARDS_CONCURRENCY_START",
    flag: "concurrency-start",
    value_name: "N",
    meaning: "the adaptive limit before anything is known of a dependency",
    repeats: false,
    read: |config, given| given.number(1..=100_000).map(|start| config.guards.concurrency.start = start),
    show: |config| number(config.guards.concurrency.start),
};

pub(super) const CONCURRENCY_MIN: Setting = Setting {
    key: "guards.concurrency_min",
    variable: "REDRIVE_GUARDS_CONCURRENCY_MIN",
    flag: "concurrency-min",
    value_name: "N",
    meaning: "the adaptive limit is never lower",
    repeats: false,
    read: |config, given| given.number(1..=100_000).map(|least| config.guards.concurrency.least = least),
    show: |config| number(config.guards.concurrency.least),
};

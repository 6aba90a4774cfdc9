//! The settings of connections to targets.

use toml::Value;

use super::Setting;
use crate::config::value::{count, path, text};

/// Where DNS servers listen.
const DNS_PORT: u16 = 53;

pub(super) const EXTRA_CA: Setting = Setting {
    key: "transport.extra_ca",
    variable: "REDRIVE_TRANSPORT_EXTRA_CA",
    flag: "extra-ca",
    value_name: "FILE",
    meaning: "PEM files of certificate authorities to trust besides the system's, for targets, PostgreSQL, Redis and \
        object storage (in the variable: separated by ':')",
    repeats: true,
    read: |config, given| given.paths().map(|paths| config.transport.extra_ca = paths),
    show: |config| Value::Array(config.transport.extra_ca.iter().map(|file| path(file)).collect()),
};

pub(super) const DNS_SERVER: Setting = Setting {
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
};

pub(super) const MAX_IDLE_PER_ORIGIN: Setting = Setting {
    key: "transport.max_idle_per_origin",
    variable: "REDRIVE_TRANSPORT_MAX_IDLE_PER_ORIGIN",
    flag: "max-idle-per-origin",
    value_name: "N",
    meaning: "the maximum number of idle connections that are kept per tenant and origin (scheme, host and port)",
    repeats: false,
    read: |config, given| given.count(0..=100_000).map(|count| config.transport.max_idle_per_origin = count),
    show: |config| count(config.transport.max_idle_per_origin),
};

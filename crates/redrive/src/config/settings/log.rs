//! The settings of the log.

use redrive_engine::SuccessLevel;

use super::Setting;
use crate::config::LogFormat;
use crate::config::value::{name_of, read_log_level, text};

const SUCCESS_LEVELS: [(&str, SuccessLevel); 2] = [("info", SuccessLevel::Info), ("debug", SuccessLevel::Debug)];
/// Whether keys are hashed.
const LOGGED_KEYS: [(&str, bool); 2] = [("plain", false), ("hashed", true)];
const LOG_FORMATS: [(&str, LogFormat); 2] = [("text", LogFormat::Text), ("json", LogFormat::Json)];

pub(super) const LEVEL: Setting = Setting {
    key: "log.level",
    variable: "REDRIVE_LOG_LEVEL",
    flag: "log-level",
    value_name: "LEVEL",
    meaning: "the log level: error, warn, info, debug, trace, also per module (info,redrive_engine=debug)",
    repeats: false,
    read: |config, given| read_log_level(given).map(|level| config.log_level = level),
    show: |config| text(&config.log_level),
};

pub(super) const FORMAT: Setting = Setting {
    key: "log.format",
    variable: "REDRIVE_LOG_FORMAT",
    flag: "log-format",
    value_name: "text|json",
    meaning: "the log format: text for people, json for programs",
    repeats: false,
    read: |config, given| given.one_of(&LOG_FORMATS).map(|format| config.log_format = format),
    show: |config| text(name_of(&LOG_FORMATS, config.log_format)),
};

pub(super) const SUCCESSES: Setting = Setting {
    key: "log.successes",
    variable: "REDRIVE_LOG_SUCCESSES",
    flag: "log-successes",
    value_name: "info|debug",
    meaning: "the level of attempts that succeed; attempts that fail are logged at info",
    repeats: false,
    read: |config, given| given.one_of(&SUCCESS_LEVELS).map(|level| config.engine.log.successes = level),
    show: |config| text(name_of(&SUCCESS_LEVELS, config.engine.log.successes)),
};

pub(super) const KEYS: Setting = Setting {
    key: "log.keys",
    variable: "REDRIVE_LOG_KEYS",
    flag: "log-keys",
    value_name: "plain|hashed",
    meaning: "how idempotency keys are logged: as they are, or as the beginning of their SHA-256",
    repeats: false,
    read: |config, given| given.one_of(&LOGGED_KEYS).map(|is_hashed| config.engine.log.hashes_keys = is_hashed),
    show: |config| text(name_of(&LOGGED_KEYS, config.engine.log.hashes_keys)),
};

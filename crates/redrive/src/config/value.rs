//! How the value of a setting is read and shown.

use std::path::Path;
use std::time::Duration;

use redrive_server::rest::{HostName, InvalidHostName};
use redrive_store::NodeId;
use toml::Value;
use tracing_subscriber::EnvFilter;

use super::address::{POSTGRES, is_postgres};
use super::given::{Expected, Given};
use super::{Address, Config, StoreKind, duration_text};

pub(super) fn read_store(given: &Given) -> Result<StoreKind, Expected> {
    match given.text()? {
        "sqlite" => Ok(StoreKind::Sqlite),
        "memory" => Ok(StoreKind::Memory),
        url if is_postgres(url) => read_postgres(url).map(StoreKind::Postgres),
        _ => Err(format!("must be sqlite, memory or {POSTGRES}")),
    }
}

pub(super) fn show_store(store: &StoreKind) -> Value {
    match store {
        StoreKind::Sqlite => text("sqlite"),
        StoreKind::Memory => text("memory"),
        StoreKind::Postgres(address) => text(&address.to_string()),
    }
}

pub(super) fn read_listen_url(given: &Given) -> Result<Option<Address>, Expected> {
    match given.text()? {
        "same" => Ok(None),
        url if is_postgres(url) => read_postgres(url).map(Some),
        _ => Err(format!("must be {POSTGRES}, or same")),
    }
}

pub(super) fn read_postgres(url: &str) -> Result<Address, Expected> {
    let address = Address::new(url);
    address.check_postgres().map(|()| address)
}

pub(super) fn read_schedule(given: &Given) -> Result<Option<redrive_schedule_redis::Address>, Expected> {
    match given.text()? {
        "store" => Ok(None),
        url => url.parse().map(Some).map_err(|invalid: redrive_schedule_redis::InvalidAddress| invalid.to_string()),
    }
}

pub(super) fn read_node(given: &Given) -> Result<Option<NodeId>, Expected> {
    match given.text()? {
        "auto" => Ok(None),
        name => NodeId::try_new(name).map(Some).map_err(|invalid| format!("{invalid}, or auto")),
    }
}

pub(super) fn read_host_name(word: &str) -> Result<HostName, Expected> {
    word.parse().map_err(|invalid: InvalidHostName| invalid.to_string())
}

pub(super) fn read_secret_name(word: &str) -> Result<String, Expected> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    match !word.is_empty() && word.bytes().all(is_name) {
        true => Ok(word.to_owned()),
        false => Err("must be names, or parts of names, of letters, digits, '-', '_' and '.'".into()),
    }
}

pub(super) fn read_threads(given: &Given) -> Result<Option<usize>, Expected> {
    match given.text() {
        Ok("auto") => Ok(None),
        _ => given.count(1..=1_024).map(Some).map_err(|wanted| format!("{wanted}, or auto")),
    }
}

pub(super) fn read_blobs(given: &Given) -> Result<Option<String>, Expected> {
    match given.text()? {
        "auto" => Ok(None),
        url => match redrive_blobs::Location::parse(url) {
            Ok(_) => Ok(Some(url.to_owned())),
            Err(invalid) => Err(invalid.to_string()),
        },
    }
}

pub(super) fn limit_inline(config: &mut Config, bytes: usize) {
    config.limits.inline_body_bytes = bytes;
    config.transport.inline_answer_bytes = bytes;
}

pub(super) fn read_log_level(given: &Given) -> Result<String, Expected> {
    let level = given.text()?.trim();
    let wanted = "must be error, warn, info, debug, trace or off, also per module as in info,redrive_engine=debug";
    // A single word that is no level would be taken for the name of a module, and nothing would be logged.
    let words = level.split(',').map(|part| part.rsplit('=').next().unwrap_or(part).trim().to_ascii_lowercase());
    let are_levels =
        words.into_iter().all(|word| ["error", "warn", "info", "debug", "trace", "off"].contains(&word.as_str()));
    match EnvFilter::try_new(level) {
        Ok(_) if are_levels => Ok(level.to_owned()),
        _ => Err(wanted.into()),
    }
}

pub(super) fn name_of<T: PartialEq>(choices: &[(&'static str, T)], chosen: T) -> &'static str {
    choices.iter().find(|(_, choice)| *choice == chosen).map_or("", |(name, _)| name)
}

pub(super) fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

pub(super) fn path(path: &Path) -> Value {
    Value::String(path.display().to_string())
}

pub(super) fn count(count: usize) -> Value {
    Value::Integer(i64::try_from(count).unwrap_or(i64::MAX))
}

pub(super) fn number(number: u32) -> Value {
    Value::Integer(number.into())
}

pub(super) fn bytes(bytes: u64) -> Value {
    Value::Integer(i64::try_from(bytes).unwrap_or(i64::MAX))
}

pub(super) fn duration(duration: Duration) -> Value {
    Value::String(duration_text(duration))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_no_level_is_not_a_filter() {
        for right in ["info", "off", "warn,redrive_engine=debug", "ERROR"] {
            assert!(read_log_level(&Given::Plain(right.into())).is_ok(), "{right}");
        }
        for wrong in ["", "verbose", "info,loud", "redrive_engine=loud", "info,"] {
            assert!(read_log_level(&Given::Plain(wrong.into())).is_err(), "{wrong:?}");
        }
    }
}

//! Where events go: standard error, as text or as JSON.
//!
//! What a caller or a target sends may come to stand in an event. Characters in it that end a line, steer a terminal or
//! turn the direction of writing could make a log say what never happened, so they are escaped at every level.

mod hidden;
mod json;
mod text;

use std::io::{self, IsTerminal};
use std::panic;

use anyhow::{Context, anyhow};
use tracing_subscriber::{EnvFilter, fmt};

use crate::config::LogFormat;
use crate::output::{NOTICES, log_notices};
use json::EscapingWriter;
use text::EscapedFields;

/// Has panics logged like everything else that goes wrong.
pub(crate) fn log_panics() {
    panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let location = panic.location().map(ToString::to_string);
        let payload = panic.payload();
        let text = payload.downcast_ref::<String>().map(String::as_str).or(payload.downcast_ref::<&str>().copied());
        let message = text.unwrap_or("no message");
        tracing::error!(thread = thread.name(), location, panic = message, "panicked");
    }));
}

/// Starts writing the events that the filter `level` lets through. With JSON every line of standard error is an event,
/// notices to the operator too, whatever the level is.
pub(crate) fn start(level: &str, format: LogFormat) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(level).context("cannot use log.level")?;
    let coloured = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let started = match format {
        LogFormat::Text => {
            let builder = fmt().with_env_filter(filter).with_writer(io::stderr);
            builder.with_ansi(coloured).fmt_fields(EscapedFields).try_init()
        }
        LogFormat::Json => {
            let filter = filter.add_directive(format!("{NOTICES}=info").parse().context("cannot log notices")?);
            let builder = fmt().with_env_filter(filter).with_writer(|| EscapingWriter(io::stderr()));
            log_notices();
            builder.json().flatten_event(true).try_init()
        }
    };
    started.map_err(|error| anyhow!("cannot start logging: {error}"))
}

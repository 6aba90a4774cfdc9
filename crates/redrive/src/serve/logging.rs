//! Where events go: standard error, as text or as JSON.

use std::io::{self, IsTerminal};

use anyhow::{Context, anyhow};
use tracing_subscriber::{EnvFilter, fmt};

use crate::config::LogFormat;

/// Starts writing the events that the filter `level` lets through.
pub(crate) fn start(level: &str, format: LogFormat) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(level).context("cannot use log.level")?;
    let coloured = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let builder = fmt().with_env_filter(filter).with_writer(io::stderr);
    let started = match format {
        LogFormat::Text => builder.with_ansi(coloured).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| anyhow!("cannot start logging: {error}"))
}

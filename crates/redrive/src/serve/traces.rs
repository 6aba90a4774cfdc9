//! The export of spans.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use redrive_dial::{Dialer, Options};
use redrive_traces::Traces;
use tokio::task::JoinHandle;

use crate::config::Config;

/// How long the last spans may take when the service stops.
const FLUSH_WITHIN: Duration = Duration::from_secs(2);

/// The running export.
pub(super) struct Export {
    pub(super) traces: Arc<Traces>,
    exporting: JoinHandle<()>,
}

impl Export {
    /// Starts it, if traces are configured.
    pub(super) fn start(config: &Config) -> anyhow::Result<Option<Self>> {
        let Some(mut settings) = config.traces.clone() else { return Ok(None) };
        let instance = config.node.as_ref().map(ToString::to_string);
        for (name, value) in
            [("service.version", Some(env!("CARGO_PKG_VERSION").to_owned())), ("service.instance.id", instance)]
        {
            let is_given = settings.resource.iter().any(|(given, _)| given == name);
            settings.resource.extend(value.filter(|_| !is_given).map(|value| (name.to_owned(), value)));
        }
        // Connections to the receiver are opened as those to dependencies are.
        let options = Options {
            dns_servers: config.transport.dns_servers.clone(),
            roots: config.transport.roots,
            extra_ca: config.transport.extra_ca.clone(),
            alpn: Vec::new(),
        };
        let dialer = Dialer::new(&options).context("cannot set up connections to the receiver of traces")?;
        let (traces, exporting) = Traces::start(settings, config.engine.traces.sampler, dialer)
            .context("cannot use the receiver of traces")?;
        Ok(Some(Export { traces, exporting }))
    }

    /// Sends the last spans, as far as the receiver takes them at once.
    pub(super) async fn stop(self) {
        self.traces.stop(self.exporting, FLUSH_WITHIN).await;
    }
}

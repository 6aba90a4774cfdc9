//! The server's notifier in a simulated process: its settings, and the context that it works in.
//!
//! Sinks are webhooks. What arrives there is read by the model (`model/alerts`), as the task in the store and as a request.

use std::sync::Arc;

use redrive_core::Request;
use redrive_core::alerts::{Rule, Rules, Severity, Signal, Timing};
use redrive_engine::events::Sink;
use redrive_engine::{AlertRelay, Handle};
use redrive_server::alerts::{self, Alerts, SinkKind, SinkName, SinkSettings, Target};
use redrive_server::{App, HealthWindows};

use super::World;
use crate::executor::Group;
use crate::model::Whose;
use crate::plan::Alerting;

/// What a process alerts of, and to whom.
pub(super) struct Notifier {
    alerts: Arc<Alerts>,
    health: Arc<HealthWindows>,
}

impl Notifier {
    /// The notifier of a process in this world, if there are sinks.
    pub(super) fn of(world: &World) -> Option<Self> {
        let alerting = world.shape.alerting.as_ref()?;
        Some(Notifier { alerts: Alerts::new(settings(alerting)), health: Arc::default() })
    }

    /// What hears of the engine's events.
    pub(super) fn sinks(&self) -> Vec<Arc<dyn Sink>> {
        vec![self.health.clone(), self.alerts.clone()]
    }

    pub(super) fn relay(&self) -> Arc<dyn AlertRelay> {
        self.alerts.clone()
    }

    /// Starts its loop, which lives and dies with the process. Returns the context of the process's operations.
    pub(super) fn start(self, world: &World, whose: Whose, group: Group, engine: Handle) -> App {
        let app = App {
            thresholds: self.alerts.settings().thresholds(),
            health: self.health,
            alerts: self.alerts,
            node: whose.node.to_string(),
            ..App::new(engine)
        };
        world.executor.spawn(group, alerts::run(Arc::new(app.clone())));
        app
    }
}

fn settings(alerting: &Alerting) -> alerts::Settings {
    let mut rules = Rules::default();
    if !alerting.has_all_rules {
        for signal in Signal::ALL.into_iter().filter(|signal| *signal != Signal::DeadLetter) {
            rules.set(Rule { is_enabled: false, ..*rules.of(signal) });
        }
    }
    alerts::Settings {
        rules,
        sinks: (0..alerting.sinks).filter_map(sink).collect(),
        timing: Timing { wait: alerting.wait, interval: alerting.interval, ..Timing::default() },
    }
}

fn sink(number: usize) -> Option<SinkSettings> {
    let name = Alerting::sink_name(number);
    Some(SinkSettings {
        name: SinkName::try_new(&name)?,
        kind: SinkKind::Webhook,
        target: Target { url: format!("http://{name}.test/alerts"), authorization: None },
        signals: Vec::new(),
        least_severity: Severity::Info,
    })
}

/// The number of the sink that a request goes to.
pub(super) fn sink_of(request: &Request) -> Option<usize> {
    request.target_url.strip_prefix("http://sink-")?.split('.').next()?.parse().ok()
}

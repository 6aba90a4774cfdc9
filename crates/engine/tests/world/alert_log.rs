//! The alerts in the log, as whoever watches it sees them.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span;
use tracing::subscriber::{DefaultGuard, set_default};
use tracing::{Event, Metadata, Subscriber};

/// One event with its fields, as text.
pub type Alert = BTreeMap<&'static str, String>;

/// Every event with the field `alert`, from now on and on this thread, until it is dropped.
pub struct AlertLog {
    alerts: Arc<Mutex<Vec<Alert>>>,
    _guard: DefaultGuard,
}

impl AlertLog {
    pub fn watch() -> Self {
        let alerts = Arc::<Mutex<Vec<Alert>>>::default();
        AlertLog { _guard: set_default(Watcher(alerts.clone())), alerts }
    }

    pub fn alerts(&self) -> Vec<Alert> {
        self.alerts.lock().unwrap().clone()
    }

    pub fn count(&self) -> usize {
        self.alerts.lock().unwrap().len()
    }
}

struct Watcher(Arc<Mutex<Vec<Alert>>>);

impl Subscriber for Watcher {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        if fields.0.contains_key("alert") {
            self.0.lock().unwrap().push(fields.0);
        }
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[derive(Default)]
struct Fields(Alert);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

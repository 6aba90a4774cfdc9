//! Captures the log for tests.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span;
use tracing::subscriber::{DefaultGuard, set_default};
use tracing::{Event, Level, Metadata, Subscriber};

/// The fields of one event, as text.
pub type Fields = BTreeMap<&'static str, String>;

/// Captures every event on this thread until it is dropped.
pub struct Log {
    events: Arc<Mutex<Vec<(Level, Fields)>>>,
    _guard: DefaultGuard,
}

impl Log {
    pub fn watch() -> Self {
        let events = Arc::<Mutex<Vec<_>>>::default();
        Log { _guard: set_default(Watcher(events.clone())), events }
    }

    /// The lines that an operator sees: those of level info and above.
    pub fn lines(&self) -> Vec<String> {
        let line = |(level, fields): &(Level, Fields)| {
            let fields: String = fields.iter().map(|(name, value)| format!(" {name}={value}")).collect();
            format!("{level}{fields}")
        };
        self.events.lock().unwrap().iter().filter(|(level, _)| *level <= Level::INFO).map(line).collect()
    }

    /// The events with the field `alert`.
    pub fn alerts(&self) -> Vec<Fields> {
        let events = self.events.lock().unwrap();
        events.iter().filter(|(_, fields)| fields.contains_key("alert")).map(|(_, fields)| fields.clone()).collect()
    }
}

struct Watcher(Arc<Mutex<Vec<(Level, Fields)>>>);

impl Subscriber for Watcher {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
    }

    fn event(&self, event: &Event<'_>) {
        let mut reader = Reader::default();
        event.record(&mut reader);
        self.0.lock().unwrap().push((*event.metadata().level(), reader.0));
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
struct Reader(Fields);

impl Visit for Reader {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

//! Captures the alerts in the log, as a monitor of the log would.

use std::fmt;
use std::sync::Arc;

use redrive_core::TaskId;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use super::World;

/// Runs `life` while this world captures the alerts.
pub(super) fn heard_by<R>(world: &Arc<World>, life: impl FnOnce() -> R) -> R {
    tracing::subscriber::with_default(Ear(world.clone()), life)
}

struct Ear(Arc<World>);

impl Subscriber for Ear {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::ERROR
    }

    fn max_level_hint(&self) -> Option<tracing::level_filters::LevelFilter> {
        Some(tracing::level_filters::LevelFilter::ERROR)
    }

    fn event(&self, event: &Event<'_>) {
        let mut alert = Alert::default();
        event.record(&mut alert);
        if alert.is_one
            && let Some(task) = alert.task
        {
            self.0.observer().alert(self.0.now(), task, alert.run);
        }
    }

    // Spans contain no alerts.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// The fields of an alert.
#[derive(Default)]
struct Alert {
    is_one: bool,
    task: Option<TaskId>,
    run: u32,
}

impl Visit for Alert {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "alert" {
            self.is_one = value == "dead-letter";
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "run" {
            self.run = u32::try_from(value).unwrap_or(u32::MAX);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "task_id" {
            self.task = format!("{value:?}").parse().ok();
        }
    }
}

//! Which events a reader wants.

use redrive_core::{Dependency, TaskId};

use super::event::LiveEvent;
use super::kind::Kind;

/// Which events a reader wants. All conditions must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Only events of this dependency and of its tasks.
    pub dependency: Option<Dependency>,
    /// Only events of this task.
    pub task: Option<TaskId>,
    /// Only events of these kinds; of all kinds if there are none.
    pub kinds: Vec<Kind>,
}

impl EventFilter {
    /// Whether the reader wants this event.
    pub(super) fn matches(&self, event: &LiveEvent) -> bool {
        let is_of_dependency = self.dependency.is_none() || self.dependency == event.dependency;
        let is_of_task = self.task.is_none_or(|wanted| event.task.as_ref().is_some_and(|task| task.id == wanted));
        is_of_dependency && is_of_task && (self.kinds.is_empty() || self.kinds.contains(&event.kind()))
    }
}

//! The engine's loops. Each has a name; a stop waits until the last one has ended; one that fails is reported.

use std::future::Future;
use std::sync::Arc;

use redrive_store::Liveness;

use crate::events::{Event, Events};
use crate::spawner::Spawner;
use crate::watch::Watch;

/// The running loops.
#[derive(Debug, Clone)]
pub(crate) struct Loops {
    running: Arc<Watch<usize>>,
    liveness: Liveness,
    events: Events,
}

/// One running loop. Dropping it counts the loop as ended, however it ended.
struct Running(Arc<Watch<usize>>);

impl Loops {
    /// Starts with no loop. A loop that dies is recorded in `liveness`.
    pub(crate) fn new(liveness: &Liveness, events: &Events) -> Self {
        Loops { running: Arc::new(Watch::new(0)), liveness: liveness.clone(), events: events.clone() }
    }

    /// Starts a loop, which must not end before `may_end` returns true.
    pub(crate) fn start(
        &self,
        spawner: &dyn Spawner,
        name: &'static str,
        may_end: impl Fn() -> bool + Send + 'static,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        self.running.change(|running| *running += 1);
        let (running, alive) = (Running(self.running.clone()), self.liveness.part(name));
        let mut reporter = LoopEndReporter { name, events: self.events.clone(), has_ended: false };
        spawner.spawn(Box::pin(async move {
            work.await;
            let as_told = may_end();
            reporter.ended(as_told);
            alive.ended(as_told);
            drop(running);
        }));
    }

    /// Waits until no loop runs.
    pub(crate) async fn ended(&self) {
        self.running.until(|running| running == 0).await;
    }
}

/// Emits the event of a loop that panics or ends unexpectedly.
struct LoopEndReporter {
    name: &'static str,
    events: Events,
    has_ended: bool,
}

impl LoopEndReporter {
    fn ended(&mut self, as_told: bool) {
        self.has_ended = true;
        self.emit_if(!as_told);
    }

    fn emit_if(&self, has_failed: bool) {
        if has_failed {
            self.events.emit(Event::LoopFailed(self.name));
        }
    }
}

impl Drop for LoopEndReporter {
    fn drop(&mut self) {
        self.emit_if(!self.has_ended && std::thread::panicking());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.change(|running| *running -= 1);
    }
}

//! The engine's loops: each has a name, stopping waits until the last one has ended, and one that fails is reported.

use std::future::Future;
use std::sync::Arc;

use redrive_store::Vitals;

use crate::events::{Event, Events};
use crate::spawner::Spawner;
use crate::watched::Watched;

/// The loops that run.
#[derive(Debug, Clone)]
pub(crate) struct Loops {
    running: Arc<Watched<usize>>,
    vitals: Vitals,
    events: Events,
}

/// One loop; dropping it says that the loop is over, however it ended.
struct Running(Arc<Watched<usize>>);

impl Loops {
    /// No loop yet. One that dies is told in `vitals`.
    pub(crate) fn new(vitals: &Vitals, events: &Events) -> Self {
        Loops { running: Arc::new(Watched::new(0)), vitals: vitals.clone(), events: events.clone() }
    }

    /// Starts a loop, which must not end before `may_end` says so.
    pub(crate) fn start(
        &self,
        spawner: &dyn Spawner,
        name: &'static str,
        may_end: impl Fn() -> bool + Send + 'static,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        self.running.change(|running| *running += 1);
        let (running, alive) = (Running(self.running.clone()), self.vitals.part(name));
        let mut failure = Failure { name, events: self.events.clone(), has_ended: false };
        spawner.spawn(Box::pin(async move {
            work.await;
            let as_told = may_end();
            failure.ended(as_told);
            alive.ended(as_told);
            drop(running);
        }));
    }

    /// Ends once no loop runs.
    pub(crate) async fn ended(&self) {
        self.running.until(|running| running == 0).await;
    }
}

/// Emits the event of a loop that panics or ends unexpectedly.
struct Failure {
    name: &'static str,
    events: Events,
    has_ended: bool,
}

impl Failure {
    fn ended(&mut self, as_told: bool) {
        self.has_ended = true;
        if !as_told {
            self.events.emit(Event::LoopFailed(self.name));
        }
    }
}

impl Drop for Failure {
    fn drop(&mut self) {
        if !self.has_ended && std::thread::panicking() {
            self.events.emit(Event::LoopFailed(self.name));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.change(|running| *running -= 1);
    }
}

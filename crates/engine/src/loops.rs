//! The engine's loops: each has a name, stopping waits until the last one has ended, and none dies in silence.

use std::future::Future;
use std::sync::Arc;

use redrive_store::Vitals;

use crate::spawner::Spawner;
use crate::watched::Watched;

/// The loops that run.
#[derive(Debug, Clone)]
pub(crate) struct Loops {
    running: Arc<Watched<usize>>,
    vitals: Vitals,
}

/// One loop; dropping it says that the loop is over, however it ended.
struct Running(Arc<Watched<usize>>);

impl Loops {
    /// No loop yet. One that dies is told in `vitals`.
    pub(crate) fn new(vitals: &Vitals) -> Self {
        Loops { running: Arc::new(Watched::new(0)), vitals: vitals.clone() }
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
        let (place, alive) = (Running(self.running.clone()), self.vitals.part(name));
        spawner.spawn(Box::pin(async move {
            work.await;
            alive.ended(may_end());
            drop(place);
        }));
    }

    /// Ends once no loop runs.
    pub(crate) async fn ended(&self) {
        self.running.until(|running| running == 0).await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.change(|running| *running -= 1);
    }
}

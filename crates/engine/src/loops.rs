//! The engine's loops, counted: stopping waits until the last one has ended.

use std::future::Future;
use std::sync::Arc;

use crate::spawner::Spawner;
use crate::watched::Watched;

/// The loops that run.
#[derive(Debug, Clone)]
pub(crate) struct Loops {
    running: Arc<Watched<usize>>,
}

/// One loop; dropping it says that the loop is over, however it ended.
struct Running(Arc<Watched<usize>>);

impl Loops {
    pub(crate) fn new() -> Self {
        Loops { running: Arc::new(Watched::new(0)) }
    }

    /// Starts a loop.
    pub(crate) fn start(&self, spawner: &dyn Spawner, work: impl Future<Output = ()> + Send + 'static) {
        self.running.change(|running| *running += 1);
        let place = Running(self.running.clone());
        spawner.spawn(Box::pin(async move {
            work.await;
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

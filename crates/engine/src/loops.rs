//! The engine's loops, counted: stopping waits until the last one has ended.

use std::future::Future;

use tokio::sync::watch;

use crate::spawner::Spawner;

/// The loops that run.
#[derive(Debug)]
pub(crate) struct Loops {
    running: watch::Sender<usize>,
}

/// One loop; dropping it says that the loop is over, however it ended.
struct Running(watch::Sender<usize>);

impl Loops {
    pub(crate) fn new() -> Self {
        Loops { running: watch::Sender::new(0) }
    }

    /// Starts a loop.
    pub(crate) fn start(&self, spawner: &dyn Spawner, work: impl Future<Output = ()> + Send + 'static) {
        self.running.send_modify(|running| *running += 1);
        let place = Running(self.running.clone());
        spawner.spawn(Box::pin(async move {
            work.await;
            drop(place);
        }));
    }

    /// Ends once no loop runs.
    pub(crate) async fn ended(&self) {
        // An error would mean that the sender is gone, and `self` holds it.
        self.running.subscribe().wait_for(|running| *running == 0).await.ok();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.send_modify(|running| *running -= 1);
    }
}

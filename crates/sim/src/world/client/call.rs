//! One call of an operation on a node, as a client sees it: an answer, or none.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use redrive_server::{App, OperationError};
use redrive_store::Error;
use tokio::sync::oneshot;

use crate::model::Whose;
use crate::moment::Moment;
use crate::random::Random;
use crate::world::World;

/// The part of a client that makes calls.
pub(in crate::world) struct Caller {
    pub(super) world: Arc<World>,
    pub(super) random: Random,
    patience: Duration,
}

/// The result of a call for a client.
#[derive(Debug)]
pub(in crate::world) enum Answer<T> {
    /// The operation's result, and the process that returned it.
    Given(Result<T, OperationError>, Whose),
    /// The call could not be made: nothing has happened.
    NotAsked,
    /// No answer in time: the client does not know what happened.
    Unknown,
}

impl Caller {
    pub(super) fn with(world: &Arc<World>, random: Random, patience: Duration) -> Self {
        Caller { world: world.clone(), random, patience }
    }

    /// Calls an operation on a node of the client's choice.
    pub(in crate::world) async fn call<T, F>(&mut self, operation: impl FnOnce(App) -> F + Send + 'static) -> Answer<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, OperationError>> + Send + 'static,
    {
        let world = self.world.clone();
        world.observer().tally.calls += 1;
        let node = self.random.below(world.nodes.len());
        world.executor.sleep(self.way()).await;
        let Some((app, group, whose)) = world.nodes[node].front() else { return Answer::NotAsked };
        let (mut answer, answered) = oneshot::channel();
        let elsewhere = world.clone();
        // A server drops the work of a caller that hangs up, at any await; not every caller hangs up when it gives up.
        let hangs_up = self.random.chance(0.5);
        world.executor.spawn(group, async move {
            let result = tokio::select! {
                biased;
                result = operation(app) => result,
                () = answer.closed(), if hangs_up => return,
            };
            elsewhere.effect(whose).await;
            // A client that has given up receives nothing.
            answer.send(result).ok();
        });
        let way_back = self.way();
        let answered = async {
            let result = answered.await;
            world.executor.sleep(way_back).await;
            result
        };
        let result = tokio::select! {
            biased;
            result = answered => result.ok(),
            () = world.executor.sleep(self.patience) => None,
        };
        if let Some(Err(OperationError::Store(Error::Corrupt(what)))) = &result {
            world.observer().model.corrupt(what);
        }
        match result {
            // The store may have done it or not: the service does not know, and reports that.
            Some(Err(OperationError::Store(_) | OperationError::Stopping)) | None => {
                world.observer().tally.given_up += u64::from(result.is_none());
                Answer::Unknown
            }
            Some(result) => Answer::Given(result, whose),
        }
    }

    pub(super) fn now(&self) -> Moment {
        self.world.now()
    }

    fn way(&mut self) -> Duration {
        self.random.duration(Duration::from_micros(50), Duration::from_millis(20))
    }
}

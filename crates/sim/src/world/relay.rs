//! Tells people of dead letters a while after their events, as the server's notifier does. What was told is durable.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use redrive_core::TaskId;
use redrive_engine::events::{Event, Sink};
use redrive_engine::{AlertRelay, Relaying};
use tokio::sync::{Notify, watch};

use super::{World, lock, streams};
use crate::executor::Group;
use crate::model::Whose;
use crate::random::Random;

/// The longest time that dead letters wait for more of them.
const LONGEST_WAIT: Duration = Duration::from_secs(15);

/// What one process has heard of dead letters, and told.
pub(super) struct Relay {
    heard: Mutex<Heard>,
    changed: Notify,
    hurry: Notify,
    /// How many of the dead letters that were heard of have been told.
    told: watch::Sender<u64>,
}

#[derive(Default)]
struct Heard {
    count: u64,
    untold: Vec<(TaskId, u32)>,
}

impl Relay {
    /// Starts a relay whose loop lives and dies with a process.
    pub(super) fn start(world: &Arc<World>, whose: Whose, group: Group) -> Arc<Self> {
        let relay = Arc::new(Relay {
            heard: Mutex::default(),
            changed: Notify::new(),
            hurry: Notify::new(),
            told: watch::Sender::new(0),
        });
        let lives = streams::RELAYS + whose.node as u64 * 10_000 + u64::from(whose.life);
        let random = Random::stream(world.seed, lives);
        world.executor.spawn(group, tell(relay.clone(), world.clone(), whose, random));
        relay
    }
}

async fn tell(relay: Arc<Relay>, world: Arc<World>, whose: Whose, mut random: Random) {
    loop {
        relay.changed.notified().await;
        let wait = random.duration(Duration::from_millis(1), LONGEST_WAIT);
        tokio::select! {
            biased;
            () = relay.hurry.notified() => {}
            () = world.executor.sleep(wait) => {}
        }
        let Heard { count, untold } = {
            let mut heard = lock(&relay.heard);
            Heard { count: heard.count, untold: std::mem::take(&mut heard.untold) }
        };
        for (task, run) in untold {
            world.effect(whose).await;
            world.observer().relayed(world.now(), task, run);
        }
        world.effect(whose).await;
        relay.told.send_replace(count);
    }
}

impl Sink for Relay {
    fn on(&self, event: &Event<'_>) {
        if let Event::DeadLetter(task) = event {
            let mut heard = lock(&self.heard);
            heard.count += 1;
            heard.untold.push((task.id, task.run));
            self.changed.notify_one();
        }
    }
}

impl AlertRelay for Relay {
    fn relayed(&self, is_stopping: bool) -> Relaying<'_> {
        let heard = lock(&self.heard).count;
        if is_stopping {
            self.hurry.notify_one();
        }
        let mut told = self.told.subscribe();
        Box::pin(async move {
            // The sender lives as long as this borrow of it.
            if told.wait_for(|told| *told >= heard).await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }
}

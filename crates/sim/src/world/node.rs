//! A process on a machine: it is started, dies between two effects, is suspended, is stopped, and is restarted.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use redrive_engine::entropy::Entropy;
use redrive_engine::spawner::{Spawner, Work};
use redrive_engine::{CommonClock, Parts};
use redrive_server::App;

use super::connection::Connection;
use super::machine::{Machine, MachineClock};
use super::notifier::Notifier;
use super::observer::Name;
use super::wire::Wire;
use super::{World, lock, streams};
use crate::executor::{Executor, Group, WORLD};
use crate::model::Whose;
use crate::plan::Shape;
use crate::random::Random;

/// A node: a machine, and the process on it if there is one.
pub(super) struct Node {
    pub(super) number: usize,
    pub(super) machine: Machine,
    entropy: Arc<Drawn>,
    process: Mutex<Process>,
}

#[derive(Default)]
struct Process {
    life: u32,
    group: Option<Group>,
    app: Option<App>,
    is_paused: bool,
    doom: Option<Doom>,
}

/// A crash or a pause that is scheduled for a process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Doom {
    /// After how many further effects.
    pub(super) effects: u32,
    /// How long it is gone or suspended.
    pub(super) lasts: Duration,
    /// Whether it is only suspended.
    pub(super) is_pause: bool,
}

/// How soon a process that could not start is restarted.
const RESTART: Duration = Duration::from_secs(1);

impl Node {
    pub(super) fn new(number: usize, seed: u64, shape: &Shape) -> Self {
        let mut random = Random::stream(seed, streams::NODES + number as u64);
        let machine = Machine::new(shape.clock_bound, random.unit() * 2.0 - 1.0);
        Node { number, machine, entropy: Arc::new(Drawn(Mutex::new(random))), process: Mutex::default() }
    }

    /// The running service, if there is one that takes calls.
    pub(super) fn front(&self) -> Option<(App, Group, Whose)> {
        let process = lock(&self.process);
        Some((process.app.clone()?, process.group?, Whose { node: self.number, life: process.life }))
    }

    pub(super) fn whose(&self) -> Whose {
        Whose { node: self.number, life: lock(&self.process).life }
    }

    /// Schedules a crash or a pause of its process.
    pub(super) fn doom(&self, doom: Doom) {
        lock(&self.process).doom = Some(doom);
    }

    pub(super) fn pardon(&self) {
        lock(&self.process).doom = None;
    }

    pub(super) fn is_paused(&self, whose: Whose) -> bool {
        let process = lock(&self.process);
        process.life == whose.life && process.is_paused
    }

    /// Sets whether this process is suspended. Returns its group if that has changed.
    fn set_paused(&self, whose: Whose, is_paused: bool) -> Option<Group> {
        let mut process = lock(&self.process);
        let is_news = process.life == whose.life && process.is_paused != is_paused;
        process.group.filter(|_| is_news).inspect(|_| process.is_paused = is_paused)
    }

    pub(super) fn is_alive(&self, whose: Whose) -> bool {
        let process = lock(&self.process);
        process.life == whose.life && process.group.is_some()
    }
}

impl World {
    /// Starts a process on this node, unless there is one.
    pub(super) fn start(self: &Arc<Self>, number: usize) {
        let node = &self.nodes[number];
        let group = self.executor.group();
        let mut process = lock(&node.process);
        if process.group.is_some() {
            return;
        }
        process.life += 1;
        process.group = Some(group);
        let whose = Whose { node: number, life: process.life };
        drop(process);
        self.observer().note(self.now(), (20, whose), None, || format!("{} starts", Name(whose)));
        let world = self.clone();
        self.executor.spawn(group, async move {
            match begin(&world, whose, group).await {
                Ok(app) => lock(&world.nodes[number].process).app = Some(app),
                // It could not read its store: it ends, and its supervisor restarts it.
                Err(_) => world.die(whose, RESTART),
            }
        });
    }

    /// Counts one effect of a process, before or after it. Returns whether the process died at it.
    pub(super) fn dies_here(self: &Arc<Self>, whose: Whose) -> bool {
        let doom = {
            let mut process = lock(&self.nodes[whose.node].process);
            if process.life != whose.life || process.group.is_none() {
                return true;
            }
            match &mut process.doom {
                Some(doom) if doom.effects > 1 => {
                    doom.effects -= 1;
                    None
                }
                doom => doom.take(),
            }
        };
        let Some(doom) = doom else { return false };
        if doom.is_pause {
            self.pause(whose, doom.lasts);
        } else {
            self.crash(whose, doom.lasts);
        }
        !doom.is_pause
    }

    /// Counts one effect, in async code. If the process died, nothing after this runs; if it was suspended, nothing
    /// until it is resumed.
    pub(super) async fn effect(self: &Arc<Self>, whose: Whose) {
        if self.dies_here(whose) {
            std::future::pending::<()>().await;
        }
        if self.nodes[whose.node].is_paused(whose) {
            crate::executor::give_way().await;
        }
    }

    /// Suspends a process for a while; the world continues.
    pub(super) fn pause(self: &Arc<Self>, whose: Whose, lasts: Duration) {
        let Some(group) = self.nodes[whose.node].set_paused(whose, true) else { return };
        self.observer().tally.pauses += 1;
        self.observer().model.disturbed(whose);
        self.observer().note(self.now(), (23, whose), None, || format!("{} stands still for {lasts:?}", Name(whose)));
        self.executor.pause(group);
        let world = self.clone();
        self.executor.spawn(WORLD, async move {
            world.executor.sleep(lasts).await;
            world.go_on(whose);
        });
    }

    /// Resumes a suspended process.
    pub(super) fn go_on(self: &Arc<Self>, whose: Whose) {
        let Some(group) = self.nodes[whose.node].set_paused(whose, false) else { return };
        self.observer().model.disturbed(whose);
        self.observer().note(self.now(), (42, whose), None, || format!("{} goes on", Name(whose)));
        self.executor.resume(group);
    }

    /// Kills a process now, and restarts it after a while.
    pub(super) fn crash(self: &Arc<Self>, whose: Whose, gone_for: Duration) {
        self.observer().tally.crashes += 1;
        self.observer().note(self.now(), (21, whose), None, || format!("{} dies for {gone_for:?}", Name(whose)));
        self.die(whose, gone_for);
    }

    /// Ends a process, for any reason, and restarts it after a while.
    pub(super) fn die(self: &Arc<Self>, whose: Whose, gone_for: Duration) {
        let node = &self.nodes[whose.node];
        if !node.is_alive(whose) {
            return;
        }
        self.observer().model.disturbed(whose);
        self.take_down(node);
        let world = self.clone();
        self.executor.spawn(WORLD, async move {
            world.executor.sleep(gone_for).await;
            world.start(whose.node);
        });
    }

    /// Removes everything of this node's process.
    pub(super) fn take_down(&self, node: &Node) {
        let (group, app) = {
            let mut process = lock(&node.process);
            process.doom = None;
            process.is_paused = false;
            (process.group.take(), process.app.take())
        };
        if let Some(group) = group {
            self.executor.kill(group);
        }
        drop(app);
    }
}

async fn begin(world: &Arc<World>, whose: Whose, group: Group) -> Result<App, redrive_engine::StartError> {
    let node = &world.nodes[whose.node];
    world.database.open(world, whose).await;
    let store = Arc::new(Connection { world: world.clone(), whose, departed_nodes: Mutex::default() });
    let local = MachineClock { machine: node.machine.clone(), executor: world.executor.clone() };
    let notifier = Notifier::of(world);
    let parts = Parts {
        clock: CommonClock::new(Arc::new(local), &*store),
        entropy: node.entropy.clone(),
        spawner: Arc::new(InGroup { executor: world.executor.clone(), group }),
        store,
        transport: Arc::new(Wire { world: world.clone(), whose }),
        bodies: None,
        sinks: notifier.as_ref().map(Notifier::sinks).unwrap_or_default(),
        alert_relay: notifier.as_ref().map(Notifier::relay),
    };
    let engine = redrive_engine::start(parts, world.shape.engine.clone()).await?;
    Ok(match notifier {
        Some(notifier) => notifier.start(world, whose, group, engine),
        None => App::new(engine),
    })
}

/// Spawns a process's work in its group.
struct InGroup {
    executor: Executor,
    group: Group,
}

impl Spawner for InGroup {
    fn spawn(&self, work: Work) {
        self.executor.spawn_boxed(self.group, work);
    }
}

/// A node's source of random numbers.
struct Drawn(Mutex<Random>);

impl Entropy for Drawn {
    fn bits(&self) -> u64 {
        lock(&self.0).bits()
    }
}

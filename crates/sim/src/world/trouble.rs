//! Runs the plan's faults, and ends them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::World;
use super::node::Doom;
use super::observer::Name;
use crate::executor::WORLD;
use crate::plan::{Fault, Kind, Trouble};

/// How soon a process that was stopped is restarted once all faults are over.
const AT_ONCE: Duration = Duration::from_millis(1);

/// Runs one fault from its beginning to its end.
pub(super) async fn happen(world: Arc<World>, fault: Fault) {
    world.executor.sleep_until(fault.at).await;
    if world.is_well() {
        return;
    }
    let now = world.now();
    world.observer().note(now, (40, fault.number), None, || format!("fault f{}: {:?}", fault.number, fault.kind));
    match fault.kind {
        Kind::Crash { node, effects: 0 } => world.crash(world.nodes[node].whose(), fault.lasts),
        Kind::Crash { node, effects } => world.nodes[node].doom(Doom { effects, lasts: fault.lasts, is_pause: false }),
        Kind::Stop { node } => stop(&world, node, fault.lasts).await,
        Kind::Pause { node, effects: 0 } => world.pause(world.nodes[node].whose(), fault.lasts),
        Kind::Pause { node, effects } => world.nodes[node].doom(Doom { effects, lasts: fault.lasts, is_pause: true }),
        Kind::Jump { node, to } => {
            world.observer().tally.clock_faults += 1;
            world.nodes[node].machine.jump(now, to);
        }
        Kind::Drift { node, ppm } => {
            world.observer().tally.clock_faults += 1;
            world.nodes[node].machine.drift(now, ppm);
            world.executor.sleep(fault.lasts).await;
            world.nodes[node].machine.drift(world.now(), 0);
        }
        Kind::Store { node, trouble, chance } => {
            if trouble == Trouble::PowerLoss {
                world.observer().tally.power_losses += 1;
            }
            let chance = if trouble == Trouble::PowerLoss { 1.0 } else { chance };
            world.database.begin(world.seed, &fault, node, trouble, chance);
            world.executor.sleep(fault.lasts).await;
            world.database.end(fault.number);
        }
        Kind::Dependency { dependency, mood } => {
            world.network.begin(dependency, fault.number, mood);
            world.executor.sleep(fault.lasts).await;
            world.network.end(dependency, fault.number);
        }
        Kind::Sink { sink, mood } => {
            world.network.begin_at_sink(sink, fault.number, mood);
            world.executor.sleep(fault.lasts).await;
            world.network.end_at_sink(sink, fault.number);
        }
        Kind::LoseSchedule { node } => {
            if let Some((app, ..)) = world.nodes[node].front() {
                world.observer().tally.schedules_lost += 1;
                app.engine.rebuild_schedule();
            }
        }
    }
}

/// Stops a process gracefully, and restarts it after a while.
async fn stop(world: &Arc<World>, node: usize, gone_for: Duration) {
    let Some((app, group, whose)) = world.nodes[node].front() else { return };
    world.observer().tally.stops += 1;
    let elsewhere = world.clone();
    world.executor.spawn(group, async move {
        app.engine.stop().await;
        let now = elsewhere.now();
        elsewhere.observer().note(now, (41, whose), None, || format!("{} has stopped", Name(whose)));
        elsewhere.die(whose, if elsewhere.is_well() { AT_ONCE } else { gone_for });
    });
}

impl World {
    /// Ends the time of faults: no fault occurs from now on, and processes that are down are restarted.
    pub(super) fn be_well(self: &Arc<Self>) {
        self.is_well.store(true, Ordering::Relaxed);
        self.observer().note(self.now(), 43, None, || "from now on, everything is well".to_owned());
        self.database.be_well();
        for node in &self.nodes {
            node.pardon();
            node.machine.drift(self.now(), 0);
            self.go_on(node.whose());
            let (world, number) = (self.clone(), node.number);
            self.executor.spawn(WORLD, async move { world.start(number) });
        }
    }
}

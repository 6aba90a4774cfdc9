//! The faults of a run, when they occur, and when they are repaired: drawn from the seed.
//!
//! One thread does it all. Each fault affects one thing (a node, a node's connection to PostgreSQL, PostgreSQL, rows in
//! it, the directory of large bodies, Redis) until it is repaired, and several are active at once. Not here: what a
//! fault does, which is in `cluster`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use fastrand::Rng;

use super::cluster::{Cluster, Thing};
use super::takeovers::LastTakeover;

/// The wait between two faults.
const NEXT_FAULT_MS: std::ops::Range<u64> = 100..900;
/// How long a killed or stopped node stays down.
const DOWN_MS: std::ops::Range<u64> = 0..2_000;
/// How long a node is suspended: mostly past its leases and until others have taken them over (their rescuers look
/// every 5 s), sometimes not.
const PAUSE_MS: std::ops::Range<u64> = 300..9_000;
/// A node that was suspended for this long has no lease left.
const PAST_ITS_LEASES: Duration = Duration::from_millis(2_100);
/// How long PostgreSQL is down, not counting its recovery.
const SERVER_DOWN_MS: std::ops::Range<u64> = 0..1_500;
/// How long PostgreSQL is suspended.
const SERVER_PAUSE_MS: std::ops::Range<u64> = 200..4_000;
/// How long PostgreSQL refuses writes, or its commits wait for a standby.
const SETTINGS_MS: std::ops::Range<u64> = 200..4_000;
/// The errors that clocks are set to, in seconds.
const CLOCKS: [i64; 6] = [0, 5, -5, 90, 3_600, -3_600];
/// How long answers or requests are lost before the connection is closed.
const LOSS_MS: std::ops::Range<u64> = 20..600;
/// How long connections are refused.
const REFUSAL_MS: std::ops::Range<u64> = 100..2_500;
/// How long a primary is gone and its standby not promoted.
const FAILOVER_MS: std::ops::Range<u64> = 0..1_500;
/// How long rows are damaged. Nodes read them again within 15 s after that.
const BAD_ROWS_MS: std::ops::Range<u64> = 2_000..8_000;
/// How long the directory of large bodies is replaced.
const UNMOUNT_MS: std::ops::Range<u64> = 200..3_000;
/// How long Redis is slow, and by how much.
const SCHEDULE_SLOW_MS: std::ops::Range<u64> = 500..5_000;
const SCHEDULE_DELAY_MS: std::ops::Range<u64> = 50..1_500;
/// How long Redis is down.
const SCHEDULE_DOWN_MS: std::ops::Range<u64> = 0..3_000;

/// The kind of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Kill,
    Pause,
    Stop,
    ServerKill,
    ServerImmediateStop,
    ServerPause,
    ReadOnly,
    LoseStandby,
    Failover,
    BadRows,
    Unmount,
    Clock,
    Cut,
    LoseAnswers,
    LoseRequests,
    Refuse,
    Flush,
    ScheduleKill,
    ScheduleSlow,
}

impl Kind {
    /// Whether it needs a Redis.
    fn is_of_schedule(self) -> bool {
        matches!(self, Kind::Flush | Kind::ScheduleKill | Kind::ScheduleSlow)
    }

    /// Whether a program of schema version 3 cannot survive it: it uses its machine's time only, sets no row aside, and
    /// does not recognise another directory.
    fn is_too_new(self) -> bool {
        matches!(self, Kind::Clock | Kind::BadRows | Kind::Unmount)
    }
}

/// The relative frequency of each.
const WEIGHTS: [(Kind, u32); 19] = [
    (Kind::Kill, 20),
    (Kind::Pause, 20),
    (Kind::Stop, 10),
    (Kind::ServerKill, 5),
    (Kind::ServerImmediateStop, 5),
    (Kind::ServerPause, 7),
    (Kind::ReadOnly, 5),
    (Kind::LoseStandby, 5),
    (Kind::Failover, 6),
    (Kind::BadRows, 10),
    (Kind::Unmount, 7),
    (Kind::Clock, 10),
    (Kind::Cut, 10),
    (Kind::LoseAnswers, 10),
    (Kind::LoseRequests, 4),
    (Kind::Refuse, 5),
    (Kind::Flush, 10),
    (Kind::ScheduleKill, 6),
    (Kind::ScheduleSlow, 8),
];

/// One fault.
struct Strike {
    kind: Kind,
    node: usize,
    /// What it affects, and for how long.
    thing: Thing,
    span: Duration,
    /// Whether it ends as soon as another node has taken over a task.
    is_sly: bool,
    /// The error that a clock is set to.
    off_seconds: i64,
    /// The delay of Redis.
    delay: Duration,
    /// The seed for which rows are damaged, and how.
    rows_seed: u64,
}

/// What can be broken in a run.
#[derive(Debug, Clone, Copy)]
pub struct Breakable {
    /// How many nodes there are.
    pub nodes: usize,
    /// Whether there is a Redis.
    pub has_schedule: bool,
    /// Whether there are nodes of the previous release.
    pub has_old_nodes: bool,
}

/// Draws faults, and repairs them when their time is over.
pub struct Trouble {
    random: Rng,
    next: Instant,
    holds: Vec<Hold>,
    last_takeover: Arc<LastTakeover>,
    breakable: Breakable,
}

/// An active fault.
struct Hold {
    thing: Thing,
    until: Instant,
    /// From when on a takeover ends it, if one does.
    sly_from: Option<Instant>,
}

impl Trouble {
    /// Faults that begin now.
    pub fn new(seed: u64, last_takeover: Arc<LastTakeover>, breakable: Breakable) -> Self {
        Trouble { random: Rng::with_seed(seed), next: Instant::now(), holds: Vec::new(), last_takeover, breakable }
    }

    /// Starts and ends the faults that are due.
    pub fn tick(&mut self, cluster: &mut Cluster) -> Result<()> {
        let now = Instant::now();
        let is_taken_over = self.last_takeover.is_under_way();
        let is_due = |hold: &mut Hold| {
            hold.until <= now || (is_taken_over && hold.sly_from.is_some_and(|sly_from| sly_from <= now))
        };
        for hold in self.holds.extract_if(.., is_due) {
            cluster.mend(hold.thing)?;
        }
        if now >= self.next {
            self.strike(cluster)?;
            self.next = Instant::now() + self.span(NEXT_FAULT_MS);
        }
        Ok(())
    }

    fn strike(&mut self, cluster: &mut Cluster) -> Result<()> {
        let Strike { kind, node, thing, span, is_sly, off_seconds, delay, rows_seed } = self.draw();
        if self.holds.iter().any(|hold| hold.thing == thing) {
            return Ok(());
        }
        let has_struck = match kind {
            Kind::Kill => cluster.kill(node)?,
            Kind::Pause => cluster.pause(node)?,
            Kind::Stop => cluster.stop(node)?,
            Kind::ServerKill => cluster.kill_server(),
            Kind::ServerImmediateStop => cluster.stop_server(),
            Kind::ServerPause => cluster.pause_server(),
            Kind::ReadOnly => cluster.make_read_only(),
            Kind::LoseStandby => cluster.lose_standby(),
            Kind::Failover => cluster.fail_over(),
            Kind::BadRows => cluster.damage_rows(rows_seed),
            Kind::Unmount => cluster.unmount_bodies()?,
            Kind::Clock => cluster.set_clock(node, off_seconds)?,
            Kind::Cut => cluster.cut(node),
            Kind::LoseAnswers => cluster.lose_answers(node),
            Kind::LoseRequests => cluster.lose_requests(node),
            Kind::Refuse => cluster.refuse(node),
            Kind::Flush => cluster.flush_schedule(),
            Kind::ScheduleKill => cluster.kill_schedule(),
            Kind::ScheduleSlow => cluster.slow_schedule(delay),
        };
        if has_struck {
            let now = Instant::now();
            self.holds.push(Hold { thing, until: now + span, sly_from: is_sly.then_some(now + PAST_ITS_LEASES) });
        }
        Ok(())
    }

    /// The next fault. All of it is drawn whether or not it can be used, so that what follows depends on the seed only.
    fn draw(&mut self) -> Strike {
        let kind = self.draw_kind();
        let node = self.random.usize(..self.breakable.nodes);
        let (thing, span) = match kind {
            Kind::Kill | Kind::Stop => (Thing::Node(node), DOWN_MS),
            Kind::Pause => (Thing::Node(node), PAUSE_MS),
            Kind::Cut => (Thing::Link(node), 0..1),
            Kind::LoseAnswers | Kind::LoseRequests => (Thing::Link(node), LOSS_MS),
            Kind::Refuse => (Thing::Link(node), REFUSAL_MS),
            Kind::ServerKill | Kind::ServerImmediateStop => (Thing::Server, SERVER_DOWN_MS),
            Kind::ServerPause => (Thing::Server, SERVER_PAUSE_MS),
            Kind::ReadOnly | Kind::LoseStandby => (Thing::Settings, SETTINGS_MS),
            Kind::Failover => (Thing::Server, FAILOVER_MS),
            Kind::BadRows => (Thing::Rows, BAD_ROWS_MS),
            Kind::Unmount => (Thing::Bodies, UNMOUNT_MS),
            Kind::Clock => (Thing::Clock(node), 0..1),
            Kind::Flush => (Thing::Schedule, 0..1),
            Kind::ScheduleKill => (Thing::Schedule, SCHEDULE_DOWN_MS),
            Kind::ScheduleSlow => (Thing::Schedule, SCHEDULE_SLOW_MS),
        };
        let (span, is_sly) = (self.span(span), self.random.bool() && kind == Kind::Pause);
        let off_seconds = CLOCKS[self.random.usize(..CLOCKS.len())];
        let (delay, rows_seed) = (self.span(SCHEDULE_DELAY_MS), self.random.u64(..));
        Strike { kind, node, thing, span, is_sly, off_seconds, delay, rows_seed }
    }

    fn draw_kind(&mut self) -> Kind {
        let Breakable { has_schedule, has_old_nodes, .. } = self.breakable;
        let weights = WEIGHTS
            .iter()
            .filter(|(kind, _)| (has_schedule || !kind.is_of_schedule()) && (!has_old_nodes || !kind.is_too_new()));
        let total: u32 = weights.clone().map(|(_, weight)| weight).sum();
        let mut drawn = self.random.u32(..total);
        for (kind, weight) in weights {
            if drawn < *weight {
                return *kind;
            }
            drawn -= weight;
        }
        Kind::Kill
    }

    fn span(&mut self, range: std::ops::Range<u64>) -> Duration {
        Duration::from_millis(self.random.u64(range))
    }
}

#[cfg(test)]
mod tests {
    use super::super::SHORT;
    use super::*;

    #[test]
    fn the_short_run_means_to_break_everything_that_can_be_broken() {
        let mut trouble = Trouble::new(SHORT.seed, Arc::default(), SHORT.breakable());
        let (mut at, mut kinds) = (Duration::ZERO, Vec::new());
        while at < SHORT.trouble {
            kinds.push(trouble.draw().kind);
            at += trouble.span(NEXT_FAULT_MS);
        }
        for (kind, _) in WEIGHTS.iter().filter(|(kind, _)| !kind.is_of_schedule()) {
            assert!(kinds.contains(kind), "no {kind:?} in {kinds:?}");
        }
    }
}

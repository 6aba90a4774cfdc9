//! The results of one run of the benchmark.

use serde::Serialize;

use super::dead_lane::DeadLane;
use super::feature_cost::FeatureCost;
use super::goals::{self, Goal};
use super::idle::Idle;
use super::latency::DueToWire;
use super::machine::Machine;
use super::pipeline::Round;
use super::preload::{Ended, Pending};
use super::scrape::Scrapes;
use super::world::Variant;
use crate::stats::Spread;

/// The results of a run; `None` for what was not measured.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Results {
    /// The machine before the first round.
    pub machine: Machine,
    /// Whether the shared store had its schedule in Redis.
    pub has_redis: bool,
    /// Every variant's rounds.
    pub variants: Vec<Measured>,
    /// Their throughputs compared.
    pub ratios: Option<Ratios>,
    /// The pipeline with a feature on and off.
    pub feature_cost: Option<FeatureCost>,
    /// Scrapes of `/metrics`.
    pub scrapes: Option<Scrapes>,
    /// How late attempts are at half the top rate.
    pub due_to_wire: Option<DueToWire>,
    /// A store with ended tasks in it.
    pub ended: Option<Ended>,
    /// A store with pending tasks in it.
    pub pending: Option<Pending>,
    /// A dead lane.
    pub dead_lane: Option<DeadLane>,
    /// A service with nothing to do.
    pub idle: Option<Idle>,
    /// The goals, judged once everything else is measured.
    pub goals: Vec<Goal>,
}

/// One variant's rounds.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Measured {
    /// Which variant.
    pub name: String,
    /// Tasks per second.
    pub tasks_per_second: Spread,
    /// Every measured window.
    pub rounds: Vec<Round>,
}

impl Measured {
    /// The rounds of `variant`.
    pub fn of(variant: Variant, rounds: Vec<Round>) -> Self {
        let tasks_per_second = Spread::of(rounds.iter().map(|round| round.tasks_per_second));
        Measured { name: variant.name(), tasks_per_second, rounds }
    }

    /// Tasks per second, by round.
    fn rates(&self) -> Vec<f64> {
        self.rounds.iter().map(|round| round.tasks_per_second).collect()
    }
}

/// Throughputs compared round by round.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ratios {
    /// The embedded store divided by the memory store: the cost of durability.
    pub sqlite_to_memory: Spread,
    /// The embedded store divided by the ceiling: the part of the HTTP stack's rate that Redrive reaches.
    pub sqlite_to_ceiling: Spread,
    /// The memory store divided by the ceiling: the cost without any disk.
    pub memory_to_ceiling: Spread,
    /// The shared store divided by the memory store, for each number of nodes.
    pub postgres_to_memory: Vec<(String, Spread)>,
}

impl Ratios {
    /// The ratios of variants that were measured in the same rounds; `None` if one of the first three is missing.
    pub fn of(variants: &[Measured]) -> Option<Self> {
        let [ceiling, memory, sqlite, shared @ ..] = variants else { return None };
        Some(Ratios {
            sqlite_to_memory: Spread::ratio(&sqlite.rates(), &memory.rates()),
            sqlite_to_ceiling: Spread::ratio(&sqlite.rates(), &ceiling.rates()),
            memory_to_ceiling: Spread::ratio(&memory.rates(), &ceiling.rates()),
            postgres_to_memory: shared
                .iter()
                .map(|shared| (shared.name.clone(), Spread::ratio(&shared.rates(), &memory.rates())))
                .collect(),
        })
    }
}

impl Results {
    /// Results with the machine only.
    pub fn new(machine: Machine) -> Self {
        Results {
            machine,
            has_redis: false,
            variants: Vec::new(),
            ratios: None,
            feature_cost: None,
            scrapes: None,
            due_to_wire: None,
            ended: None,
            pending: None,
            dead_lane: None,
            idle: None,
            goals: Vec::new(),
        }
    }

    /// Judges the goals.
    pub fn judged(mut self) -> Self {
        self.goals = goals::all(&self);
        self
    }
}

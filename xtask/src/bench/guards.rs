//! The cost of the guards: the pipeline with all of them on and with all of them off, in turns.

use anyhow::Result;
use serde::Serialize;

use super::pipeline::{self, Load};
use super::world::{Variant, World};
use crate::stats::Spread;

/// The arguments of `redrive serve` that turn every guard off.
const OFF: [&str; 6] = ["--budget", "off", "--breaker", "off", "--concurrency", "fixed"];

/// The pipeline with guards on and off.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GuardCost {
    /// The store.
    pub store: String,
    /// Tasks per second with guards, by round.
    pub on: Vec<f64>,
    /// Tasks per second without, by round.
    pub off: Vec<f64>,
    /// On divided by off, per round.
    pub ratio: Spread,
    /// CPU time of the service per task, on divided by off, per round.
    pub cpu_ratio: Spread,
}

/// Whether a service has guards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guards {
    /// With their defaults.
    On,
    /// None.
    Off,
}

impl Guards {
    /// Both, in the order of this round (from 1 on): each is first in every other round, because the machine's speed
    /// varies.
    pub fn in_turn(round: usize) -> [Guards; 2] {
        if round % 2 == 1 { [Guards::On, Guards::Off] } else { [Guards::Off, Guards::On] }
    }

    /// Does something while services are started with these guards.
    pub fn apply<T>(self, world: &mut World, run: impl FnOnce(&World) -> Result<T>) -> Result<T> {
        let kept = world.serve_arguments.clone();
        if self == Guards::Off {
            world.serve_arguments.extend(OFF.map(str::to_owned));
        }
        let done = run(world);
        world.serve_arguments = kept;
        done
    }
}

/// Measures the pipeline of `variant` in every round.
pub fn measure(world: &mut World, variant: Variant, load: &Load, rounds: usize) -> Result<GuardCost> {
    let (mut on, mut off) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        for guards in Guards::in_turn(round) {
            let of = guards.apply(world, |world| pipeline::measure_fresh(world, variant, load))?;
            eprintln!(
                "round {round}/{rounds}: guards {guards:?}: {:.0} tasks/s, {:.1} CPU µs/task",
                of.tasks_per_second, of.cpu_us_per_task
            );
            let measured = if guards == Guards::On { &mut on } else { &mut off };
            measured.push(of);
        }
    }
    let rates = |rounds: &[pipeline::Round]| rounds.iter().map(|round| round.tasks_per_second).collect::<Vec<_>>();
    let cpu = |rounds: &[pipeline::Round]| rounds.iter().map(|round| round.cpu_us_per_task).collect::<Vec<_>>();
    Ok(GuardCost {
        store: variant.name(),
        ratio: Spread::ratio(&rates(&on), &rates(&off)),
        cpu_ratio: Spread::ratio(&cpu(&on), &cpu(&off)),
        on: rates(&on),
        off: rates(&off),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_first_in_every_other_round() {
        assert_eq!([1, 2, 3].map(|round| Guards::in_turn(round)[0]), [Guards::On, Guards::Off, Guards::On]);
    }
}

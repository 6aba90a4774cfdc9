//! The healthy lanes alone and beside bad dependencies of one kind, in turns.
//!
//! Each arm has a service of its own, which is started and ended with it. So the cost of the bad dependencies cannot
//! slow down the other arm, and every round begins with the whole backlog.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;
use serde_json::json;

use super::super::batches;
use super::super::feature_cost::{Feature, Switch};
use super::super::world::{Service, Variant, World};
use super::arm::{self, Arm};
use super::dependencies::Dependencies;
use super::kind::Kind;
use super::options::{Options, seconds};
use crate::procfs::Usage;
use crate::stats::Spread;

/// The effect of bad dependencies of one kind on the healthy lanes.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// The kind of the bad dependencies.
    pub kind: Kind,
    /// How many there are.
    pub dependencies: usize,
    /// All rounds.
    pub rounds: Vec<Round>,
    /// Deliveries per second with a constant backlog: beside divided by alone, per round.
    pub deliveries: Spread,
    /// The median of submit → wire at the same rate: beside divided by alone, per round.
    pub p50: Spread,
    /// The 99th percentile of submit → wire at the same rate: beside divided by alone, per round.
    pub p99: Spread,
    /// Guards on divided by guards off, both beside the bad dependencies, if that was measured.
    pub guards: Option<GuardsCompared>,
}

/// Guards on divided by guards off, per round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GuardsCompared {
    /// Deliveries per second with a constant backlog.
    pub deliveries: Spread,
    /// The 99th percentile of submit → wire at the same rate.
    pub p99: Spread,
}

/// One round.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Round {
    /// Without bad dependencies.
    pub alone: Arm,
    /// With them.
    pub beside: Arm,
    /// With them, and with all guards off, if that is compared.
    pub beside_without_guards: Option<Arm>,
    /// The cores used while there was only work for the bad dependencies. They are not available to the healthy lanes.
    pub background: Background,
    /// Tasks that had not ended when the round was over.
    pub unfinished: u64,
}

/// The cores that the work for the bad dependencies takes.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Background {
    /// Of the service and its database.
    pub service_cores: f64,
    /// Of this process, in which the targets are.
    pub target_cores: f64,
}

impl Comparison {
    fn of(kind: Kind, dependencies: usize, rounds: Vec<Round>) -> Self {
        let ratio = |figure: fn(&Arm) -> f64| {
            let of = |arm: fn(&Round) -> &Arm| rounds.iter().map(|round| figure(arm(round))).collect::<Vec<_>>();
            Spread::ratio(&of(|round| &round.beside), &of(|round| &round.alone))
        };
        let guards = |figure: fn(&Arm) -> f64| {
            let off: Option<Vec<f64>> =
                rounds.iter().map(|round| Some(figure(round.beside_without_guards.as_ref()?))).collect();
            let on: Vec<f64> = rounds.iter().map(|round| figure(&round.beside)).collect();
            Some(Spread::ratio(&on, &off?))
        };
        let guards = guards(|arm| arm.deliveries_per_second)
            .zip(guards(|arm| arm.submit_to_wire.p99_us as f64))
            .map(|(deliveries, p99)| GuardsCompared { deliveries, p99 });
        Comparison {
            guards,
            kind,
            dependencies,
            deliveries: ratio(|arm| arm.deliveries_per_second),
            p50: ratio(|arm| arm.submit_to_wire.p50_us as f64),
            p99: ratio(|arm| arm.submit_to_wire.p99_us as f64),
            rounds,
        }
    }

    /// The median over the rounds of a figure of one arm.
    pub fn median(&self, figure: impl Fn(&Round) -> f64) -> f64 {
        Spread::of(self.rounds.iter().map(figure)).median
    }
}

/// Measures every round of one case.
pub fn measure(world: &mut World, options: &Options, kind: Kind, count: usize) -> Result<Comparison> {
    let dependencies = Dependencies::start(kind, count)?;
    // Both arms have the same settings.
    world.serve_arguments = [options.serve_argument.clone(), dependencies.serve_arguments()].concat();
    let variant = options.store.variant();
    let mut rounds = Vec::new();
    for number in 1..=options.rounds {
        let bad = Bad { kind, dependencies: &dependencies };
        let round = measure_round(world, variant, options, &bad, usize::from(number))?;
        eprintln!(
            "  round {number}/{}: alone {:.0}/s, beside {:.0}/s; p99 {:.1} ms, beside {:.1} ms",
            options.rounds,
            round.alone.deliveries_per_second,
            round.beside.deliveries_per_second,
            round.alone.submit_to_wire.p99_us as f64 / 1e3,
            round.beside.submit_to_wire.p99_us as f64 / 1e3,
        );
        rounds.push(round);
    }
    world.serve_arguments.clone_from(&options.serve_argument);
    Ok(Comparison::of(kind, count, rounds))
}

/// The bad dependencies of a case.
struct Bad<'a> {
    kind: Kind,
    dependencies: &'a Dependencies,
}

fn measure_round(
    world: &mut World,
    variant: Variant,
    options: &Options,
    bad: &Bad<'_>,
    number: usize,
) -> Result<Round> {
    let service = world.start(variant)?;
    let alone = arm::measure(world, &service, options, None)?;
    drop(service);
    let mut round = Round {
        beside: alone.clone(),
        alone,
        beside_without_guards: None,
        background: Background::default(),
        unfinished: 0,
    };
    let rate = round.alone.open_loop_rate;
    for guards in Switch::in_turn(number) {
        if guards == Switch::On {
            (round.beside, round.background, round.unfinished) = measure_beside(world, variant, options, bad, rate)?;
        } else if options.compare_guards {
            let (arm, ..) =
                guards.apply(Feature::Guards, world, |world| measure_beside(world, variant, options, bad, rate))?;
            eprintln!("  guards off: beside {:.0}/s", arm.deliveries_per_second);
            round.beside_without_guards = Some(arm);
        }
    }
    Ok(round)
}

/// Measures the healthy lanes beside bad dependencies, at this rate of the open loop. Returns also the cores of the bad
/// dependencies' own work, and how many tasks had not ended.
fn measure_beside(
    world: &World,
    variant: Variant,
    options: &Options,
    bad: &Bad<'_>,
    rate: f64,
) -> Result<(Arm, Background, u64)> {
    let service = world.start(variant)?;
    fill(&service, options, bad)?;
    let settle = seconds(options.settle) / 2;
    std::thread::sleep(settle);
    let background = Background::measure(world, variant, &service, settle)?;
    let beside = arm::measure(world, &service, options, Some(rate))?;
    let counts = service.ask(async |api| api.counts().await)?;
    let unfinished = ["PENDING", "IN_FLIGHT"].iter().filter_map(|status| counts.get(*status)).sum();
    Ok((beside, background, unfinished))
}

/// Submits the backlog, an equal part of it for each of the dependencies.
fn fill(service: &Service, options: &Options, bad: &Bad<'_>) -> Result<()> {
    let (origins, spread) = (bad.dependencies.origins(), seconds(options.spread));
    let body = "x".repeat(options.body);
    let policy = bad.kind.policy(spread);
    batches::submit(service, options.backlog, |number| {
        let at = number as usize % origins.len();
        let mut task = json!({
            "targetUrl": format!("{}/", origins[at]),
            "method": "POST",
            "body": body,
            "dependency": format!("bad-{at}"),
        });
        if let Some(policy) = &policy {
            task["policy"] = policy.clone();
            task["delayMs"] = first_delay(number, options.backlog, spread).into();
        }
        task.to_string()
    })
}

/// When task `number` is tried first, in milliseconds, so that all of them are spread evenly.
fn first_delay(number: u64, tasks: u64, spread: Duration) -> u64 {
    (spread.as_millis() as f64 * number as f64 / tasks as f64) as u64
}

impl Background {
    fn measure(world: &World, variant: Variant, service: &Service, during: Duration) -> Result<Self> {
        let used = || {
            let targets = Usage::of(std::process::id())?.cpu;
            anyhow::Ok((service.usage()?.cpu + world.database_cpu(variant), targets))
        };
        let (begin, before) = (Instant::now(), used()?);
        std::thread::sleep(during);
        let (after, elapsed) = (used()?, begin.elapsed().as_secs_f64().max(0.001));
        let cores = |before: Duration, after: Duration| after.saturating_sub(before).as_secs_f64() / elapsed;
        Ok(Background { service_cores: cores(before.0, after.0), target_cores: cores(before.1, after.1) })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::stats::Latency;

    /// An arm with these deliveries per second and this p99.
    fn arm(deliveries_per_second: f64, p99_us: i64) -> Arm {
        let submit_to_wire = Latency { p50_us: p99_us / 2, p99_us, ..Latency::default() };
        Arm { deliveries_per_second, open_loop_rate: deliveries_per_second / 2.0, submit_to_wire, missing: 0 }
    }

    /// Rounds of alone and beside, each with deliveries per second and p99 in microseconds.
    pub(in super::super) fn comparison(rounds: &[[(f64, i64); 2]]) -> Comparison {
        let round = |[alone, beside]: &[(f64, i64); 2]| Round {
            alone: arm(alone.0, alone.1),
            beside: arm(beside.0, beside.1),
            beside_without_guards: None,
            background: Background::default(),
            unfinished: 0,
        };
        Comparison::of(Kind::Slow, 40, rounds.iter().map(round).collect())
    }

    #[test]
    fn the_ratio_is_the_median_of_the_ratios_of_rounds() {
        // The machine was at half its speed in the second round, and another program disturbed the third.
        let of = comparison(&[
            [(10_000.0, 4_000), (9_500.0, 6_000)],
            [(5_000.0, 8_000), (4_750.0, 12_000)],
            [(10_000.0, 4_000), (2_000.0, 90_000)],
        ]);
        assert_eq!(of.deliveries, Spread { median: 0.95, min: 0.2, max: 0.95 });
        assert_eq!(of.p99, Spread { median: 1.5, min: 1.5, max: 22.5 });
        assert_eq!(of.median(|round| round.alone.deliveries_per_second), 10_000.0);
    }

    #[test]
    fn guards_are_compared_only_if_every_round_has_both() {
        let rounds = comparison(&[[(10_000.0, 4_000), (9_500.0, 6_000)], [(10_000.0, 4_000), (9_500.0, 6_000)]]).rounds;
        let of = |rounds: Vec<Round>| Comparison::of(Kind::Slow, 40, rounds).guards;
        let with = |round: &Round| Round { beside_without_guards: Some(arm(10_000.0, 3_000)), ..round.clone() };
        assert_eq!(of(vec![with(&rounds[0]), rounds[1].clone()]), None);
        let (ratio, p99) = (Spread::of([0.95]), Spread::of([2.0]));
        assert_eq!(of(rounds.iter().map(with).collect()), Some(GuardsCompared { deliveries: ratio, p99 }));
    }

    #[test]
    fn first_attempts_are_spread_evenly() {
        let delays = [0, 1, 2, 3].map(|number| first_delay(number, 4, Duration::from_secs(60)));
        assert_eq!(delays, [0, 15_000, 30_000, 45_000]);
    }
}

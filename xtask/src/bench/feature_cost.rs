//! The cost of a feature: the pipeline with it on and with it off, in turns.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Result;
use bytes::Bytes;
use serde::Serialize;

use super::pipeline::{self, Load};
use super::scrape::{Scraper, scrape};
use super::world::{Variant, World};
use crate::http::{Reply, Request, Respond, Server};
use crate::stats::Spread;

/// A feature of the service whose cost is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Feature {
    /// All guards.
    Guards,
    /// The counts for `/metrics`, with a scrape every second, the events for `/events`, and the log.
    Observability,
    /// A scrape of `/metrics` every second.
    Scrapes,
    /// Spans of all tasks, exported to a receiver on loopback that accepts everything.
    Traces,
    /// This build, compared with another program.
    Build,
}

impl Feature {
    /// Its name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Feature::Guards => "guards",
            Feature::Observability => "metrics, events and log",
            Feature::Scrapes => "scrapes",
            Feature::Traces => "traces",
            Feature::Build => "this build",
        }
    }

    /// The arguments of `redrive serve` that turn it off.
    fn off(self) -> &'static [&'static str] {
        match self {
            Feature::Guards => &["--budget", "off", "--breaker", "off", "--concurrency", "fixed"],
            Feature::Observability => &["--metrics", "off", "--events", "0", "--log-level", "error"],
            // Scrapes come from outside, traces are off unless a receiver is configured, and the other program has the same arguments.
            Feature::Scrapes | Feature::Traces | Feature::Build => &[],
        }
    }
}

/// The pipeline with a feature on and off.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FeatureCost {
    /// The feature.
    pub feature: Feature,
    /// The store.
    pub store: String,
    /// Tasks per second with it, by round.
    pub on: Vec<f64>,
    /// Tasks per second without, by round.
    pub off: Vec<f64>,
    /// On divided by off, per round.
    pub ratio: Spread,
    /// CPU time of the service per task, on divided by off, per round.
    pub cpu_ratio: Spread,
}

/// Whether a service has a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// With its defaults.
    On,
    /// Without it.
    Off,
}

impl Switch {
    /// Both, in the order of this round (from 1 on): each is first in every other round, because the machine's speed
    /// varies.
    pub fn in_turn(round: usize) -> [Switch; 2] {
        if round % 2 == 1 { [Switch::On, Switch::Off] } else { [Switch::Off, Switch::On] }
    }

    /// Does something while services are started with or without the feature.
    pub fn apply<T>(self, feature: Feature, world: &mut World, run: impl FnOnce(&World) -> Result<T>) -> Result<T> {
        let kept = (world.serve_arguments.clone(), world.redrive.clone());
        if self == Switch::Off {
            world.serve_arguments.extend(feature.off().iter().map(|&word| word.to_owned()));
            if let (Feature::Build, Some(other)) = (feature, &world.other_binary) {
                world.redrive = other.clone();
            }
        }
        let done = run(world);
        (world.serve_arguments, world.redrive) = kept;
        done
    }
}

/// Measures the pipeline of `variant` in every round.
pub fn measure(
    feature: Feature,
    world: &mut World,
    variant: Variant,
    load: &Load,
    rounds: usize,
) -> Result<FeatureCost> {
    let receiver = SpanReceiver::start()?;
    let (mut on, mut off) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        for switch in Switch::in_turn(round) {
            world.variables = receiver.variables(feature, switch);
            let of = switch.apply(feature, world, |world| measure_once(feature, switch, world, variant, load))?;
            eprintln!(
                "round {round}/{rounds}: {} {switch:?}: {:.0} tasks/s, {:.1} CPU µs/task",
                feature.name(),
                of.tasks_per_second,
                of.cpu_us_per_task
            );
            let measured = if switch == Switch::On { &mut on } else { &mut off };
            measured.push(of);
        }
    }
    world.variables = Vec::new();
    let rates = |rounds: &[pipeline::Round]| rounds.iter().map(|round| round.tasks_per_second).collect::<Vec<_>>();
    let cpu = |rounds: &[pipeline::Round]| rounds.iter().map(|round| round.cpu_us_per_task).collect::<Vec<_>>();
    Ok(FeatureCost {
        feature,
        store: variant.name(),
        ratio: Spread::ratio(&rates(&on), &rates(&off)),
        cpu_ratio: Spread::ratio(&cpu(&on), &cpu(&off)),
        on: rates(&on),
        off: rates(&off),
    })
}

/// A receiver of spans that accepts everything.
struct SpanReceiver(Server);

/// An empty document, which in OTLP says that everything was accepted.
const ACCEPTED: Bytes = Bytes::from_static(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");

struct AcceptAll;

impl Respond for AcceptAll {
    fn respond(&self, _: &Request<'_>) -> Reply {
        Reply::Now(ACCEPTED)
    }
}

impl SpanReceiver {
    fn start() -> Result<Self> {
        Ok(SpanReceiver(Server::start("spans", Arc::new(AcceptAll))?))
    }

    /// The variables that have a service export its spans, if that is the feature and it is on.
    fn variables(&self, feature: Feature, switch: Switch) -> Vec<(String, String)> {
        match (feature, switch) {
            (Feature::Traces, Switch::On) => {
                vec![("OTEL_EXPORTER_OTLP_ENDPOINT".to_owned(), format!("http://{}", self.0.address()))]
            }
            _ => Vec::new(),
        }
    }
}

/// Prints how many spans were exported and dropped: what is dropped costs less.
fn print_spans(address: SocketAddr) -> Result<()> {
    let metrics = scrape(address)?;
    let counts: Vec<&str> = metrics.lines().filter(|line| line.starts_with("redrive_spans_total")).collect();
    eprintln!("  {}", counts.join(", "));
    Ok(())
}

/// One measurement of a fresh service. Metrics that are on are also scraped.
fn measure_once(
    feature: Feature,
    switch: Switch,
    world: &World,
    variant: Variant,
    load: &Load,
) -> Result<pipeline::Round> {
    let service = world.start(variant)?;
    let is_scraped = matches!(feature, Feature::Observability | Feature::Scrapes) && switch == Switch::On;
    let scraper = service.addresses().first().filter(|_| is_scraped).map(|address| Scraper::start(*address));
    let round = pipeline::measure(world, variant, &service, load)?;
    scraper.map(Scraper::stop).transpose()?;
    if let (Feature::Traces, Switch::On, Some(address)) = (feature, switch, service.addresses().first()) {
        print_spans(*address)?;
    }
    Ok(round)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_first_in_every_other_round() {
        assert_eq!([1, 2, 3].map(|round| Switch::in_turn(round)[0]), [Switch::On, Switch::Off, Switch::On]);
    }
}

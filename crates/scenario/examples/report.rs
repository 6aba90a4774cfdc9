//! Writes a few reports into a directory, to be looked at: `cargo run --release --example report -- DIRECTORY`.

use std::path::Path;
use std::time::Duration;

use redrive_core::Date;
use redrive_core::backoff::Backoff;
use redrive_core::jitter::Jitter;
use redrive_core::policy::{Context, Policy, Spec};
use redrive_core::{breaker, budget};
use redrive_scenario::{Contender, Guards, Latencies, Manner, Outage, World, occ, report, run};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let directory = std::env::args().nth(1).ok_or("name a directory to write to")?;
    let directory = Path::new(&directory);
    std::fs::create_dir_all(directory)?;
    write(directory, "three", outage(Manner::Refuse), three())?;
    write(directory, "two", World { over: Duration::ZERO, ..outage(Manner::Hang) }, three().split_off(1))?;
    write(directory, "eight", outage(Manner::Fail), eight())?;
    write(directory, "calm", World { outages: Vec::new(), ..outage(Manner::Refuse) }, three())?;
    write(directory, "one", World::default(), three().split_off(2))?;
    write(directory, "often", often(), three())?;
    write(directory, "long", long(), three().split_off(1))?;
    contention(directory)
}

fn write(directory: &Path, name: &str, world: World, contenders: Vec<Contender>) -> Result<(), Failure> {
    let comparison = run(world, contenders, 7, |_| {})?;
    let command = "redrive simulate --policy fixed --policy full --policy guarded --budget --breaker --concurrency 20 \
                   --clients 20000 --over 60s --capacity 500 --outage 10s-40s --seed 7 --out report.html";
    let page = report::page(&comparison, command, Date::try_new(2026, 11, 16)?);
    Ok(std::fs::write(directory.join(format!("{name}.html")), page)?)
}

fn contention(directory: &Path) -> Result<(), Failure> {
    let settings = occ::Settings { clients: (1..=20).map(|step| 5 * step).collect(), runs: 100, seed: 7 };
    let points = occ::run(&settings, |_, _| {})?;
    let page = report::occ_page(&settings, &points, "redrive simulate --scenario occ --seed 7 --out report.html");
    Ok(std::fs::write(directory.join("occ.html"), page)?)
}

fn outage(manner: Manner) -> World {
    let (from, to) = (Duration::from_secs(10), Duration::from_secs(40));
    World {
        clients: 20_000,
        over: Duration::from_secs(60),
        capacity: 500,
        queue: 500,
        latency: Latencies::LogNormal { median: Duration::from_millis(50), p99: Duration::from_millis(400) },
        outages: vec![Outage { from, to, manner }],
        retry_after: None,
    }
}

/// Down every ten seconds, each time in another manner.
fn often() -> World {
    let outage = |number: u64| Outage {
        from: Duration::from_secs(10 * number + 4),
        to: Duration::from_secs(10 * number + 8),
        manner: Manner::ALL[number as usize % Manner::ALL.len()],
    };
    World { outages: (0..6).map(outage).collect(), ..World::default() }
}

/// A day, and two hours of it without the dependency.
fn long() -> World {
    let (from, to) = (Duration::from_secs(8 * 3_600), Duration::from_secs(10 * 3_600));
    let outages = vec![Outage { from, to, manner: Manner::Hang }];
    World { clients: 50_000, over: Duration::from_secs(24 * 3_600), capacity: 10, outages, ..World::default() }
}

fn three() -> Vec<Contender> {
    let guards = Guards {
        budget: Some(budget::Settings::default()),
        breaker: Some(breaker::Settings::default()),
        concurrency: Some(20),
    };
    vec![
        Contender::new("fixed 1s, no jitter", fixed(1_000)),
        Contender::new("exponential, full jitter", patient(Jitter::Full)),
        Contender { guards, ..Contender::new("full jitter, guarded", patient(Jitter::Full)) },
    ]
}

fn eight() -> Vec<Contender> {
    let mut all = three();
    let guards = Guards { concurrency: Some(20), ..Guards::default() };
    let sync = Policy::resolve(&Spec { context: Some(Context::Sync), ..Spec::default() }).unwrap_or_default();
    all.extend([
        Contender::new("exponential, no jitter", patient(Jitter::None)),
        Contender::new(
            "exponential with equal jitter as the payments team has had it since 2019",
            patient(Jitter::Equal),
        ),
        Contender::new("decorrelated", patient(Jitter::Decorrelated)),
        Contender { guards, ..Contender::new("concurrency limit only", patient(Jitter::Full)) },
        Contender {
            guards: Guards { budget: Some(budget::Settings::default()), ..Guards::default() },
            ..Contender::new("sync preset <b> & budget", sync)
        },
    ]);
    all
}

fn fixed(millis: u64) -> Policy {
    let backoff = Backoff::Fixed { delay: Duration::from_millis(millis) };
    Policy { backoff, jitter: Jitter::None, max_attempts: 40, ..Policy::default() }
}

fn patient(jitter: Jitter) -> Policy {
    Policy { jitter, max_attempts: 8, ..Policy::default() }
}

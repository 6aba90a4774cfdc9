//! Runs a target repeatedly, and saves an input that broke it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::catch::{Broken, run};
use crate::mutate;
use crate::shrink::shrink;
use crate::target::Target;

/// The longest time for one input. One that takes longer has broken a property: everything has a bound.
const LONGEST: Duration = Duration::from_secs(30);
/// The most bytes of an input that are printed.
const SHOWN: usize = 2_000;

/// How long to run, and where to save an input that breaks a property.
#[derive(Debug, Clone)]
pub struct Hunt {
    /// The seed: every input is made from it and the input's number.
    pub seed: u64,
    /// The number of the first input.
    pub first: u64,
    /// The most inputs.
    pub executions: u64,
    /// The most time.
    pub within: Duration,
    /// Where an input that breaks a property is saved.
    pub directory: PathBuf,
}

/// The result of a hunt.
#[derive(Debug)]
pub struct Outcome {
    /// How many inputs were tried.
    pub executions: u64,
    /// How long that took.
    pub took: Duration,
    /// The longest that one input took.
    pub slowest: Duration,
    /// The broken property, with the input and how to replay it.
    pub broken: Option<String>,
}

/// Runs `target` until a property is broken, or the time or the number of inputs is used up.
pub fn hunt(target: &Target, hunt: &Hunt) -> Result<Outcome> {
    let samples = (target.samples)();
    let watchdog = Watchdog::start(target, hunt);
    let started = Instant::now();
    let mut outcome = Outcome { executions: 0, took: Duration::ZERO, slowest: Duration::ZERO, broken: None };
    while outcome.executions < hunt.executions && started.elapsed() < hunt.within {
        let number = hunt.first + outcome.executions;
        let input = mutate::input(target, &samples, hunt.seed, number);
        let began = Instant::now();
        watchdog.watch(Some((began, number, input.clone())));
        let ran = run(target, &input);
        watchdog.watch(None);
        outcome.slowest = outcome.slowest.max(began.elapsed());
        outcome.executions += 1;
        if let Err(broken) = ran {
            let input = shrink(target, &input);
            // The smaller input may break another property, and it is the one that is saved.
            let broken = run(target, &input).err().unwrap_or(broken);
            outcome.broken = Some(report(target, hunt, number, &broken, &input)?);
            break;
        }
    }
    outcome.took = started.elapsed();
    Ok(outcome)
}

/// Saves the input and returns the full report.
fn report(target: &Target, hunt: &Hunt, number: u64, broken: &Broken, input: &[u8]) -> Result<String> {
    let name = target.name;
    let file = save(name, hunt, number, input)?;
    let shown = &input[..input.len().min(SHOWN)];
    Ok(format!(
        "{name}, seed {}, input {number}: {}\n  at {}\n  input, {} bytes: \"{}\"\n  saved as {file}\n  \
         replay: cargo xtask fuzz --target {name} --input {file}",
        hunt.seed,
        broken.message,
        broken.place,
        input.len(),
        shown.escape_ascii(),
    ))
}

fn save(name: &str, hunt: &Hunt, number: u64, input: &[u8]) -> Result<String> {
    let directory = &hunt.directory;
    std::fs::create_dir_all(directory).with_context(|| format!("making the directory {}", directory.display()))?;
    let file = directory.join(format!("{name}-{}-{number}", hunt.seed));
    std::fs::write(&file, input).with_context(|| format!("saving the input as {}", file.display()))?;
    Ok(file.display().to_string())
}

/// Ends the process when one input takes too long: nothing else can end an endless loop.
struct Watchdog(Arc<Mutex<Option<UnderWay>>>);

/// When an input began, its number, and the input.
type UnderWay = (Instant, u64, Vec<u8>);

impl Watchdog {
    fn start(target: &Target, hunt: &Hunt) -> Self {
        let watched = Arc::new(Mutex::new(None::<UnderWay>));
        let (weak, name, hunt) = (Arc::downgrade(&watched), target.name, hunt.clone());
        std::thread::spawn(move || {
            while let Some(watched) = weak.upgrade() {
                if let Some((began, number, input)) = &*held(&watched)
                    && began.elapsed() > LONGEST
                {
                    let saved = save(name, &hunt, *number, input).unwrap_or_else(|error| format!("{error:#}"));
                    eprintln!("{name}, seed {}, input {number}: took longer than {LONGEST:?}; {saved}", hunt.seed);
                    std::process::exit(1);
                }
                drop(watched);
                std::thread::sleep(Duration::from_secs(1));
            }
        });
        Watchdog(watched)
    }

    fn watch(&self, under_way: Option<UnderWay>) {
        *held(&self.0) = under_way;
    }
}

fn held(watched: &Mutex<Option<UnderWay>>) -> MutexGuard<'_, Option<UnderWay>> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}

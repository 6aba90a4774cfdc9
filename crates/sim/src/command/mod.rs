//! The command line: hunts, replays, and tests of planted bugs.

mod hunt;
mod planted;
mod profile;
mod replay;
mod say;

use std::time::Duration;

use clap::Parser;
use redrive_planted::{Bug, IS_PLANTED};
use redrive_sim::plan::{Ask, Families, Keep};
use redrive_sim::shrink::Shrunk;

pub(crate) use profile::Profile;

/// Try to break Redrive: years of crashes in minutes, every failure replayable from its seed
///
/// Runs seed after seed until the time is over or an invariant is broken; then makes the failure smaller and prints the
/// seed, the invariant by its number in ARCHITECTURE.md, what happened, and the command that replays it.
///
/// Examples:
///   cargo xtask sim
///   cargo xtask sim --for 600 --first 100000
///   cargo xtask sim --profile crash --nodes 3
///   cargo xtask sim --faults crash,store --hours 2
///   cargo xtask sim --seed 17
///   cargo xtask sim --planted
#[derive(Debug, Parser)]
#[command(name = "cargo xtask sim", bin_name = "cargo xtask sim", verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// Replay this one seed exactly, and print what happens if an invariant is broken (see also --whole)
    #[arg(long, value_name = "N", conflicts_with_all = ["seeds", "first", "time", "planted"])]
    seed: Option<u64>,
    /// Keep only these parts of the seed's plan (e3 is an errand, e3.1 a follow-up of it, r5 a use of a record, f7
    /// a fault)
    #[arg(long, value_name = "PARTS", requires = "seed")]
    keep: Option<Keep>,
    /// The random choices for the parts that are kept, as printed with a shrunk failure
    #[arg(long, value_name = "N", requires = "seed", default_value_t = 0)]
    luck: u64,
    /// The first seed of a hunt
    #[arg(long, value_name = "N", default_value_t = 1)]
    first: u64,
    /// At most this many seeds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: Option<u64>,
    /// For at most this many seconds [default: 60, unless --seeds is given]
    #[arg(long = "for", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    time: Option<u64>,
    /// Run each seed twice, and check that both runs are the same
    #[arg(long, conflicts_with_all = ["seed", "planted"])]
    twice: bool,
    /// How many nodes every world has, 1 to 5 [default: drawn from the seed]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=5))]
    nodes: Option<u64>,
    /// For how many simulated hours faults occur [default: drawn from the seed]
    #[arg(long, value_name = "HOURS", value_parser = positive)]
    hours: Option<f64>,
    /// The families of faults that may occur: all, none, or a list of crash, stop, pause, clock, store, dependency,
    /// client, schedule; with neighbours, every world is a crowd of dependencies; with records, clients use idempotency
    /// records; with alerts, sinks are told of dead letters
    #[arg(long, value_name = "FAMILIES", conflicts_with = "profile")]
    faults: Option<Families>,
    /// One family of faults by itself, in worlds in which it has effects
    #[arg(long, value_name = "NAME")]
    profile: Option<Profile>,
    /// With --seed: print every event, also if no invariant is broken
    #[arg(long, requires = "seed")]
    whole: bool,
    /// Plant one known bug after the other, and show how soon each is found
    #[arg(long, conflicts_with_all = ["keep", "time"])]
    planted: bool,
    /// Plant this bug in every world
    #[arg(long, value_name = "NAME", conflicts_with = "planted", value_parser = bug)]
    bug: Option<&'static Bug>,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(hours) if hours > 0.0 && hours <= 1_000.0 => Ok(hours),
        _ => Err("must be a number above 0, at most 1000".to_owned()),
    }
}

/// Runs the command. Returns whether every invariant held.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    if arguments.seed.is_none() {
        let is_for_one = arguments.keep.is_some() || arguments.whole || arguments.luck != 0;
        anyhow::ensure!(!is_for_one, "--keep, --luck and --whole are about one seed: give it with --seed N");
    }
    let ask = arguments.ask();
    if arguments.planted {
        anyhow::ensure!(IS_PLANTED, "this was built without its bugs: use `cargo xtask sim --planted`");
        return planted::run(arguments, &ask);
    }
    match arguments.seed {
        Some(seed) => replay::run(seed, &ask, arguments),
        None => hunt::run(&ask, arguments),
    }
}

impl Arguments {
    fn ask(&self) -> Ask {
        let base = self.profile.map(Profile::ask).unwrap_or_default();
        Ask {
            nodes: self.nodes.map(|nodes| nodes as usize).or(base.nodes),
            exclusive: base.exclusive,
            families: self.faults.clone().or(base.families),
            hours: self.hours.or(base.hours),
            bug: self.bug,
        }
    }

    fn time(&self) -> Option<Duration> {
        match (self.time, self.seeds) {
            (Some(seconds), _) => Some(Duration::from_secs(seconds)),
            (None, Some(_)) => None,
            (None, None) => Some(Duration::from_secs(60)),
        }
    }

    /// The command that replays this seed in the same worlds.
    fn command(&self, seed: u64, shrunk: Option<&Shrunk>) -> String {
        let mut command = format!("cargo xtask sim --seed {seed}");
        if let Some(profile) = self.profile {
            command += &format!(" --profile {profile}");
        }
        if let Some(faults) = &self.faults {
            command += &format!(" --faults {faults}");
        }
        if let Some(nodes) = self.nodes {
            command += &format!(" --nodes {nodes}");
        }
        if let Some(hours) = self.hours {
            command += &format!(" --hours {hours}");
        }
        if let Some(bug) = self.bug {
            command += &format!(" --bug {}", bug.name);
        }
        if let Some(Shrunk { keep, luck, .. }) = shrunk {
            command += &format!(" --keep {keep} --luck {luck}");
        }
        command
    }
}

/// The bug with this name.
fn bug(name: &str) -> Result<&'static Bug, String> {
    if !IS_PLANTED {
        return Err("this was built without its bugs: use `cargo xtask sim --bug NAME`".to_owned());
    }
    redrive_planted::named(name).ok_or_else(|| {
        let names: Vec<&str> = redrive_planted::all().iter().map(|bug| bug.name.as_str()).collect();
        format!("there is no such bug to plant; there are {}", names.join(", "))
    })
}

//! The options of `cargo xtask bench idempotency`.

use std::time::Duration;

use clap::Args;

use crate::bench::options::Store;
use crate::bench::world::Setup;

/// The options of `cargo xtask bench idempotency`.
#[derive(Debug, Args)]
pub struct Options {
    /// The store
    #[arg(long, value_enum, default_value_t = Store::Sqlite)]
    pub store: Store,
    /// Rounds; in each, every program is measured once
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// How long a program is measured in a round
    #[arg(long, default_value_t = 5.0, value_name = "SECONDS")]
    pub seconds: f64,
    /// Callers at once, each with one kept connection; the plain program has as many connections to the database, at most 64
    #[arg(long, default_value_t = 256)]
    pub callers: usize,
    /// Live records in the full store; 0 leaves it out
    #[arg(long, default_value_t = 5_000_000, value_name = "RECORDS")]
    pub preload: u64,
    /// Print one JSON document on standard output; progress goes to standard error
    #[arg(long)]
    pub json: bool,
}

/// The load of one measurement.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Callers at once.
    pub callers: usize,
    /// How long they call.
    pub duration: Duration,
}

impl Options {
    /// The load of these options.
    pub fn load(&self) -> Load {
        Load { callers: self.callers.max(1), duration: Duration::from_secs_f64(self.seconds.max(0.1)) }
    }

    /// The setup of the services.
    pub fn setup(&self) -> Setup {
        Setup { store: self.store, schedule: None, serve_arguments: Vec::new() }
    }

    /// Longer than the whole run should take.
    pub fn time_limit(&self) -> Duration {
        let measured = self.rounds as f64 * 3.0 * (self.seconds + 5.0);
        Duration::from_secs_f64(300.0 + measured * 3.0 + self.preload as f64 / 5_000.0)
    }
}

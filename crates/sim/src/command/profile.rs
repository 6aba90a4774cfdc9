//! Profiles: one family of faults by itself, in worlds in which it has effects.

use std::fmt;

use clap::ValueEnum;
use redrive_sim::plan::{Ask, Families, Family};

/// A profile: a kind of world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Profile {
    /// Nothing goes wrong at all
    Calm,
    /// Processes die between two effects
    Crash,
    /// Processes are stopped and started
    Stop,
    /// Processes are suspended past their leases
    Pause,
    /// Clocks drift apart and jump
    Clock,
    /// The store is late, fails, or loses answers after the commit
    Store,
    /// Dependencies fail, and nothing else does
    Dependency,
    /// Clients give up, retry, cancel, replay, and try to use tasks of other tenants
    Client,
    /// Schedules are lost
    Schedule,
    /// Many dependencies with backlogs, most of them slow or dead, and few slots
    Neighbours,
    /// Few dependencies that fail again and again, many retries, and guards that hold them back
    Guards,
    /// Idempotency records: owners that stall, crash and come back, duplicates, operators and cleaners
    Records,
    /// Alerts: the notifier of dead letters, sinks that fail, processes that die in between
    Alerts,
    /// Everything, for days: retention and cleaning
    Long,
}

impl Profile {
    /// The settings from which this profile's plans are drawn.
    pub(crate) fn ask(self) -> Ask {
        // Most families have effects only with retries, and with clients that react to them.
        let with = |family| Families::of([family, Family::Dependency, Family::Client]);
        let families = match self {
            Profile::Calm => Families::none(),
            Profile::Crash => with(Family::Crash),
            Profile::Stop => with(Family::Stop),
            Profile::Pause => with(Family::Pause),
            Profile::Clock => with(Family::Clock),
            Profile::Store => with(Family::Store),
            Profile::Dependency => Families::of([Family::Dependency]),
            Profile::Client => Families::of([Family::Client]),
            Profile::Schedule => with(Family::Schedule),
            Profile::Neighbours => Families::of([Family::Neighbours]),
            Profile::Guards => Families::of([Family::Guards, Family::Dependency, Family::Crash]),
            Profile::Records => {
                Families::of([Family::Records, Family::Crash, Family::Pause, Family::Clock, Family::Store])
            }
            Profile::Alerts => {
                Families::of([Family::Alerts, Family::Crash, Family::Stop, Family::Store, Family::Dependency])
            }
            Profile::Long => Families::all(),
        };
        Ask { families: Some(families), hours: (self == Profile::Long).then_some(60.0), ..Ask::default() }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.to_possible_value().map(|value| value.get_name().to_owned());
        f.write_str(&name.unwrap_or_default())
    }
}

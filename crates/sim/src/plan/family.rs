//! Families of faults, each of which can be turned on by itself.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// A family of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Processes die between two effects, and are restarted.
    Crash,
    /// Processes are stopped gracefully, and started again.
    Stop,
    /// Processes are suspended past their leases, and then continue.
    Pause,
    /// Clocks drift apart and jump.
    Clock,
    /// The store answers late, fails, goes down, or loses the connection after it has committed.
    Store,
    /// Dependencies fail, stall, trickle, throttle, go down, or answer too late having done the work.
    Dependency,
    /// Clients give up early and retry, send other requests under the same key, cancel tasks.
    Client,
    /// The schedule in memory is lost.
    Schedule,
    /// Many dependencies with backlogs beside one another, most of them slow or dead all the time, and little capacity.
    Neighbours,
    /// Few dependencies that fail again and again, many retries, and guards that have to hold them back.
    Guards,
    /// Clients that use idempotency records: owners that stall, crash and come back, duplicates, operators and cleaners.
    Records,
    /// Sinks are told of dead letters, and only then the alerts count as raised. Sinks fail.
    Alerts,
}

impl Family {
    /// Every family.
    pub const ALL: [Family; 12] = [
        Family::Crash,
        Family::Stop,
        Family::Pause,
        Family::Clock,
        Family::Store,
        Family::Dependency,
        Family::Client,
        Family::Schedule,
        Family::Neighbours,
        Family::Guards,
        Family::Records,
        Family::Alerts,
    ];

    /// Its name on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Family::Crash => "crash",
            Family::Stop => "stop",
            Family::Pause => "pause",
            Family::Clock => "clock",
            Family::Store => "store",
            Family::Dependency => "dependency",
            Family::Client => "client",
            Family::Schedule => "schedule",
            Family::Neighbours => "neighbours",
            Family::Guards => "guards",
            Family::Records => "records",
            Family::Alerts => "alerts",
        }
    }
}

/// The families that may occur in a world.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Families(BTreeSet<Family>);

impl Families {
    /// All faults. Neighbours, guards, records and alerts are not among them: they make other kinds of worlds.
    pub fn all() -> Self {
        let is_world =
            |family| matches!(family, Family::Neighbours | Family::Guards | Family::Records | Family::Alerts);
        Families::of(Family::ALL.into_iter().filter(|family| !is_world(*family)))
    }

    /// No family: a world without faults.
    pub fn none() -> Self {
        Families(BTreeSet::new())
    }

    /// The given families.
    pub fn of(families: impl IntoIterator<Item = Family>) -> Self {
        Families(families.into_iter().collect())
    }

    /// Adds one family.
    pub fn and(mut self, family: Family) -> Self {
        self.0.insert(family);
        self
    }

    /// Whether this family may occur.
    pub fn has(&self, family: Family) -> bool {
        self.0.contains(&family)
    }

    /// Iterates over the families.
    pub fn iter(&self) -> impl Iterator<Item = Family> {
        self.0.iter().copied()
    }
}

impl fmt::Display for Families {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        let names: Vec<&str> = self.iter().map(Family::as_str).collect();
        f.write_str(&names.join(","))
    }
}

/// A name that is not one of a family.
#[derive(Debug)]
pub struct UnknownFamily(String);

impl fmt::Display for UnknownFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Family::ALL.iter().map(|family| family.as_str()).collect();
        write!(f, "there is no family of faults {:?}; there are all, none, {}", self.0, names.join(", "))
    }
}

impl std::error::Error for UnknownFamily {}

impl FromStr for Families {
    type Err = UnknownFamily;

    fn from_str(text: &str) -> Result<Self, UnknownFamily> {
        match text {
            "all" => Ok(Families::all()),
            "none" => Ok(Families::none()),
            names => names
                .split(',')
                .map(|name| {
                    let family = Family::ALL.into_iter().find(|family| family.as_str() == name);
                    family.ok_or_else(|| UnknownFamily(name.to_owned()))
                })
                .collect::<Result<_, _>>()
                .map(Families),
        }
    }
}

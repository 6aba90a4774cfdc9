//! Tally: the counts for the reports.

use std::fmt;
use std::ops::AddAssign;
use std::time::Duration;

macro_rules! tally {
    ($($(#[$doc:meta])* $name:ident: $label:literal,)*) => {
        /// The counts of one or more runs.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
        pub struct Tally {
            /// Simulated time.
            pub simulated: Duration,
            $($(#[$doc])* pub $name: u64,)*
        }

        impl AddAssign<&Tally> for Tally {
            fn add_assign(&mut self, other: &Tally) {
                self.simulated += other.simulated;
                $(self.$name += other.$name;)*
            }
        }

        impl Tally {
            /// Every count with its name.
            pub fn rows(&self) -> Vec<(&'static str, u64)> {
                vec![$(($label, self.$name),)*]
            }
        }
    };
}

tally! {
    /// Worlds.
    worlds: "worlds",
    /// Steps of the executor.
    steps: "steps",
    /// Submissions that were acknowledged.
    acknowledged: "submissions acknowledged",
    /// Calls of clients, of any kind.
    calls: "calls by clients",
    /// Calls that clients gave up on.
    given_up: "calls that clients gave up on",
    /// Attempts on the wire.
    sends: "sends on the wire",
    /// Sends that were withdrawn before their first byte.
    withdrawn: "sends withdrawn before their first byte",
    /// Claims that were given back uncounted.
    given_back: "claims given back",
    /// Tasks that ended because they waited past their deadline.
    overdue: "tasks that waited past their deadline",
    /// Waiting tasks that ended because a retry budget was spent.
    suppressed: "waiting tasks that a spent budget ended",
    /// Attempts that were taken over because their lease expired, or given up at a stop.
    takeovers: "attempts cut off or taken over",
    /// Settlements that came too late.
    leases_lost: "settlements refused by the fence",
    /// Reservations of idempotency records.
    reservations: "reservations of idempotency records",
    /// Changes of idempotency records by owners that were replaced.
    fenced: "changes of idempotency records that were fenced",
    /// Tasks that were delivered.
    succeeded: "tasks delivered",
    /// Tasks that ended as dead letters.
    dead_letters: "dead letters",
    /// Alerts.
    alerts: "alerts raised",
    /// Notifications of alerts that arrived at their sinks.
    notifications: "notifications received by sinks",
    /// Replays that took effect.
    replays: "replays",
    /// Cancels that took effect.
    cancels: "cancels",
    /// Processes that died.
    crashes: "crashes",
    /// Processes that were stopped.
    stops: "stops",
    /// Processes that were suspended.
    pauses: "pauses",
    /// Clocks that jumped or began to drift.
    clock_faults: "clocks that jumped or drifted",
    /// Store calls that failed with no effect.
    store_failures: "store calls that failed",
    /// Store calls that took effect and whose answer was lost.
    answers_lost: "store answers lost after the commit",
    /// Store calls that were late.
    store_late: "store calls that were late",
    /// Times that the store lost power.
    power_losses: "power losses of the store",
    /// Sends to a dependency that behaved badly.
    bad_moods: "sends that met a bad dependency",
    /// Schedules that were lost.
    schedules_lost: "schedules lost",
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  {:<44}{:>16.1}", "simulated hours", self.simulated.as_secs_f64() / 3_600.0)?;
        for (label, count) in self.rows() {
            writeln!(f, "  {label:<44}{count:>16}")?;
        }
        Ok(())
    }
}

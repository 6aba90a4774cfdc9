//! The engine: the loops that deliver tasks by claiming, sending, settling, rescuing, announcing and cleaning.
//!
//! Everything that a simulator must replace is injected: [`clock::Clock`], [`entropy::Entropy`], [`spawner::Spawner`],
//! [`redrive_store::Store`], [`transport::Transport`] and [`bodies::Bodies`]. The decisions are pure functions in
//! `redrive-core`.
//!
//! | file | its job |
//! | --- | --- |
//! | `submit` | accepts tasks; one that is due now and whose lane has room is claimed in the same commit |
//! | `lanes` | combines schedule, admission and slots: what the claimer, the submits and the attempts call |
//! | `schedule` | which lane has work due when, and which lane claims next |
//! | `admission` | how much of the capacity a lane may use now, and the reason for the limit |
//! | `slots` | what is on the wire, and which lanes wait for a slot |
//! | `claimer` | sleeps until a lane with room has due work, claims it, starts the attempts |
//! | `attempt` | one attempt: the hold until it is due, the slot, the last checks, the send, the verdict, the settlement |
//! | `first_byte` | the last check, once the connection is established |
//! | `in_flight` | the attempts of this process, and the signals to them: cancelled, released |
//! | `overdue` | ends tasks that waited past their deadline |
//! | `suppressor` | ends retries that a caller waits for when they are due and the retry budget is spent |
//! | `settle` | stores an attempt's end, and updates what depends on it in memory |
//! | `gone_dependency` | tells of a dependency that seems to be gone for good, and pauses it if the policy says so |
//! | `guard_exchange` | shares the guards with the other processes over the store |
//! | `guard_upkeep` | restores the guards at the start, and has the store keep what changed |
//! | `events` | typed events: the log is written from them |
//! | `announcer` | raises the alert of every dead letter, at least once, whatever crashes |
//! | `alert_relay` | what tells people of dead letters, before their alerts count as raised |
//! | `rescuer` | takes over attempts whose lease expired |
//! | `abandoned_leases` | the claims of this process that no attempt will settle any more |
//! | `cleaner` | removes ended tasks after their retention |
//! | `store_backoff` | the wait between calls of a store that fails |
//! | `store_outage` | one outage of the store, reported once however many calls fail in it |
//! | `throttled_report` | a failure that affects many tasks at once: counted, and reported at most every 10 s |
//! | `collector` | deletes stored bodies that no task refers to |
//! | `peers` | other processes over a shared store: receives their notifications, and sends heartbeats |
//! | `common_clock` | the time that all processes over one store agree on |
//! | `policies` | policy versions, cached and resolved |
//! | `waiters`, `watch`, `loops` | waiting: for a task's end, for a value, for the loops to end |
//!
//! Not here: HTTP, SQL, configuration files.

#![forbid(unsafe_code)]

mod abandoned_leases;
mod admission;
mod alert_relay;
mod announcer;
mod attempt;
pub mod bodies;
mod claimer;
mod cleaner;
pub mod clock;
mod collector;
mod common_clock;
mod engine_state;
pub mod entropy;
pub mod events;
mod first_byte;
mod gone_dependency;
mod guard_exchange;
mod guard_upkeep;
mod handle;
mod in_flight;
mod lane_scan;
mod lanes;
mod loops;
mod options;
mod overdue;
mod peers;
pub mod policies;
mod rescuer;
mod schedule;
mod settle;
mod slots;
pub mod spawner;
mod store_backoff;
mod store_outage;
mod submit;
mod suppressor;
mod task_ids;
mod throttled_report;
pub mod transport;
mod waiters;
mod watch;

pub use alert_relay::{AlertRelay, Relaying};
pub use common_clock::{ClockState, CommonClock};
pub use handle::{Handle, Parts, StartError, start};
pub use lanes::{AttemptCounts, LaneReport, Latencies, Waiting, WaitingFor};
pub use options::{InvalidOption, LogOptions, Options, Presence, Steps, SuccessLevel, TraceOptions};
pub use submit::ValidatedTask;
pub use watch::Watch;

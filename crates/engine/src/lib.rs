//! The loops that see tasks through: claiming, sending, settling, rescuing, announcing, cleaning.
//!
//! Everything that a simulator must replace is injected: [`clock::Clock`], [`entropy::Entropy`], [`spawner::Spawner`],
//! [`redrive_store::Store`], [`transport::Transport`] and [`bodies::Bodies`]. What the engine decides, it decides in `redrive-core`.
//!
//! | file | its job |
//! | --- | --- |
//! | `submit` | accepts tasks; one that is due now and whose lane has room is claimed in the same commit |
//! | `lanes` | where schedule, admission and slots meet: what the claimer, the submits and the attempts call |
//! | `schedule` | which lane has work due when, and whose turn it is |
//! | `admission` | how much of the capacity a lane may have now, and why not more |
//! | `slots` | what is on the wire, and who waits for a slot |
//! | `claimer` | sleeps until a lane with room has due work, claims it, starts the attempts |
//! | `attempt` | one attempt: the hold until it is due, the slot, the last checks, the send, the verdict, the settlement |
//! | `first_byte` | the very last check, when the connection stands |
//! | `in_flight` | the attempts of this process, and what they are told: cancelled, wanted now |
//! | `overdue` | ends tasks that waited past their deadline |
//! | `settle` | writes an attempt's end down, and what follows from it in memory |
//! | `events` | what happened, typed: the log is made from it |
//! | `announcer` | raises the alert of every dead letter, at least once, whatever crashes |
//! | `rescuer` | takes over attempts whose lease ran out |
//! | `abandoned_leases` | the claims of this process that nobody settles any more |
//! | `cleaner` | removes ended tasks after their retention |
//! | `outage` | how long to leave a store alone that fails |
//! | `store_outage` | one outage of the store, reported once however many calls fail in it |
//! | `throttled_report` | what goes wrong for many tasks at once, counted so that the log says it now and then |
//! | `collector` | deletes stored bodies that no task refers to |
//! | `peers` | other processes over a shared store: hears them, and lets them know of this one |
//! | `common_clock` | the time that all processes over one store agree on |
//! | `policies` | policy versions, cached and resolved |
//! | `waiters`, `watched`, `loops` | waiting: for a task's end, for a value, for the loops to end |
//!
//! Not here: HTTP, SQL, configuration files.

#![forbid(unsafe_code)]

mod abandoned_leases;
mod admission;
mod announcer;
mod attempt;
pub mod bodies;
mod claimer;
mod cleaner;
pub mod clock;
mod collector;
mod common_clock;
pub mod entropy;
pub mod events;
mod first_byte;
mod handle;
mod in_flight;
mod lane_scan;
mod lanes;
mod loops;
mod options;
mod outage;
mod overdue;
mod peers;
pub mod policies;
mod rescuer;
mod schedule;
mod settle;
mod shared;
mod slots;
pub mod spawner;
mod store_outage;
mod submit;
mod task_ids;
mod throttled_report;
pub mod transport;
mod waiters;
mod watched;

pub use common_clock::{ClockState, CommonClock};
pub use handle::{Handle, Parts, StartError, start};
pub use options::{InvalidOption, Options, Presence, Steps};
pub use submit::ValidatedTask;

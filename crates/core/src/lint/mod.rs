//! The retry standard's linter: what in a policy, or in what a service declares of its retries, breaks which rule.
//!
//! Pure: it judges values and knows nothing of files. A [`Finding`] says where by a path of field names; whoever read
//! the values from somewhere knows which line that is.
//!
//! - [`Rule`]: the ten rules, R-1 to R-10, with what it takes to explain them.
//! - [`Check`]: the catalogue: every single thing that is looked for, with the gate that it is stopped at.
//! - [`policy()`]: judges a policy, [`service()`] what a service declares (all rules).
//!
//! Not here: reading files and showing findings (`redrive-lint`), refusing policies (`redrive-server`).

mod authentication;
mod backoff;
mod budget;
mod check;
mod classification;
mod dead_letters;
mod declared;
mod finding;
mod idempotency;
mod observability;
mod policy;
mod retried;
mod rule;
mod service;
mod word;

pub use check::{Check, Gate};
pub use declared::{
    Authentication, BudgetPer, DeadLetterQueue, Dedupe, DedupeBy, Dependency, Idempotency, Kept, Key, KeyPer, Logging,
    Method, PolicyChoice, RetryAfter, RetryBudget, Service, Span, WhenExhausted, WhenExpired, WhenSpent,
};
pub use finding::{Finding, Permission, PermissionState, Step};
pub use idempotency::unkeyed_task;
pub use policy::policy;
pub use retried::{Retried, Standing};
pub use rule::Rule;
pub use service::{NamedPolicies, service};

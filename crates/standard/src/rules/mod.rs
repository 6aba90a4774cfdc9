//! The rules of the retry standard: which of them a policy breaks, or what a service declares of its retries.
//!
//! It checks values and knows nothing of files. A [`Finding`] gives its place as a path of field names; the reader of a
//! file ([`crate::files`]) knows which line that is.
//!
//! - [`Rule`]: the ten rules, R-1 to R-10, with the text that explains each.
//! - [`Check`]: the catalogue of checks, each with its rule and the gate that stops it.
//! - [`check_policy`]: checks a policy; [`check_service`]: checks what a service declares (all rules).
//!
//! Not here: reading files and reporting findings ([`crate::files`]), refusing policies (`redrive-server`).

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
mod retry_on;
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
pub use policy::check_policy;
pub use retry_on::{RetryOn, RetryRequirement};
pub use rule::Rule;
pub use service::{NamedPolicies, check_service};

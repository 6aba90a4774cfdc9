//! The operations, one per file.
//!
//! Each is an async function over [`App`](crate::App), a [`Caller`](crate::Caller) and a typed input; it returns a
//! typed output or a
//! [`OperationError`](crate::OperationError). The REST API and the simulator call them: time and randomness come from
//! the engine's handle, and nothing here knows of HTTP.

mod await_task;
mod backlog;
mod cancel_task;
mod close_breaker;
mod delete_policy;
mod dependency;
mod get_dependency;
mod get_policy;
mod get_task;
mod health;
mod keep_body;
mod list_attempts;
mod list_dependencies;
mod list_nodes;
mod list_policies;
mod list_tasks;
mod open_breaker;
mod pause_dependency;
mod put_limits;
mod put_policy;
mod read_body;
mod replay_task;
mod reset_guards;
mod resume_dependency;
mod retry_now;
mod submit_batch;
mod submit_task;

pub use await_task::await_task;
pub use backlog::BoundedBacklog;
pub use cancel_task::cancel_task;
pub use close_breaker::close_breaker;
pub use delete_policy::delete_policy;
pub use get_dependency::get_dependency;
pub use get_policy::get_policy;
pub use get_task::get_task;
pub use health::check_ready;
pub use keep_body::keep_body;
pub use list_attempts::{AttemptPage, list_attempts};
pub use list_dependencies::{DependencyPage, list_dependencies};
pub use list_nodes::{NodeState, NodeWithState, list_nodes};
pub use list_policies::{PolicyPage, list_policies};
pub use list_tasks::{Listing, TaskFilter, count_tasks, find_tasks, list_tasks};
pub use open_breaker::open_breaker;
pub use pause_dependency::pause_dependency;
pub use put_limits::put_limits;
pub use put_policy::{Precondition, PutOutcome, RegisteredPolicy, put_policy};
pub use read_body::read_body;
pub use replay_task::replay_task;
pub use reset_guards::reset_guards;
pub use resume_dependency::resume_dependency;
pub use retry_now::retry_now;
pub use submit_batch::submit_batch;
pub use submit_task::{Acceptance, Accepted, submit_and_wait, submit_task};

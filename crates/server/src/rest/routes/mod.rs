//! The table of what is served: one file per route, which says everything about it, and this list.
//!
//! The router, `/openapi.json` and the reference page are all made from [`ROUTES`], so none can drift from the others.

mod cancel_task;
mod close_breaker;
mod delete_policy;
mod dependency_answer;
mod docs;
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
mod openapi;
mod parameters;
mod pause_dependency;
mod problems;
mod put_limits;
mod put_policy;
mod read_body;
mod replay_task;
mod reset_guards;
mod resume_dependency;
mod retry_now;
mod submit_batch;
mod submit_task;
mod task_answer;

use super::route::Route;

/// Every route, in the order of the reference.
pub(crate) static ROUTES: [&Route; 30] = [
    &submit_task::ROUTE,
    &submit_batch::ROUTE,
    &list_tasks::ROUTE,
    &get_task::ROUTE,
    &cancel_task::ROUTE,
    &retry_now::ROUTE,
    &replay_task::ROUTE,
    &list_attempts::ROUTE,
    &keep_body::ROUTE,
    &read_body::ROUTE,
    &put_policy::ROUTE,
    &list_policies::ROUTE,
    &get_policy::ROUTE,
    &delete_policy::ROUTE,
    &list_dependencies::ROUTE,
    &get_dependency::ROUTE,
    &put_limits::ROUTE,
    &pause_dependency::ROUTE,
    &resume_dependency::ROUTE,
    &open_breaker::ROUTE,
    &close_breaker::ROUTE,
    &reset_guards::ROUTE,
    &list_nodes::ROUTE,
    &health::LIVE,
    &health::READY,
    &openapi::ROUTE,
    &docs::ROUTE,
    &docs::ROOT,
    &problems::LIST,
    &problems::ROUTE,
];

#[cfg(test)]
mod tests {
    use super::ROUTES;
    use crate::rest::route::Access::{self, Administer, Operate, Public, Read, Submit};

    #[test]
    fn every_route_needs_the_access_that_is_written_here() {
        let declared: Vec<(&str, Access)> = ROUTES.iter().map(|route| (route.id, route.access)).collect();
        let expected = [
            ("submitTask", Submit),
            ("submitBatch", Submit),
            ("listTasks", Read),
            ("getTask", Read),
            ("cancelTask", Operate),
            ("retryNow", Operate),
            ("replayTask", Operate),
            ("listAttempts", Read),
            ("keepBody", Submit),
            ("readBody", Read),
            ("putPolicy", Administer),
            ("listPolicies", Read),
            ("getPolicy", Read),
            ("deletePolicy", Administer),
            ("listDependencies", Read),
            ("getDependency", Read),
            ("putLimits", Operate),
            ("pauseDependency", Operate),
            ("resumeDependency", Operate),
            ("openBreaker", Operate),
            ("closeBreaker", Operate),
            ("resetGuards", Operate),
            ("listNodes", Administer),
            ("live", Public),
            ("ready", Public),
            ("openapi", Public),
            ("docs", Public),
            ("root", Public),
            ("problems", Public),
            ("problem", Public),
        ];
        assert_eq!(declared, expected);
    }
}

//! The table of what is served: one file per route, which says everything about it, and this list.
//!
//! The router, `/openapi.json` and the reference page are all made from [`ROUTES`], so none can drift from the others.

mod add_silence;
mod cancel_task;
mod close_breaker;
mod complete_record;
mod confirm_event;
mod delete_policy;
mod delete_record;
mod dependency_answer;
mod docs;
mod event_answer;
mod fail_record;
mod follow_events;
mod get_dependency;
mod get_policy;
mod get_record;
mod get_task;
mod get_task_by_key;
mod health;
mod health_report;
mod keep_body;
mod list_alerts;
mod list_attempts;
mod list_dependencies;
mod list_inboxes;
mod list_nodes;
mod list_policies;
mod list_records;
mod list_tasks;
mod metrics;
mod open_breaker;
mod openapi;
mod parameters;
mod pause_dependency;
mod problems;
mod put_limits;
mod put_policy;
mod read_body;
mod record_answer;
mod record_event;
mod record_events;
mod record_stats;
mod release_event;
mod release_record;
mod remove_silence;
mod renew_record;
mod replay_task;
mod reserve_batch;
mod reserve_record;
mod reset_guards;
mod resume_dependency;
mod retry_now;
mod submit_batch;
mod submit_task;
mod task_answer;
mod test_sink;

use super::route::Route;

/// Every route, in the order of the reference.
pub(crate) static ROUTES: [&Route; 53] = [
    &submit_task::ROUTE,
    &submit_batch::ROUTE,
    &list_tasks::ROUTE,
    &get_task::ROUTE,
    &get_task_by_key::ROUTE,
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
    &reserve_record::ROUTE,
    &complete_record::ROUTE,
    &fail_record::ROUTE,
    &renew_record::ROUTE,
    &release_record::ROUTE,
    &reserve_batch::ROUTE,
    &get_record::ROUTE,
    &list_records::ROUTE,
    &delete_record::ROUTE,
    &record_stats::ROUTE,
    &record_event::ROUTE,
    &confirm_event::ROUTE,
    &release_event::ROUTE,
    &record_events::ROUTE,
    &list_inboxes::ROUTE,
    &list_alerts::ROUTE,
    &add_silence::ROUTE,
    &remove_silence::ROUTE,
    &test_sink::ROUTE,
    &health_report::ROUTE,
    &follow_events::ROUTE,
    &list_nodes::ROUTE,
    &health::LIVE,
    &health::READY,
    &metrics::ROUTE,
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
            ("getTaskByKey", Read),
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
            ("reserveRecord", Submit),
            ("completeRecord", Submit),
            ("failRecord", Submit),
            ("renewRecord", Submit),
            ("releaseRecord", Submit),
            ("reserveBatch", Submit),
            ("getRecord", Read),
            ("listRecords", Read),
            ("deleteRecord", Operate),
            ("recordStats", Read),
            ("recordEvent", Submit),
            ("confirmEvent", Submit),
            ("releaseEvent", Submit),
            ("recordEvents", Submit),
            ("listInboxes", Read),
            ("listAlerts", Read),
            ("addSilence", Operate),
            ("removeSilence", Operate),
            ("testSink", Operate),
            ("healthReport", Read),
            ("followEvents", Read),
            ("listNodes", Administer),
            ("live", Public),
            ("ready", Public),
            ("metrics", Public),
            ("openapi", Public),
            ("docs", Public),
            ("root", Public),
            ("problems", Public),
            ("problem", Public),
        ];
        assert_eq!(declared, expected);
    }
}

//! Invariants 11, 12 and 13: the state after the faults are over.

use super::super::history::History;
use super::{Found, Invariant};
use crate::api::is_ended;

/// The only tenant.
const TENANT: &str = "default";

pub(super) fn check(history: &History, found: &mut Found) {
    for (id, kept) in history.end.kept.iter().filter(|(_, kept)| !is_ended(&kept.task.status)) {
        let status = &kept.task.status;
        found.about(Invariant::Settles, id, format_args!("it has not ended: it is {status}"));
        // In flight: its lease was not taken over. Pending and due: it is in the store and in no node's schedule.
        let is_due = kept.task.next_attempt_at.is_some_and(|due| due * 1_000 < history.end.at);
        if status == "PENDING" && is_due {
            found.about(Invariant::ScheduleIsAnIndex, id, "it is due, and no node sends it");
        }
    }
    for death in &history.deaths {
        found.add(Invariant::Settles, death.clone());
    }
    for tenant in history.end.tenants.iter().filter(|tenant| *tenant != TENANT) {
        found.add(Invariant::TenantsApart, format!("the database has rows of the tenant {tenant:?}"));
    }
}

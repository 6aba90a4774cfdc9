//! The part that one process has in the guards of a lane that several processes share ([`shared`](crate::guards::shared)):
//! the tokens that it holds, what it has not reported yet, and when it exchanges.

use std::time::Duration;

use crate::guards::breaker::{OpenedBy, State};
use crate::guards::budget::{self, Counts, Report};
use crate::guards::shared::{Answer, BreakerChange, CLOCKS_DIFFER, Exchange};
use crate::guards::{Presence, RecentOutcomes};
use crate::time::Timestamp;

/// The least time between two exchanges for tokens.
const LEAST_WAIT: Duration = Duration::from_millis(100);
/// The wait after an exchange that failed.
const FAILED_WAIT: Duration = Duration::from_millis(500);
/// How long refunds, probes and unused tokens may stay unreported.
const REPORT_WITHIN: Duration = Duration::from_secs(1);
/// How often a process looks at a breaker that is not closed.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How long an answer about the budget is believed.
const KNOWN_FOR: Duration = Duration::from_secs(2);
/// The right to probe is renewed when it lasts no longer than this.
const RENEW_BELOW: Duration = Duration::from_secs(10);
/// How many tokens a process asks for at first, and at most.
const LEAST_WANT: u32 = 4;
const MOST_WANT: u32 = 1_024;
/// The most seconds that wait to be reported; a clock that is set back and forth could make more.
const MOST_REPORTS: usize = 4_096;

/// What one process has of the shared guards of a lane.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NodeShare {
    /// Whether there is a retry budget: without one, no token is needed.
    has_budget: bool,
    /// The width of a bucket of the budget: for so long a token is granted.
    bucket: Duration,
    /// How long what was sent matters.
    window: Duration,
    /// The tokens of the second before, which may still be sent, and those of the latest grant.
    older: Grant,
    newer: Grant,
    /// What was not reported yet, by second.
    reports: Vec<Report>,
    /// The outcomes that were not reported yet.
    pub(super) outcomes: RecentOutcomes,
    /// Whether all processes, as far as this one knows, have had no success for a while.
    are_others_failing: bool,
    /// The latest success, if it ends that and was not reported yet.
    succeeded_at: Option<Timestamp>,
    /// The first and the last attempt without success that were not reported yet.
    failed: Option<(Timestamp, Timestamp)>,
    want: u32,
    /// What the last answer said.
    known: Option<KnownBudget>,
    asked_at: Option<Timestamp>,
    /// The exchange that is under way.
    pending: Option<PendingExchange>,
    has_failed: bool,
    /// Another process changed something, or an operator.
    pub(super) must_look: bool,
    is_reset: bool,
    /// The last change of the shared breaker that this process has seen.
    pub(super) epoch: u64,
    /// What happened to this process's breaker and was not published yet.
    change: Option<BreakerChange>,
    /// Until when this process may send probes.
    pub(super) probe_until: Timestamp,
}

/// Tokens of one second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Grant {
    second: Timestamp,
    left: u32,
}

/// What is known of the budget of all processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KnownBudget {
    /// What its window counts.
    pub(super) counts: Counts,
    /// How many retries were left.
    pub(super) left: u64,
    /// Whether fewer tokens were granted than were asked for, and nothing is left.
    is_spent: bool,
    /// When that was said.
    at: Timestamp,
}

/// What must be sent again if an exchange fails.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct PendingExchange {
    want: u32,
    /// Counting a probe twice is on the safe side. Everything else would make the budget larger if it counted twice.
    probes: Vec<Report>,
    /// An outcome that counts twice changes little; failures that are lost would make the lane look healthy.
    outcomes: RecentOutcomes,
    change: Option<BreakerChange>,
    is_reset: bool,
    succeeded_at: Option<Timestamp>,
    failed: Option<(Timestamp, Timestamp)>,
}

/// What a lane of this process has on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wire {
    /// Attempts in flight.
    pub(super) in_flight: u32,
    /// How many probes of its breaker have succeeded.
    pub(super) successful_probes: u32,
}

/// What a lane of this process has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneWork {
    /// Whether something of the lane is due.
    pub is_due: bool,
    /// Whether a retry is.
    pub is_retry_due: bool,
}

impl NodeShare {
    pub(super) fn new(budget: Option<&budget::Settings>) -> Self {
        let budget::Settings { bucket, window, .. } = budget.copied().unwrap_or_default();
        NodeShare {
            has_budget: budget.is_some(),
            bucket,
            window,
            older: Grant::default(),
            newer: Grant::default(),
            reports: Vec::new(),
            outcomes: RecentOutcomes::default(),
            are_others_failing: false,
            succeeded_at: None,
            failed: None,
            want: LEAST_WANT,
            known: None,
            asked_at: None,
            pending: None,
            has_failed: false,
            must_look: false,
            is_reset: false,
            epoch: 0,
            change: None,
            probe_until: Timestamp::default(),
        }
    }

    /// How many retries may be claimed now, beside `reserved` ones. Tokens of the second before are for retries that are
    /// claimed already: a claim takes time.
    pub(super) fn claimable(&mut self, reserved: u32, now: Timestamp) -> u32 {
        self.expire(now);
        let is_granted_now = now < self.newer.second.after(self.bucket);
        let reserved = reserved.saturating_sub(self.older.left);
        if is_granted_now { self.newer.left.saturating_sub(reserved) } else { 0 }
    }

    /// Whether retries wait because the budget of all processes is spent.
    pub(super) fn is_spent(&self, now: Timestamp) -> bool {
        self.known(now).is_some_and(|known| known.is_spent)
    }

    /// What is known of the budget of all processes. It changes with every second, so an older answer says nothing.
    pub(super) fn known(&self, now: Timestamp) -> Option<KnownBudget> {
        self.known.filter(|known| now.since(known.at) <= KNOWN_FOR)
    }

    /// Whether tokens are held that may still be sent.
    pub(super) fn holds_tokens(&mut self, now: Timestamp) -> bool {
        self.expire(now);
        self.older.left + self.newer.left > 0
    }

    /// Returns all tokens.
    pub(super) fn drop_tokens(&mut self) {
        let (older, newer) = (std::mem::take(&mut self.older), std::mem::take(&mut self.newer));
        self.give_back(older);
        self.give_back(newer);
    }

    /// Uses a token for a retry that is sent now. Returns the second that it is charged to.
    pub(super) fn take(&mut self, now: Timestamp) -> Option<Timestamp> {
        self.expire(now);
        let grant = [&mut self.older, &mut self.newer].into_iter().find(|grant| grant.left > 0)?;
        grant.left -= 1;
        Some(grant.second)
    }

    /// Counts a first attempt. Returns its second.
    pub(super) fn first(&mut self, now: Timestamp) -> Timestamp {
        let report = self.report(now);
        report.firsts = report.firsts.saturating_add(1);
        report.at
    }

    /// Counts a probe, which needs no token. Returns its second.
    pub(super) fn probe(&mut self, now: Timestamp) -> Timestamp {
        let report = self.report(now);
        report.probes = report.probes.saturating_add(1);
        report.at
    }

    /// Takes back a first attempt of this second that was not sent.
    pub(super) fn withdraw_first(&mut self, second: Timestamp) {
        let report = self.report(second);
        report.firsts = report.firsts.saturating_sub(1);
    }

    /// Returns the token of a retry that was not sent.
    pub(super) fn withdraw_retry(&mut self, second: Timestamp) {
        self.report(second).returned += 1;
    }

    /// Refunds a retry that succeeded while the lane is healthy.
    pub(super) fn refund(&mut self, second: Timestamp) {
        self.report(second).refunded += 1;
    }

    /// Notes whether an attempt succeeded. The others are told of a success soon if they have had none for a while.
    pub(super) fn watch_presence(&mut self, presence: Presence, now: Timestamp) {
        match presence {
            Presence::Success => {
                self.failed = None;
                self.succeeded_at = Some(now).filter(|_| self.are_others_failing);
            }
            Presence::Gone | Presence::NoSuccess => {
                self.failed = Some((self.failed.map_or(now, |(first, _)| first), now));
            }
        }
    }

    /// Since when no attempt has succeeded: by the answer, unless something ended here during the exchange.
    fn merge_failing(&mut self, answer: &Answer, here: Option<Timestamp>) -> Option<Timestamp> {
        self.are_others_failing = answer.failing_since.is_some();
        match self.succeeded_at {
            Some(_) => here,
            None => answer.failing_since.or(self.failed.map(|(first, _)| first)),
        }
    }

    /// Has the next exchange publish what happened to the breaker.
    pub(super) fn publish(&mut self, change: BreakerChange) {
        self.change = Some(change);
    }

    /// Has the next exchange reset the shared guards.
    pub(super) fn reset(&mut self) {
        self.is_reset = true;
        self.reports.clear();
        self.known = None;
        // They were granted by what is forgotten now, and are not returned to what follows.
        (self.older, self.newer) = (Grant::default(), Grant::default());
        (self.are_others_failing, self.succeeded_at, self.failed) = (false, None, None);
    }

    /// Whether this process may send probes.
    pub(super) fn may_probe(&self, now: Timestamp) -> bool {
        now < self.probe_until
    }

    /// When to exchange next; `None` if there is nothing to exchange.
    pub(super) fn exchange_at(
        &mut self,
        work: LaneWork,
        in_flight: u32,
        state: State,
        now: Timestamp,
    ) -> Option<Timestamp> {
        if self.pending.is_some() {
            return None;
        }
        let wants_tokens = self.wants_tokens(work, state, now);
        let has_reports = self.has_reports();
        // The clock may have been set back.
        let Some(asked_at) = self.asked_at.map(|asked_at| asked_at.min(now)) else {
            let is_wanted = wants_tokens || has_reports || self.must_look || self.change.is_some() || self.is_reset;
            return (is_wanted || state != State::Closed).then_some(now);
        };
        if self.has_failed {
            return Some(asked_at.after(FAILED_WAIT));
        }
        if self.change.is_some() || self.is_reset || self.must_look {
            return Some(now);
        }
        let is_probing = matches!(state, State::Probing { .. }) && (work.is_due || in_flight > 0);
        let may_gain = self.reports.iter().any(|report| report.firsts > 0 || report.returned + report.refunded > 0);
        let waits = [
            (wants_tokens && (may_gain || !self.is_spent(now))).then(|| asked_at.after(LEAST_WAIT)),
            wants_tokens.then(|| second_of(asked_at, self.bucket).after(self.bucket).max(asked_at.after(LEAST_WAIT))),
            has_reports.then(|| asked_at.after(REPORT_WITHIN)),
            (is_probing && self.probe_until.since(now) <= RENEW_BELOW).then(|| asked_at.after(LEAST_WAIT)),
            (state != State::Closed).then(|| asked_at.after(LOOK_EVERY)),
            self.tokens_expire_at(),
        ];
        waits.into_iter().flatten().min()
    }

    /// Begins an exchange.
    pub(super) fn exchange(&mut self, work: LaneWork, wire: Wire, state: State, now: Timestamp) -> Exchange {
        self.expire(now);
        if self.asked_at.is_none_or(|asked_at| now.since(asked_at) > KNOWN_FOR) {
            // What was needed in another burst says nothing about this one.
            self.want = LEAST_WANT;
        }
        let want = if self.wants_tokens(work, state, now) { self.want } else { 0 };
        let mut reports = std::mem::take(&mut self.reports);
        reports.retain(|report| now.since(report.at) <= self.window + 2 * self.bucket);
        let may_probe = matches!(state, State::Probing { .. }) && self.probe_until.since(now) <= RENEW_BELOW;
        let has_probes = work.is_due || wire.in_flight > 0;
        let probe = BreakerChange::Probe { succeeded: wire.successful_probes };
        let change = self.change.or_else(|| (may_probe && has_probes).then_some(probe));
        let probes = reports.iter().filter(|report| report.probes > 0);
        let probes = probes.map(|report| Report { at: report.at, probes: report.probes, ..Report::default() });
        let (probes, is_reset) = (probes.collect(), self.is_reset);
        let (succeeded_at, failed) = (self.succeeded_at.take(), self.failed.take());
        let outcomes = std::mem::take(&mut self.outcomes);
        self.pending = Some(PendingExchange { want, probes, outcomes, change, is_reset, succeeded_at, failed });
        (self.asked_at, self.must_look, self.has_failed) = (Some(now), false, false);
        Exchange { reports, want, outcomes, succeeded_at, failed, breaker: change, epoch: self.epoch, is_reset }
    }

    /// Takes the answer. `failing_since` becomes what is known over all processes. Returns whether the breaker is to follow
    /// the answer: nothing has happened to it here that the others do not know yet.
    pub(super) fn answered(&mut self, answer: &Answer, failing_since: &mut Option<Timestamp>, now: Timestamp) -> bool {
        let Some(pending) = self.pending.take() else { return false };
        *failing_since = self.merge_failing(answer, *failing_since);
        let is_short = answer.granted < pending.want;
        self.known = self.has_budget.then_some(KnownBudget {
            counts: answer.counts,
            left: answer.left,
            is_spent: is_short && answer.left == 0,
            at: now,
        });
        if pending.want > 0 && !is_short {
            self.want = (self.want * 2).min(MOST_WANT);
        }
        self.receive(Grant { second: second_of(answer.second, self.bucket), left: answer.granted }, now);
        if pending.is_reset {
            self.is_reset = false;
        }
        if self.change == pending.change {
            self.change = None;
        }
        self.change.is_none()
    }

    /// The exchange failed: it is not known whether it took place.
    pub(super) fn failed(&mut self) {
        let Some(pending) = self.pending.take() else { return };
        self.has_failed = true;
        if self.succeeded_at.is_none() {
            self.succeeded_at = pending.succeeded_at;
            let last = self.failed.or(pending.failed).map(|(_, last)| last);
            self.failed = pending.failed.or(self.failed).map(|(first, _)| first).zip(last);
        }
        let later = std::mem::replace(&mut self.outcomes, pending.outcomes);
        self.outcomes.record_all(&later);
        for probes in pending.probes {
            self.report(probes.at).probes += probes.probes;
        }
    }

    /// Whether nothing is held or to be reported that matters to others.
    pub(super) fn is_quiet(&mut self, now: Timestamp) -> bool {
        self.expire(now);
        let has_reports = self.has_reports();
        let holds = self.older.left + self.newer.left > 0;
        !has_reports && !holds && self.pending.is_none() && self.change.is_none() && !self.is_reset
    }

    /// Whether something is to be reported that changes what others may do.
    fn has_reports(&self) -> bool {
        let counts = |report: &Report| report.probes + report.returned + report.refunded > 0;
        self.succeeded_at.is_some() || self.reports.iter().any(counts)
    }

    fn wants_tokens(&mut self, work: LaneWork, state: State, now: Timestamp) -> bool {
        self.has_budget && work.is_retry_due && state == State::Closed && self.claimable(0, now) == 0
    }

    fn receive(&mut self, grant: Grant, now: Timestamp) {
        if grant.left == 0 {
            return;
        }
        if self.newer.left > 0 && self.newer.second != grant.second {
            let unused = std::mem::replace(&mut self.older, self.newer);
            self.give_back(unused);
            self.newer = grant;
        } else {
            self.newer = Grant { second: grant.second, left: self.newer.left + grant.left };
        }
        self.expire(now);
    }

    /// Returns the tokens whose time is over.
    fn expire(&mut self, now: Timestamp) {
        for grant in [self.older, self.newer] {
            // They may be sent for one bucket longer than they may be claimed for. If the clock was set back, they were
            // granted at a time that does not come soon.
            let is_over = now >= grant.second.after(2 * self.bucket) || grant.second.since(now) > CLOCKS_DIFFER;
            if grant.left > 0 && is_over {
                self.give_back(grant);
                self.want = (self.want / 2).max(LEAST_WANT);
                let expired = if self.older == grant { &mut self.older } else { &mut self.newer };
                *expired = Grant::default();
            }
        }
    }

    /// When the first tokens that are held are of no use any more, and are returned.
    fn tokens_expire_at(&self) -> Option<Timestamp> {
        let held = [self.older, self.newer].into_iter().filter(|grant| grant.left > 0);
        held.map(|grant| grant.second.after(2 * self.bucket)).min()
    }

    fn give_back(&mut self, unused: Grant) {
        if unused.left > 0 {
            self.report(unused.second).returned += unused.left;
        }
    }

    /// What is to be reported of the second of `at`.
    fn report(&mut self, at: Timestamp) -> &mut Report {
        let second = second_of(at, self.bucket);
        let place = match self.reports.iter().rposition(|report| report.at == second) {
            Some(place) => place,
            None => {
                // Seconds that have left every window matter no more.
                let (window, bucket) = (self.window, self.bucket);
                self.reports.retain(|report| second.since(report.at) <= window + 2 * bucket);
                if self.reports.len() >= MOST_REPORTS {
                    self.reports.remove(0);
                }
                self.reports.push(Report { at: second, ..Report::default() });
                self.reports.len() - 1
            }
        };
        &mut self.reports[place]
    }
}

/// The beginning of the bucket that a time lies in.
fn second_of(at: Timestamp, bucket: Duration) -> Timestamp {
    let width = u64::try_from(bucket.as_millis()).unwrap_or(u64::MAX).max(1);
    Timestamp::from_millis(at.as_millis() / width * width)
}

/// The reason with this name; one that a newer program wrote counts as an operator's.
pub(super) fn reason(name: &str) -> OpenedBy {
    OpenedBy::from_name(name).unwrap_or(OpenedBy::Operator)
}

//! Invariant 5, from outside: numbers and tokens only increase, and nothing is sent or settled under a lost lease.
//!
//! A process that is suspended (SIGSTOP) between its last check of the lease and its first byte sends that byte when it
//! is resumed, however late: only the target could prevent that. Such a send holds one of its lane's slots. So a
//! suspension can delay no more sends than a node has slots, and they arrive as soon as it is resumed. Any other late
//! send, or one beyond that number, began after its lease had expired.

use std::collections::BTreeMap;

use super::super::history::{History, Kept};
use super::super::node::{LEASE_MARGIN_MS, SLOTS};
use super::{Found, Invariant};
use crate::api::{Attempt, is_ended};
use crate::witness::{Arrival, RequestedTask};

/// A request may stay in the target's socket for a moment after its sender has given it up.
pub(super) const IN_THE_SOCKET_US: u64 = 500_000;
/// How soon after it is resumed a process has sent what it was about to send.
const GOES_ON_WITHIN_US: u64 = 500_000;
/// The log's times are whole milliseconds.
const MILLISECOND_US: u64 = 1_000;
/// The largest error of a node's time while it claims: a fifth of the lease margin.
const CLOCK_US: u64 = LEASE_MARGIN_MS * MILLISECOND_US / 5;

/// The state of the leases when requests arrived.
pub(super) struct Leases {
    /// The suspension that delayed a send, by task and attempt.
    held_up: BTreeMap<(String, u32), usize>,
}

impl Leases {
    pub(super) fn of(history: &History) -> Self {
        let late = history.arrivals.iter().filter_map(|arrival| {
            let (since, until) = lease(history, arrival)?;
            let pause = history.pauses.iter().position(|pause| {
                since <= pause.from + CLOCK_US
                    && pause.from <= arrival.at
                    && arrival.at <= pause.until + GOES_ON_WITHIN_US
            })?;
            (arrival.at > until).then(|| ((arrival.task.clone(), arrival.attempt), pause))
        });
        Leases { held_up: late.collect() }
    }

    /// The suspension that delayed this send, if its lease had expired when it arrived.
    pub(super) fn held_up(&self, arrival: &Arrival) -> Option<usize> {
        self.held_up.get(&(arrival.task.clone(), arrival.attempt)).copied()
    }
}

/// How many sends a suspension delayed beyond their lease.
pub fn held_up_by_a_pause(history: &History) -> usize {
    Leases::of(history).held_up.len()
}

pub(super) fn check(history: &History, found: &mut Found) {
    let leases = Leases::of(history);
    sent_under_its_lease(history, &leases, found);
    let by_task = history.arrivals_by_task();
    for (id, arrivals) in &by_task {
        let on_time = arrivals.iter().filter(|arrival| leases.held_up(arrival).is_none());
        let numbers: Vec<u32> = on_time.map(|arrival| arrival.attempt).collect();
        if numbers.first() == Some(&0) || !numbers.is_sorted() {
            found.about(Invariant::Fenced, id, format_args!("it arrived with the attempt numbers {numbers:?}"));
        }
    }
    for (id, kept) in &history.end.kept {
        let arrivals = by_task.get(id.as_str()).map(Vec::as_slice).unwrap_or_default();
        let mut complain = |evidence: String| found.about(Invariant::Fenced, id, evidence);
        log_is_whole(kept, arrivals, &mut complain);
        log_is_true(kept, arrivals, &mut complain);
        tokens_grow(history, id, kept, &mut complain);
    }
    lines_stay(history, found);
    settled_is_settled(history, &leases, &by_task, found);
}

/// When the lease of the attempt that arrived began, and when it expired.
fn lease(history: &History, arrival: &Arrival) -> Option<(u64, u64)> {
    let Kept { attempts, .. } = history.end.kept.get(&arrival.task)?;
    let attempt = attempts.iter().find(|attempt| attempt.attempt_number == arrival.attempt)?;
    let RequestedTask { attempt_timeout_ms, .. } = history.requested.get(&arrival.key)?.first()?;
    let since = attempt.started_at * MILLISECOND_US;
    Some((since, since + (attempt_timeout_ms + history.lease_margin_ms) * MILLISECOND_US))
}

fn sent_under_its_lease(history: &History, leases: &Leases, found: &mut Found) {
    let mut held_up_by: BTreeMap<usize, usize> = BTreeMap::new();
    for arrival in &history.arrivals {
        let Some((since, until)) = lease(history, arrival) else { continue };
        let (id, attempt) = (&arrival.task, arrival.attempt);
        if arrival.at + CLOCK_US < since {
            found.about(Invariant::Fenced, id, format_args!("attempt {attempt} arrived before it was claimed"));
        }
        let late = arrival.at.saturating_sub(until) as f64 / 1e3;
        if let Some(pause) = leases.held_up(arrival) {
            let count = held_up_by.entry(pause).or_default();
            *count += 1;
            if *count > SLOTS {
                let evidence = format!(
                    "attempt {attempt} arrived {late:.1} ms after its lease had run out, as number {count} after one pause"
                );
                found.about(Invariant::Fenced, id, evidence);
            }
        } else if arrival.at > until + IN_THE_SOCKET_US {
            let evidence = format!("attempt {attempt} arrived {late:.1} ms after its lease had run out");
            found.about(Invariant::Fenced, id, evidence);
        }
    }
}

/// Every attempt has one log entry, and every arrival is among them.
fn log_is_whole(kept: &Kept, arrivals: &[&Arrival], complain: &mut impl FnMut(String)) {
    if !is_ended(&kept.task.status) {
        return;
    }
    let numbers: Vec<u32> = kept.attempts.iter().map(|attempt| attempt.attempt_number).collect();
    let made = kept.task.attempt_number;
    if numbers != (1..=made).collect::<Vec<u32>>() {
        complain(format!("its log has the attempts {numbers:?}, and it made {made}"));
    }
    for arrival in arrivals.iter().filter(|arrival| !numbers.contains(&arrival.attempt)) {
        complain(format!("attempt {} arrived and is not in its log", arrival.attempt));
    }
}

/// The second settlement changes nothing: the log has the target's answer, and an end is the last entry of its run.
fn log_is_true(kept: &Kept, arrivals: &[&Arrival], complain: &mut impl FnMut(String)) {
    for Attempt { attempt_number: number, outcome, response_status, .. } in &kept.attempts {
        let arrival = arrivals.iter().find(|arrival| arrival.attempt == *number);
        let answered = arrival.and_then(|arrival| arrival.answered);
        if response_status.is_some() && *response_status != answered {
            complain(format!("attempt {number} is logged with the answer {response_status:?} and had {answered:?}"));
        }
        if outcome == "success" && *number != kept.attempts.len() as u32 {
            complain(format!("attempt {number} is logged as a success, and others followed"));
        }
    }
    let before = kept.task.attempt_number - kept.task.attempt_in_run;
    let of_last_run = kept.attempts.iter().filter(|attempt| attempt.attempt_number > before);
    let outcomes: Vec<&str> = of_last_run.map(|attempt| attempt.outcome.as_str()).collect();
    let retried = outcomes.split_last().map_or(&[][..], |(_, earlier)| earlier);
    if retried.iter().any(|outcome| !matches!(*outcome, "retryable" | "overloaded" | "unknown")) {
        complain(format!("the attempts of its last run are logged as {outcomes:?}"));
    }
    let last = outcomes.last().copied().unwrap_or("nothing");
    let status = kept.task.status.as_str();
    if (status == "SUCCEEDED") != (last == "success") || (status == "FAILED" && last != "permanent") {
        complain(format!("it ended {status}, and its last attempt is logged as {last}"));
    }
}

fn tokens_grow(history: &History, id: &str, kept: &Kept, complain: &mut impl FnMut(String)) {
    let tokens = history.end.tokens.get(id).map(Vec::as_slice).unwrap_or_default();
    let grow = tokens.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1);
    if !grow || tokens.len() != kept.attempts.len() {
        complain(format!("the {} lines of its log have the attempts and tokens {tokens:?}", kept.attempts.len()));
    }
}

/// A log entry that the API has returned is there at the end, unchanged.
fn lines_stay(history: &History, found: &mut Found) {
    for ((id, number), seen) in &history.lines_seen {
        let Some(kept) = history.end.kept.get(id) else { continue };
        let now = kept.attempts.iter().find(|attempt| attempt.attempt_number == *number);
        if now != Some(seen) {
            found.about(Invariant::Fenced, id, format_args!("its log said {seen:?}, and now {now:?}"));
        }
    }
}

/// Once a task waits after attempt n, all of its attempts up to n are settled, and none of them is sent any more.
fn settled_is_settled(history: &History, leases: &Leases, by_task: &BTreeMap<&str, Vec<&Arrival>>, found: &mut Found) {
    for seen in &history.sightings {
        let Some(task) = seen.task.as_ref().filter(|task| task.status == "PENDING") else { continue };
        for arrival in by_task.get(seen.id.as_str()).into_iter().flatten() {
            let is_late = arrival.attempt <= task.attempt_number && arrival.at > seen.at + IN_THE_SOCKET_US;
            if is_late && leases.held_up(arrival).is_none() {
                let evidence = format!("attempt {} arrived after the API had said that it was over", arrival.attempt);
                found.about(Invariant::Fenced, &seen.id, evidence);
            }
        }
    }
}

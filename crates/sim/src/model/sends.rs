//! Checks of what goes on the wire.

use std::time::Duration;

use redrive_core::backoff::Backoff;
use redrive_core::guards::Health;
use redrive_core::jitter::Jitter;
use redrive_core::{Attempt, Lane, Outcome, Policy, TaskId};
use redrive_engine::transport::Outbound;

use super::Model;
use super::alerts::is_of_notifications;
use super::facts::{Departure, Said, Whose};
use super::submits::inline;
use crate::moment::Moment;
use crate::plan::Item;

impl Model {
    /// A process begins an attempt: it connects.
    pub fn connects(&mut self, whose: Whose, outbound: &Outbound) {
        let (id, attempt, at) = (outbound.task, outbound.attempt, self.now);
        let is_of_a_task = match is_of_notifications(&outbound.lane) {
            true => self.sends_notification(outbound),
            false => self.sends_item(outbound),
        };
        if !is_of_a_task {
            return;
        }
        self.sends_one_at_a_time(id, attempt);
        self.begins(whose, &outbound.lane, id);
        self.lets_through(whose, outbound);
        let Some(facts) = self.tasks.get_mut(&id) else { return };
        facts.sends.push(Departure { whose, attempt, at, left: None, over: None, said: None, logged: None });
        let of_lane = self.on_wire.entry((whose, outbound.lane.clone())).or_default();
        *of_lane += 1;
        let (of_lane, limit) = (*of_lane, self.rules.lane_concurrency);
        self.must(of_lane <= limit, 8, id, || {
            format!("{of_lane} attempts of one lane are on the wire at once, not {limit}")
        });
        let all = self.on_wire_in_all.entry(whose).or_default();
        *all += 1;
        let (all, limit) = (*all, self.rules.max_in_flight);
        self.must(all <= limit, 8, id, || {
            format!("{all} attempts of one process are on the wire at once, not {limit}")
        });
    }

    /// A process begins an attempt for an item. Returns false if there is no such item.
    fn sends_item(&mut self, outbound: &Outbound) -> bool {
        let (id, attempt) = (outbound.task, outbound.attempt);
        let Some((name, is_other)) = self.recognise(&outbound.lane.tenant, inline(&outbound.request.body)) else {
            let body = String::from_utf8_lossy(inline(&outbound.request.body)).into_owned();
            self.broken(3, Some(id), format!("a body that was not submitted was sent: {body:?}"));
            return false;
        };
        self.meet(id, &name, is_other, outbound.idempotency_key.as_str());
        let Some(item) = self.wanted.get(&name).map(|wanted| wanted.item.clone()) else { return false };
        self.sends_what_was_asked(&item, is_other, outbound);
        self.sends_no_more_than_allowed(&item, id, attempt);
        true
    }

    /// The first byte of an attempt is sent.
    pub fn departed(&mut self, whose: Whose, outbound: &Outbound) {
        let (id, attempt, now) = (outbound.task, outbound.attempt, self.now);
        let Some(facts) = self.tasks.get(&id) else { return };
        let item = self.wanted.get(&facts.name).map(|wanted| wanted.item.clone());
        self.sends_nothing_that_ended(id, whose, attempt);
        self.is_leased(id, attempt);
        if let Some(item) = item {
            self.sends_in_time(&item, id, whose, attempt);
        }
        if let Some(send) = self.send_of(whose, id, attempt) {
            send.left = Some(now);
        }
    }

    /// An attempt is withdrawn before its first byte: it does not count.
    pub fn withdrawn(&mut self, whose: Whose, lane: &Lane, id: TaskId, attempt: u32) {
        self.counts_not(lane, id, attempt);
        self.over(whose, lane, id, attempt, None, None);
    }

    /// A process is done with an attempt: it received the dependency's answer, or stopped waiting.
    pub fn over(
        &mut self,
        whose: Whose,
        lane: &Lane,
        id: TaskId,
        attempt: u32,
        said: Option<Said>,
        health: Option<Health>,
    ) {
        if self.is_direct(lane, id) {
            return;
        }
        self.guards_hear(lane, id, attempt, health);
        if let Some(count) = self.on_wire.get_mut(&(whose, lane.clone())) {
            *count = count.saturating_sub(1);
        }
        if let Some(count) = self.on_wire_in_all.get_mut(&whose) {
            *count = count.saturating_sub(1);
        }
        let now = self.now;
        let Some(send) = self.send_of(whose, id, attempt) else { return };
        send.over = Some(now);
        send.said = said;
        let begun = send.at;
        self.is_through(lane, begun, said);
    }

    /// The attempt of this process that is in flight.
    fn send_of(&mut self, whose: Whose, id: TaskId, attempt: u32) -> Option<&mut Departure> {
        let mut sends = self.tasks.get_mut(&id)?.sends.iter_mut().rev();
        sends.find(|send| send.whose == whose && send.attempt == attempt && send.over.is_none())
    }

    /// The attempt log contains this attempt.
    pub(super) fn logged(&mut self, id: TaskId, attempt: &Attempt) {
        let (number, outcome, slack) = (attempt.number, attempt.outcome, self.rules.slack);
        let sends = self.tasks.get_mut(&id).map(|facts| facts.sends.iter_mut()).into_iter().flatten();
        let mut wrong = None;
        for send in sends.filter(|send| send.attempt == number) {
            send.logged = Some(outcome);
            let began = send.left.unwrap_or(send.at);
            let said = Moment::of_wall(attempt.started_at);
            let is_right = said.after(slack) >= began && said <= began.after(slack);
            if outcome != Outcome::Unknown && !is_right {
                wrong = Some((said, began));
            }
        }
        if let Some((said, began)) = wrong {
            let what = format!("the log says that attempt {number} began at {said}, and it did at {began}");
            self.broken(1, Some(id), what);
        }
    }

    /// Invariant 3: the request is the submitted one. Invariant 12: its tenant is the right one.
    fn sends_what_was_asked(&mut self, item: &Item, is_other: bool, outbound: &Outbound) {
        let (document, id) = (&item.document, outbound.task);
        let (name, request) = (&item.name, &outbound.request);
        self.must(request.target_url == document.target_url, 3, id, || {
            format!("{name} was sent to {} instead of {}", request.target_url, document.target_url)
        });
        self.must(request.method == document.method, 3, id, || format!("{name} was sent with {}", request.method));
        self.must(inline(&request.body) == document.sent_body(is_other).as_bytes(), 3, id, || {
            format!("{name} was sent with another body")
        });
        if let Some(key) = &document.key {
            self.must(outbound.idempotency_key.as_str() == key, 3, id, || {
                format!("{name} was sent with key {} instead of {key}", outbound.idempotency_key)
            });
        }
        self.must(outbound.attempt_timeout <= item.policy.attempt_timeout, 7, id, || {
            format!("{name} may take {:?} and was given {:?}", item.policy.attempt_timeout, outbound.attempt_timeout)
        });
    }

    /// Invariant 2: no more sends than allowed, each with a number of its own. Invariant 5: numbers only increase.
    fn sends_no_more_than_allowed(&mut self, item: &Item, id: TaskId, attempt: u32) {
        let Some(facts) = self.tasks.get(&id) else { return };
        let most = item.policy.max_attempts;
        let sends = || facts.sends.iter().filter(|send| send.counts());
        let in_all = sends().count() as u32 + 1;
        let runs = 1 + facts.replays_asked;
        let in_run = sends().filter(|send| send.attempt > facts.attempts_before).count() as u32 + 1;
        let runs_since = 1 + facts.replays_unknown;
        let last = sends().map(|send| send.attempt).max().unwrap_or(0);
        let again = sends().any(|send| send.attempt == attempt);
        let by_dns = |send: &&Departure| {
            let is_written = send.logged == Some(Outcome::Retryable);
            send.said == Some(Said::NoSuchName) && is_written && facts.is_of_this_run(send)
        };
        let is_nameless = sends().filter(by_dns).count() >= 2;
        let name = &item.name;
        self.must(!is_nameless, 2, id, || format!("{name}: attempt {attempt} was sent to a name that is not found"));
        self.must(!again, 2, id, || format!("{name}: attempt {attempt} was sent a second time"));
        self.must(in_all <= most * runs, 2, id, || format!("{name}: send {in_all} of at most {most} in {runs} runs"));
        self.must(in_run <= most * runs_since, 2, id, || format!("{name}: send {in_run} of at most {most} in a run"));
        self.must(attempt <= most * runs, 2, id, || {
            format!("{name}: attempt {attempt} of at most {most} in {runs} runs")
        });
        self.must(attempt > last || again, 5, id, || {
            format!("{name}: attempt {attempt} was sent after attempt {last}")
        });
    }

    /// Invariant 4: a task that has ended or was cancelled is not sent.
    fn sends_nothing_that_ended(&mut self, id: TaskId, whose: Whose, attempt: u32) {
        let Some(facts) = self.tasks.get(&id) else { return };
        let (end, cancelled, name) = (facts.end, facts.cancelled, facts.name.clone());
        if let Some(end) = end {
            self.must(false, 4, id, || {
                format!("{name}: attempt {attempt} was sent after it had been seen as {}", end.status.as_str())
            });
        }
        let Some(cancelled) = cancelled else { return };
        let promised = match cancelled.under_way {
            None => true,
            // The attempt in flight may go on the wire if it is another process's, which may not have received the
            // cancel yet.
            Some(under_way) => attempt > under_way || cancelled.by == whose,
        };
        self.must(!promised, 4, id, || {
            format!("{name}: attempt {attempt} was sent after a cancel was acknowledged at {}", cancelled.at)
        });
    }

    /// Invariant 6: nothing is sent before its time.
    fn sends_in_time(&mut self, item: &Item, id: TaskId, whose: Whose, attempt: u32) {
        let Some(facts) = self.tasks.get(&id) else { return };
        let (now, slack, name) = (self.now, self.rules.slack, &item.name);
        let late = facts.deadline_at.map(Moment::of_wall).filter(|deadline| now > deadline.after(slack));
        let hurried = if facts.forwards_under_way > 0 { Some(now) } else { facts.brought_forward };
        let mut early: Option<(Moment, &'static str)> = None;
        let mut not_before = |moment: Moment, why| {
            if now.after(slack) < moment {
                early.get_or_insert((moment, why));
            }
        };
        let is_other = |send: &&Departure| send.whose != whose || send.attempt != attempt;
        let last = facts.sends.iter().rev().find(is_other);
        let is_hurried_since = |moment: Moment| hurried.is_some_and(|asked| asked >= moment);
        let asked = self.wanted.get(name).and_then(|wanted| wanted.first_asked);
        if let (Some(delay), Some(asked), true) = (item.document.delay, asked, last.is_none())
            && !is_hurried_since(Moment::default())
            && facts.replays_asked == 0
        {
            not_before(asked.after(delay), "its delay");
        }
        if let Some(last) = last
            // An answer that was received and never stored is lost with its process.
            && matches!(last.logged, Some(Outcome::Retryable | Outcome::Overloaded))
            && let Some(heard) = last.over
            && !is_hurried_since(last.at)
            && facts.is_of_this_run(last)
        {
            let retry = last.attempt - facts.attempts_before;
            // Too many requests, without a Retry-After: twice the wait.
            let factor = if last.said == Some(Said::TooMany(None)) { 2 } else { 1 };
            not_before(heard.after(factor * shortest_wait(&item.policy, retry)), "the policy's backoff");
            if let Some(Said::Later(asked) | Said::TooMany(Some(asked))) = last.said {
                not_before(asked, "the dependency's Retry-After");
            }
        }
        if let Some((due, shown)) = facts.due_shown
            && !is_hurried_since(shown)
            && facts.replays_asked == 0
            && last.is_none_or(|last| last.at < shown)
        {
            not_before(Moment::of_wall(due), "the due time that was shown");
        }
        if let Some(waiting) = self.waiting.get(&id)
            && !is_hurried_since(waiting.written)
        {
            not_before(Moment::of_wall(waiting.due), "its due time in the store");
        }
        if let Some(deadline) = late {
            self.broken(6, Some(id), format!("{name} was sent after its deadline, {deadline}"));
        }
        if let Some((moment, why)) = early {
            self.broken(6, Some(id), format!("{name} was sent before {moment}, {why}"));
        }
    }

    /// Invariant 7: while an attempt is on the wire of a process that runs undisturbed, no other process sends the
    /// task.
    fn sends_one_at_a_time(&mut self, id: TaskId, attempt: u32) {
        let Some(facts) = self.tasks.get(&id) else { return };
        let under_way = facts.sends.iter().find(|send| {
            send.over.is_none() && self.disturbed.get(&send.whose).is_none_or(|disturbed| *disturbed < send.at)
        });
        if let Some(send) = under_way {
            let (other, name) = (send.attempt, facts.name.clone());
            let what = format!("{name}: attempt {attempt} was sent while attempt {other} was still on the wire");
            self.broken(7, Some(id), what);
        }
    }
}

/// The shortest wait that the policy can draw before the retry that follows attempt `attempt` of a run.
fn shortest_wait(policy: &Policy, attempt: u32) -> Duration {
    let ceiling = match &policy.backoff {
        Backoff::Fixed { delay } => *delay,
        Backoff::Linear { initial, max } => (*initial * attempt).min(*max),
        Backoff::Schedule { delays } => *delays.get(attempt as usize - 1).or(delays.last()).unwrap_or(&Duration::ZERO),
        Backoff::Exponential { initial, multiplier, max } => {
            let grown = initial.as_secs_f64() * multiplier.powf(f64::from(attempt - 1));
            if grown >= max.as_secs_f64() { *max } else { Duration::from_secs_f64(grown) }
        }
    };
    match policy.jitter {
        Jitter::Full => Duration::ZERO,
        Jitter::Equal => ceiling / 2,
        Jitter::None => ceiling,
        Jitter::Proportional { ratio } => ceiling.mul_f64(1.0 - ratio),
        Jitter::Decorrelated => match &policy.backoff {
            Backoff::Exponential { initial, max, .. } => (*initial).min(*max),
            _ => Duration::ZERO,
        },
    }
}

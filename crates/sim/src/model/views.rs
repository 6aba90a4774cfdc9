//! Checks of what reads and answers return of known tasks.

use redrive_core::{Attempt, Outcome, Reason, Status, Task, TaskId, TenantId};
use redrive_store::TaskDetail;

use super::Model;
use super::facts::{Asker, CancelAnswer, End, Said, Whose};
use super::submits::inline;
use crate::moment::Moment;

impl Model {
    /// A read that began at `asked` returned this task to `tenant`.
    pub fn shows(&mut self, tenant: &TenantId, detail: &TaskDetail, asked: Moment) {
        let (task, id) = (&detail.task, detail.task.id);
        self.must(task.lane.tenant == *tenant, 12, id, || format!("{tenant} was shown a task of {}", task.lane.tenant));
        let Some((name, is_other)) = self.recognise(&task.lane.tenant, inline(&detail.request.body)) else {
            return self.broken(3, Some(id), "a task is shown with a body that was not submitted".to_owned());
        };
        self.meet(id, &name, is_other, task.idempotency_key.as_str());
        self.shows_state(task, asked);
    }

    /// A task's state, read by a call that began at `asked`.
    pub fn shows_state(&mut self, task: &Task, asked: Moment) {
        let id = task.id;
        let Some(facts) = self.tasks.get(&id) else { return };
        let (name, end) = (facts.name.clone(), facts.end);
        // A read that began before a replay took effect shows nothing of the run that it began.
        let is_stale = facts.replays_unknown > 0 || facts.replayed.is_some_and(|replayed| asked < replayed);
        if let Some(end) = end.filter(|end| end.seen <= asked) {
            let same = (task.status, task.reason) == (end.status, end.reason);
            self.must(same, 1, id, || {
                format!("{name} had ended {} and is {} now", end.status.as_str(), task.status.as_str())
            });
        }
        let Some(most) = self.wanted.get(&name).map(|wanted| wanted.item.policy.max_attempts) else { return };
        let Some(facts) = self.tasks.get_mut(&id) else { return };
        let runs = 1 + facts.replays_asked;
        facts.created_at = task.created_at;
        if task.status.is_ended() {
            if let Some(at) = task.ended_at.filter(|_| !(is_stale && task.status.is_dead_letter())) {
                facts.end.get_or_insert(End { status: task.status, reason: task.reason, at, seen: self.now });
            }
        } else if task.status == Status::Pending
            && let Some(due) = task.next_attempt_at
        {
            facts.due_shown = Some((due, asked));
        }
        if !is_stale && end.is_none() {
            facts.deadline_at.get_or_insert(task.deadline_at);
        }
        let due = task.next_attempt_at.filter(|_| task.status == Status::Pending);
        self.must(due.is_none_or(|due| due <= task.deadline_at), 6, id, || {
            format!("{name} waits for {due:?}, and its deadline is {:?}", task.deadline_at)
        });
        self.must(task.attempt_number <= most * runs, 2, id, || {
            format!(
                "{name} shows {} attempts, and at most {most} are allowed in each of {runs} runs",
                task.attempt_number
            )
        });
        self.ends_for_a_reason(task, &name);
    }

    /// Invariants 1 and 9: a task ends with the result of its dependency's answers or of its caller's cancel.
    fn ends_for_a_reason(&mut self, task: &Task, name: &str) {
        let id = task.id;
        let Some(facts) = self.tasks.get(&id) else { return };
        let heard = |wanted: fn(&Said) -> bool| facts.sends.iter().filter_map(|send| send.said.as_ref()).any(wanted);
        let (succeeded, refused) = (heard(|said| *said == Said::Yes), heard(|said| *said == Said::Never));
        let cancelled = facts.cancel_asked;
        let holds = match (task.status, task.reason) {
            (Status::Succeeded, None) => succeeded,
            (Status::Failed, Some(Reason::NotRetryable)) => refused,
            (Status::Cancelled, Some(Reason::Cancelled)) => cancelled,
            (Status::Exhausted, Some(Reason::DnsAttempts)) => heard(|said| *said == Said::NoSuchName),
            (Status::Exhausted, Some(reason)) => !matches!(reason, Reason::NotRetryable | Reason::Cancelled),
            (Status::Pending | Status::InFlight, None) => true,
            _ => false,
        };
        self.must(holds, 1, id, || {
            let reason = task.reason.map_or("no reason", Reason::as_str);
            format!("{name} is {} for {reason}, which is not what happened", task.status.as_str())
        });
    }

    /// A refusal of a call that began at `asked` shows that the task has ended like this.
    pub fn shows_end(&mut self, id: TaskId, status: Status, asked: Moment) {
        let Some(facts) = self.tasks.get(&id) else { return };
        let (name, end) = (facts.name.clone(), facts.end.filter(|end| end.seen <= asked));
        self.must(status.is_ended(), 1, id, || format!("{name} is said to have ended {}", status.as_str()));
        if let Some(end) = end {
            self.must(end.status == status, 1, id, || {
                format!("{name} had ended {} and is said to have ended {}", end.status.as_str(), status.as_str())
            });
        }
    }

    /// A read returned that there is no such task.
    pub fn shows_nothing(&mut self, id: TaskId) {
        let Some(facts) = self.tasks.get(&id) else { return };
        let (excused, name) = (facts.acknowledged.is_none() || self.may_be_cleaned(facts), facts.name.clone());
        self.must(excused, 1, id, || format!("{name} was acknowledged and is gone"));
    }

    /// A tenant got another answer than "there is no such task" about a task of another tenant.
    pub fn meddled(&mut self, tenant: &TenantId, id: TaskId, what: &str) {
        self.broken(12, Some(id), format!("{tenant} could {what} a task of another tenant"));
    }

    /// A client begins a call that may change a task's status.
    pub fn asking(&mut self, id: TaskId, asker: Asker) {
        let now = self.now;
        let Some(facts) = self.tasks.get_mut(&id) else { return };
        match asker {
            Asker::Cancel => facts.cancel_asked = true,
            Asker::BringForward => {
                facts.forwards_under_way += 1;
                facts.brought_forward = Some(now);
            }
            Asker::Replay => {
                facts.replays_asked += 1;
                facts.replays_unknown += 1;
                facts.deadline_at = None;
                facts.due_shown = None;
                // From now on the task may be running again.
                facts.end = facts.end.filter(|end| !end.status.is_dead_letter());
            }
        }
    }

    /// A call of [`asking`](Model::asking) was answered, with or without effect.
    pub fn answered(&mut self, id: TaskId, asker: Asker, by: Whose, task: Option<&Task>) {
        let now = self.now;
        if let (Asker::Cancel, Some(task)) = (asker, task) {
            self.must(task.status != Status::Pending, 4, id, || {
                "a cancel was acknowledged, and the task is still waiting to be sent".to_owned()
            });
        }
        if let (Asker::Replay, Some(task)) = (asker, task)
            && let Some(facts) = self.tasks.get(&id)
            && let Some(expected) = self.wanted.get(&facts.name).map(|wanted| wanted.item.policy.total_budget)
        {
            let budget = task.deadline_at.since(task.run_started_at);
            let is_due = task.next_attempt_at.is_some_and(|due| due <= task.run_started_at);
            self.must(budget == expected && is_due, 6, id, || {
                format!("a replay should have {expected:?} in all from now on, and has {budget:?}")
            });
        }
        let Some(facts) = self.tasks.get_mut(&id) else { return };
        match (asker, task) {
            (Asker::Cancel, Some(task)) => {
                let under_way = (!task.status.is_ended()).then_some(task.attempt_number);
                facts.cancelled = Some(CancelAnswer { at: now, by, under_way });
            }
            (Asker::Cancel, None) => {}
            (Asker::BringForward, _) => {
                facts.forwards_under_way = facts.forwards_under_way.saturating_sub(1);
                facts.brought_forward = Some(now);
            }
            (Asker::Replay, task) => {
                facts.replays_unknown = facts.replays_unknown.saturating_sub(1);
                facts.replayed = Some(now);
                match task {
                    Some(task) => {
                        facts.attempts_before = facts.attempts_before.max(task.attempts_before);
                        // Another replay may have begun a run after this one.
                        facts.deadline_at = Some(task.deadline_at).filter(|_| facts.replays_unknown == 0);
                    }
                    // Certainly refused: that run never began.
                    None => facts.replays_asked = facts.replays_asked.saturating_sub(1),
                }
            }
        }
    }

    /// A call that [`asking`](Model::asking) announced was never made: no process was there to call.
    pub fn not_asked(&mut self, id: TaskId, asker: Asker) {
        let Some(facts) = self.tasks.get_mut(&id) else { return };
        match asker {
            Asker::Cancel => {}
            Asker::BringForward => facts.forwards_under_way = facts.forwards_under_way.saturating_sub(1),
            Asker::Replay => {
                facts.replays_unknown = facts.replays_unknown.saturating_sub(1);
                facts.replays_asked = facts.replays_asked.saturating_sub(1);
            }
        }
    }

    /// Checks the complete attempt log of a task.
    pub fn shows_attempts(&mut self, id: TaskId, attempts: &[Attempt]) {
        let Some(facts) = self.tasks.get(&id) else { return };
        let name = facts.name.clone();
        let numbers: Vec<u32> = attempts.iter().map(|attempt| attempt.number).collect();
        let expected: Vec<u32> = (1..=attempts.len() as u32).collect();
        self.must(numbers == expected, 5, id, || format!("the attempt log of {name} has the numbers {numbers:?}"));
        for attempt in attempts {
            self.log_is_true(id, &name, attempt);
        }
    }

    fn log_is_true(&mut self, id: TaskId, name: &str, attempt: &Attempt) {
        let Some(facts) = self.tasks.get(&id) else { return };
        let number = attempt.number;
        let said = facts.sends.iter().find(|send| send.attempt == number).map(|send| send.said);
        let holds = matches!(
            (attempt.outcome, said),
            (Outcome::Unknown, _)
                | (Outcome::Success, Some(Some(Said::Yes)))
                | (Outcome::Retryable, Some(Some(Said::Later(_) | Said::NoSuchName)))
                | (Outcome::Overloaded, Some(Some(Said::TooMany(_))))
                | (Outcome::Permanent, Some(Some(Said::Never)))
        );
        self.must(holds, 1, id, || {
            format!(
                "the log says that attempt {number} of {name} was {}, and it was {said:?}",
                attempt.outcome.as_str()
            )
        });
    }
}

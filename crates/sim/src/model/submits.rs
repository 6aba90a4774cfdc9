//! Checks of answers to submissions.

use redrive_core::{Body, Task, TaskId, TenantId};

use super::Model;
use super::facts::Facts;
use crate::moment::Moment;
use crate::plan::{OTHER, SHIFTING};

/// When the fixed policies are registered at the latest. Unknown while the store has faults.
const POLICIES_BY: Moment = Moment(15 * 60 * 1_000_000);

impl Model {
    /// A client begins to submit an item, or the other request under its key.
    pub fn submitting(&mut self, name: &str, is_other: bool) {
        let now = self.now;
        if let Some(wanted) = self.wanted.get_mut(name) {
            wanted.first_asked.get_or_insert(now);
            *(if is_other { &mut wanted.asked_other } else { &mut wanted.asked }) += 1;
        }
    }

    /// A submission was acknowledged. `is_new` is the service's answer.
    pub fn acknowledged(&mut self, name: &str, is_other: bool, task: &Task, is_new: bool) {
        let id = task.id;
        let Some(wanted) = self.wanted.get(name) else { return };
        let (document, policy) = (wanted.item.document.clone(), wanted.item.policy.clone());
        self.must(task.lane.tenant == document.tenant, 12, id, || format!("{name} was made a task of another tenant"));
        if let Some(key) = &document.key {
            self.must(task.idempotency_key.as_str() == key, 3, id, || {
                format!("{name} was submitted with key {key} and acknowledged with {}", task.idempotency_key)
            });
        }
        self.meet(id, name, is_other, task.idempotency_key.as_str());
        let now = self.now;
        let Some(facts) = self.tasks.get_mut(&id) else { return };
        let (was_other, before) = (facts.is_other, facts.acknowledged_as_new);
        facts.acknowledged_as_new |= is_new;
        if facts.acknowledged.is_none() {
            facts.acknowledged = Some(now);
            facts.created_at = task.created_at;
            if facts.replays_asked == 0 {
                facts.deadline_at = Some(task.deadline_at);
            }
        }
        self.must(was_other == is_other, 10, id, || {
            format!("another request under the key of {name} was acknowledged as if it were the same")
        });
        self.must(!(is_new && before), 10, id, || format!("{name} was acknowledged as new a second time"));
        self.must(task.max_attempts == policy.max_attempts, 2, id, || {
            format!("{name} asked for {} attempts and may make {}", policy.max_attempts, task.max_attempts)
        });
        if is_new {
            let budget = task.deadline_at.since(task.created_at);
            self.must(budget == policy.total_budget, 6, id, || {
                format!("{name} asked for {:?} in all and got {budget:?}", policy.total_budget)
            });
        }
    }

    /// A submission was refused because its key belongs to another request.
    pub fn key_reused(&mut self, name: &str, is_other: bool, owner: TaskId) {
        let Some(wanted) = self.wanted.get(name) else { return };
        let may_be = if is_other { wanted.asked > 0 } else { wanted.asked_other > 0 };
        self.must(may_be, 10, owner, || format!("{name} was refused: its key is said to belong to task {owner}"));
        if let Some(facts) = self.tasks.get(&owner) {
            let (same, whose) = (facts.name == name && facts.is_other == is_other, facts.name.clone());
            self.must(!same, 10, owner, || format!("{name} was refused, though its key belongs to {whose} itself"));
        }
    }

    /// A submission that began at `asked` was refused because there is no such policy.
    pub fn policy_unknown(&mut self, name: &str, asked: Moment) {
        let Some(document) = self.wanted.get(name).map(|wanted| &wanted.item.document) else { return };
        let may_be_gone = document.policy_id == Some(SHIFTING) || self.now < POLICIES_BY;
        let was_kept = |facts: &Facts| {
            facts.acknowledged.is_some_and(|at| at <= asked) && facts.name == name && !self.may_be_cleaned(facts)
        };
        let is_known = document.key.is_some() && self.tasks.values().any(was_kept);
        self.must(may_be_gone && !is_known, 10, None, || {
            format!("{name} was refused: there is said to be no such policy (accepted before: {is_known})")
        });
    }

    /// A submission was refused although the request was valid.
    pub fn refused(&mut self, name: &str, why: &str) {
        self.broken(10, None, format!("{name} is a valid request and was refused: {why}"));
    }

    /// Registers a task that is seen for the first time or again. There is one task per key, for as long as the key is
    /// remembered.
    pub(super) fn meet(&mut self, id: TaskId, name: &str, is_other: bool, key: &str) {
        if self.tasks.contains_key(&id) {
            let facts = &self.tasks[&id];
            let (same, known) = (facts.name == name, facts.name.clone());
            let (key_stays, known_key) = (facts.key == key, facts.key.clone());
            self.must(same, 3, id, || format!("the task of {known} turned up as {name}'s"));
            self.must(key_stays, 3, id, || format!("the key of {name} was {known_key} and is {key}"));
            return;
        }
        let Some(wanted) = self.wanted.get(name) else { return };
        let was_asked = if is_other { wanted.asked_other } else { wanted.asked };
        let has_key = wanted.item.document.key.is_some();
        let mine = self.by_name.get(name).into_iter().flatten();
        let is_kept = |id: &&TaskId| self.tasks.get(id).is_some_and(|facts| !self.may_be_cleaned(facts));
        let still_kept: Vec<TaskId> = mine.filter(is_kept).copied().collect();
        if has_key {
            self.must(still_kept.is_empty(), 10, id, || {
                format!("the key of {name} belongs to task {} and now to {id} as well", still_kept[0])
            });
        } else {
            let tasks = still_kept.len() + 1;
            self.must(tasks <= was_asked, 10, id, || {
                format!("{name} was submitted {was_asked} times and is {tasks} tasks")
            });
        }
        self.must(was_asked > 0, 1, id, || format!("{name} is a task that was not submitted"));
        let facts = Facts { name: name.to_owned(), is_other, key: key.to_owned(), ..Facts::default() };
        self.tasks.insert(id, facts);
        self.by_name.entry(name.to_owned()).or_default().push(id);
    }

    /// Whether enough time has passed since the task may have ended that the cleaner may have removed it.
    pub(super) fn may_be_cleaned(&self, facts: &Facts) -> bool {
        let ended = facts.end.map_or(facts.created_at, |end| end.at);
        let kept_until = Moment::of_wall(ended).after(self.rules.retention);
        self.now.after(self.rules.slack) >= kept_until
    }

    /// The item that a tenant's body belongs to, and whether it is the other request under the key.
    pub(super) fn recognise(&self, tenant: &TenantId, body: &[u8]) -> Option<(String, bool)> {
        let text = std::str::from_utf8(body).ok()?;
        let (text, is_other) = text.strip_suffix(OTHER).map_or((text, false), |text| (text, true));
        let name = text.strip_prefix("the body of ")?;
        let wanted = self.wanted.get(name)?;
        (wanted.item.document.tenant == *tenant).then(|| (name.to_owned(), is_other))
    }
}

/// The bytes of a body. No body in this world is large enough to be stored apart: such a body belongs to no item.
pub(super) fn inline(body: &Body) -> &[u8] {
    body.inline().map_or(&[], |bytes| bytes)
}

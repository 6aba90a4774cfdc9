//! Storing new tasks.

use std::collections::hash_map;

use redrive_core::{Task, Timestamp};

use super::state::{Entry, State};
use crate::{Lease, NewTask, Start, Submitted, Token, rules};

/// The placeholder for the lease of a task that was never claimed: its first claim gets token 1.
const NO_LEASE: Lease = Lease { token: Token(0), since: Timestamp::from_millis(0), until: Timestamp::from_millis(0) };

impl State {
    pub(super) fn submit(&mut self, tasks: Vec<NewTask>) -> Vec<Submitted> {
        tasks.into_iter().map(|new| self.submit_one(new)).collect()
    }

    fn submit_one(&mut self, new: NewTask) -> Submitted {
        let NewTask { task, request, fingerprint, start } = new;
        let id = task.id;
        // A tenant that is not known has no policy either.
        let Some(tenant) = self.indexes.tenants.get_mut(&task.lane.tenant) else {
            return Submitted::PolicyGone;
        };
        let key = match tenant.keys.entry(task.idempotency_key.clone()) {
            hash_map::Entry::Vacant(key) => key,
            hash_map::Entry::Occupied(owner) => {
                return match self.tasks.get(owner.get()) {
                    Some(entry) => rules::resubmitted(Box::new(entry.task.clone()), entry.fingerprint, fingerprint),
                    None => Submitted::KeyUnreadable(*owner.get()),
                };
            }
        };
        if !tenant.policies.get(&task.policy.id).is_some_and(|policy| policy.has(task.policy.version)) {
            return Submitted::PolicyGone;
        }
        if let Some(body) = request.body.stored()
            && !super::blobs::is_kept(&self.blobs, &task.lane.tenant, body)
        {
            return Submitted::BodyGone;
        }
        key.insert(id);
        tenant.ids.insert(id);
        let entry = Entry {
            task,
            request,
            fingerprint,
            lease: NO_LEASE,
            attempts: Vec::new(),
            answer: None,
            is_unannounced: false,
        };
        let (task, lease) = self.keep(entry, start);
        self.newest = self.newest.max(Some(id));
        Submitted::Created(task, lease)
    }

    fn keep(&mut self, mut entry: Entry, start: Start) -> (Box<Task>, Option<Lease>) {
        let lease = match start {
            Start::Pending => None,
            Start::Claimed(terms, now) => {
                let until = terms.until(now, entry.task.next_attempt_at, entry.task.attempt_timeout);
                Some(entry.claim(now, until))
            }
        };
        self.indexes.add(&entry);
        let task = Box::new(entry.task.clone());
        let before = self.tasks.insert(entry.task.id, Box::new(entry));
        debug_assert!(before.is_none(), "task ids are unique");
        (task, lease)
    }
}

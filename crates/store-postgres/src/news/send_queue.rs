//! The queue of announcements to send, and how soon one may be repeated.
//!
//! Cancels are sent in separate notifications: processes of an earlier version cannot read a notification that contains
//! one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use redrive_core::{Class, Lane, TaskId, TenantId, Timestamp};
use tokio::time::Instant;

use super::item::{Item, Text};

/// How long an announced lane is not announced again.
pub(super) const QUIET_FOR: Duration = Duration::from_secs(1);
/// The most queued cancels. If one is dropped, the attempt that it would stop ends by itself.
const CANCELS: usize = 10_000;
/// The most classes of lanes that are queued, and the most that are remembered as announced.
const REMEMBERED: usize = 10_000;

type Key = (Lane, Class);

/// The announcements that are still to be sent.
#[derive(Default)]
pub(super) struct SendQueue {
    lanes: BTreeMap<Key, Timestamp>,
    /// The announced classes: when they were announced, and with which due time.
    said: BTreeMap<Key, (Instant, Timestamp)>,
    cancels: BTreeSet<(TenantId, TaskId)>,
}

/// One notification and its content.
pub(super) struct Outgoing {
    pub(super) text: String,
    lanes: Vec<(Key, Timestamp)>,
    cancels: Vec<(TenantId, TaskId)>,
}

impl SendQueue {
    /// Queues the announcement that a task of this class of a lane is due. If the queue is full, a scan finds the task.
    pub(super) fn tell(&mut self, key: Key, due: Timestamp) {
        if self.lanes.len() < REMEMBERED || self.lanes.contains_key(&key) {
            self.put(key, due);
        }
    }

    pub(super) fn tell_cancel(&mut self, tenant: TenantId, id: TaskId) {
        if self.cancels.len() < CANCELS {
            self.cancels.insert((tenant, id));
        }
    }

    /// Records that another process has announced it.
    pub(super) fn told(&mut self, key: Key, due: Timestamp) {
        if self.lanes.get(&key).is_some_and(|known| *known >= due) {
            self.lanes.remove(&key);
        }
        self.remember(key, due);
    }

    /// Whether lanes wait to be announced, some of them for the end of their quiet time.
    pub(super) fn has_lanes(&self) -> bool {
        !self.lanes.is_empty()
    }

    /// The next notification: as much as fits of what may be announced now.
    pub(super) fn next(&mut self, node: &str) -> Option<Outgoing> {
        self.next_cancels(node).or_else(|| self.next_lanes(node))
    }

    /// Queues the content of a notification again that could not be sent.
    pub(super) fn put_back(&mut self, Outgoing { lanes, cancels, .. }: Outgoing) {
        for (key, due) in lanes {
            self.said.remove(&key);
            self.put(key, due);
        }
        self.cancels.extend(cancels);
    }

    fn next_cancels(&mut self, node: &str) -> Option<Outgoing> {
        let (mut text, mut cancels) = (Text::default(), Vec::new());
        while let Some((tenant, id)) = self.cancels.pop_first() {
            if !text.push(&Item::cancel(node, &tenant, id)) {
                self.cancels.insert((tenant, id));
                break;
            }
            cancels.push((tenant, id));
        }
        text.finish().map(|text| Outgoing { text, lanes: Vec::new(), cancels })
    }

    fn next_lanes(&mut self, node: &str) -> Option<Outgoing> {
        let (mut text, mut lanes, mut later) = (Text::default(), Vec::new(), BTreeMap::new());
        while let Some((key, due)) = self.lanes.pop_first() {
            if self.is_known(&key, due) {
                later.insert(key, due);
                continue;
            }
            if !text.push(&Item::due(node, &key.0, key.1, due)) {
                self.lanes.insert(key, due);
                break;
            }
            self.remember(key.clone(), due);
            lanes.push((key, due));
        }
        self.lanes.append(&mut later);
        text.finish().map(|text| Outgoing { text, lanes, cancels: Vec::new() })
    }

    fn put(&mut self, key: Key, due: Timestamp) {
        let known = self.lanes.entry(key).or_insert(due);
        *known = due.min(*known);
    }

    /// Whether it was announced within the quiet time with the same due time or an earlier one.
    fn is_known(&self, key: &Key, due: Timestamp) -> bool {
        self.said.get(key).is_some_and(|(said, known)| said.elapsed() < QUIET_FOR && *known <= due)
    }

    fn remember(&mut self, key: Key, due: Timestamp) {
        if self.said.len() >= REMEMBERED {
            self.said.retain(|_, (said, _)| said.elapsed() < QUIET_FOR);
            if self.said.len() > REMEMBERED / 2 {
                self.said.clear();
            }
        }
        self.said.insert(key, (Instant::now(), due));
    }
}

#[cfg(test)]
mod tests {
    use redrive_core::Dependency;

    use super::super::item::MAX_TEXT;
    use super::*;

    fn key(dependency: &str) -> Key {
        let dependency = Dependency::try_new(dependency).unwrap();
        (Lane { tenant: TenantId::default_tenant(), dependency }, Class::First)
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn what_is_told_fits_into_notifications_that_postgres_takes() {
        let mut queue = SendQueue::default();
        for n in 0..200 {
            queue.tell(key(&format!("https://{n}.example")), at(n));
            queue.tell_cancel(TenantId::default_tenant(), TaskId::from_parts(n, 7));
        }
        let (mut dues, mut cancels) = (0, 0);
        while let Some(outgoing) = queue.next("one") {
            assert!(outgoing.text.len() <= MAX_TEXT, "{}", outgoing.text.len());
            assert!(outgoing.lanes.is_empty() || outgoing.cancels.is_empty(), "one kind in each: {}", outgoing.text);
            (dues, cancels) = (dues + outgoing.lanes.len(), cancels + outgoing.cancels.len());
        }
        assert_eq!((dues, cancels), (200, 200));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_told_again_too_soon_is_said_when_the_quiet_time_is_over() {
        let mut queue = SendQueue::default();
        queue.tell(key("a"), at(7));
        assert!(queue.next("one").is_some());
        // Another process may have found nothing more in the meantime, and forgotten the lane.
        queue.tell(key("a"), at(8));
        assert!(queue.next("one").is_none() && queue.has_lanes());
        tokio::time::advance(QUIET_FOR).await;
        assert!(queue.next("one").is_some());
        assert!(queue.next("one").is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn what_could_not_be_said_is_said_again() {
        let mut queue = SendQueue::default();
        queue.tell(key("a"), at(7));
        queue.tell_cancel(TenantId::default_tenant(), TaskId::from_parts(7, 7));
        for _ in 0..3 {
            let said = [queue.next("one").unwrap(), queue.next("one").unwrap()];
            assert!(queue.next("one").is_none());
            said.into_iter().for_each(|outgoing| queue.put_back(outgoing));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_another_process_has_told_is_not_told_again_at_once() {
        let mut queue = SendQueue::default();
        queue.tell(key("a"), at(7));
        queue.told(key("a"), at(7));
        assert!(queue.next("one").is_none() && !queue.has_lanes());
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_that_only_hears_remembers_no_more_than_it_may() {
        let mut queue = SendQueue::default();
        for n in 0..3 * REMEMBERED {
            queue.told(key(&format!("https://{n}.example")), at(7));
            assert!(queue.said.len() <= REMEMBERED);
        }
        for n in 0..3 * REMEMBERED {
            queue.tell(key(&format!("https://{n}.other")), at(7));
        }
        assert_eq!(queue.lanes.len(), REMEMBERED);
    }
}

//! The queue of announcements to send, and how soon one may be repeated.
//!
//! Cancels and changes of guards are sent in separate notifications: processes of an earlier version cannot read a
//! notification that contains one.

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
    /// The lanes whose guards changed.
    guards: BTreeSet<Lane>,
}

/// One notification and its content.
pub(super) struct Outgoing {
    pub(super) text: String,
    content: Content,
}

/// The content of a notification, which is queued again if it cannot be sent.
enum Content {
    Lanes(Vec<(Key, Timestamp)>),
    Cancels(Vec<(TenantId, TaskId)>),
    Guards(Vec<Lane>),
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

    /// Queues the announcement that the guards of a lane changed. If the queue is full, the other processes find the
    /// change when they read the guards.
    pub(super) fn tell_guards(&mut self, lane: Lane) {
        if self.guards.len() < REMEMBERED {
            self.guards.insert(lane);
        }
    }

    /// Records that another process has announced it.
    pub(super) fn told(&mut self, key: Key, due: Timestamp) {
        if self.lanes.get(&key).is_some_and(|known| *known >= due) {
            self.lanes.remove(&key);
        }
        self.remember(key, due);
    }

    /// Whether nothing is left to announce. What is left waits for the end of its quiet time, or could not be sent.
    pub(super) fn is_empty(&self) -> bool {
        self.lanes.is_empty() && self.cancels.is_empty() && self.guards.is_empty()
    }

    /// The next notification: as much as fits of what may be announced now.
    pub(super) fn next(&mut self, node: &str) -> Option<Outgoing> {
        self.next_cancels(node).or_else(|| self.next_guards(node)).or_else(|| self.next_lanes(node))
    }

    /// Queues the content of a notification again that could not be sent.
    pub(super) fn put_back(&mut self, outgoing: Outgoing) {
        match outgoing.content {
            Content::Cancels(cancels) => self.cancels.extend(cancels),
            Content::Guards(lanes) => self.guards.extend(lanes),
            Content::Lanes(lanes) => {
                for (key, due) in lanes {
                    self.said.remove(&key);
                    self.put(key, due);
                }
            }
        }
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
        text.finish().map(|text| Outgoing { text, content: Content::Cancels(cancels) })
    }

    fn next_guards(&mut self, node: &str) -> Option<Outgoing> {
        let (mut text, mut lanes) = (Text::default(), Vec::new());
        while let Some(lane) = self.guards.pop_first() {
            if !text.push(&Item::guards_changed(node, &lane)) {
                self.guards.insert(lane);
                break;
            }
            lanes.push(lane);
        }
        text.finish().map(|text| Outgoing { text, content: Content::Guards(lanes) })
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
        text.finish().map(|text| Outgoing { text, content: Content::Lanes(lanes) })
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
            queue.tell_guards(key(&format!("https://{n}.example")).0);
        }
        let (mut dues, mut cancels, mut guards) = (0, 0, 0);
        while let Some(outgoing) = queue.next("one") {
            assert!(outgoing.text.len() <= MAX_TEXT, "{}", outgoing.text.len());
            let (count, of_this_kind) = match &outgoing.content {
                Content::Lanes(lanes) => (&mut dues, lanes.len()),
                Content::Cancels(tasks) => (&mut cancels, tasks.len()),
                Content::Guards(lanes) => (&mut guards, lanes.len()),
            };
            *count += of_this_kind;
            let items: Vec<serde_json::Value> = serde_json::from_str(&outgoing.text).unwrap();
            assert_eq!(items.len(), of_this_kind, "one kind in each: {}", outgoing.text);
        }
        assert_eq!((dues, cancels, guards), (200, 200, 200));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_told_again_too_soon_is_said_when_the_quiet_time_is_over() {
        let mut queue = SendQueue::default();
        queue.tell(key("a"), at(7));
        assert!(queue.next("one").is_some());
        // Another process may have found nothing more in the meantime, and forgotten the lane.
        queue.tell(key("a"), at(8));
        assert!(queue.next("one").is_none() && !queue.is_empty());
        tokio::time::advance(QUIET_FOR).await;
        assert!(queue.next("one").is_some());
        assert!(queue.next("one").is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn what_could_not_be_said_is_said_again() {
        let mut queue = SendQueue::default();
        queue.tell(key("a"), at(7));
        queue.tell_cancel(TenantId::default_tenant(), TaskId::from_parts(7, 7));
        queue.tell_guards(key("a").0);
        for _ in 0..3 {
            let said = [queue.next("one").unwrap(), queue.next("one").unwrap(), queue.next("one").unwrap()];
            assert!(queue.next("one").is_none());
            assert!(queue.is_empty());
            for outgoing in said {
                queue.put_back(outgoing);
                assert!(!queue.is_empty());
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_another_process_has_told_is_not_told_again_at_once() {
        let mut queue = SendQueue::default();
        queue.tell(key("a"), at(7));
        queue.told(key("a"), at(7));
        assert!(queue.next("one").is_none() && queue.is_empty());
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

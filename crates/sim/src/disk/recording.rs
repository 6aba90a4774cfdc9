//! Recording: what a child process did to its files, in order.

use super::crash::{Crash, CrashPoint, Moment};
use super::durable::Disk;
use super::fate::Fate;

/// A file or a directory, distinct from an earlier one of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(pub(super) usize);

impl Node {
    /// The recorded directory itself.
    pub const ROOT: Node = Node(0);
}

/// One operation of the child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The child changed a file's content or length.
    File(Node, FileChange),
    /// The child changed a name in this directory.
    Name(Node, NameChange),
    /// The child synced a file or a directory.
    Sync(Node),
    /// The child mapped a file for writing; its changes are not recorded from then on.
    Map(Node),
    /// The child wrote a mark.
    Mark(Vec<u8>),
}

/// A change of a file's content or length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileChange {
    /// These bytes were written.
    Write {
        /// The position of the first byte.
        offset: usize,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// The file was truncated or extended to exactly this length.
    Resize(usize),
    /// The file was extended to this length, if it was shorter.
    Extend(usize),
}

/// A change of a name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameChange {
    /// A file or directory was created.
    Made(String, Node),
    /// A name was removed.
    Removed(String),
    /// A node was renamed in the same directory; a node that had that name has none now.
    Renamed {
        /// The old name.
        from: String,
        /// The new name.
        to: String,
        /// The renamed node.
        node: Node,
    },
}

/// A run of a child process: the directory before it, and the changes to it.
#[derive(Debug, Clone)]
pub struct Recording {
    pub(super) start: Disk<'static>,
    pub(super) events: Vec<Event>,
    pub(super) names: Vec<String>,
}

impl Recording {
    /// All events, in order.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The path of a node below the recorded directory when it was created.
    pub fn name(&self, node: Node) -> &str {
        &self.names[node.0]
    }

    /// The same run with only those events for which `keep` is true, by position: a disk that drops events, to test
    /// whether a check notices it.
    pub fn retain(&self, keep: impl Fn(usize, &Event) -> bool) -> Recording {
        let kept = self.events.iter().enumerate().filter(|(place, event)| keep(*place, event));
        let events = kept.map(|(_, event)| event.clone()).collect();
        Recording { start: self.start.clone(), events, names: self.names.clone() }
    }

    /// Every moment at which a crash may leave another disk than a moment before: just before each change or sync, and
    /// at the end. The marks that follow a sync count as made before the crash after it.
    pub fn crash_points(&self) -> Vec<CrashPoint> {
        let mut points = Vec::new();
        let mut after_sync = false;
        for (at, event) in self.events.iter().enumerate() {
            let is_sync = matches!(event, Event::Sync(_));
            if matches!(event, Event::Mark(_)) {
                continue;
            }
            let moment = match (is_sync, after_sync) {
                (true, _) => Moment::BeforeSync,
                (false, true) => Moment::AfterSync,
                (false, false) => Moment::BetweenSyncs,
            };
            points.push(CrashPoint { at, moment });
            after_sync = is_sync;
        }
        let moment = if after_sync { Moment::AfterSync } else { Moment::BetweenSyncs };
        points.push(CrashPoint { at: self.events.len(), moment });
        points
    }

    /// The crash at one point with one outcome for the unsynced writes, to examine a failure again.
    pub fn crash(&self, point: CrashPoint, fate: Fate) -> Crash<'_> {
        let mut disk = self.start.clone();
        let mut marks = Vec::new();
        for event in &self.events[..point.at] {
            disk.apply(event);
            marks.extend(mark(event));
        }
        Crash { point, fate, image: disk.image(fate), marks }
    }
}

/// The mark, if the event is one.
pub(super) fn mark(event: &Event) -> Option<&[u8]> {
    match event {
        Event::Mark(said) => Some(said),
        _ => None,
    }
}

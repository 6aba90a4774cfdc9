//! What a child process did to its files, in order.

use super::crash::{Crash, CrashPoint, Moment};
use super::durable::Disk;
use super::fate::Fate;

/// A file or a directory, told apart from an earlier one of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(pub(super) usize);

impl Node {
    /// The recorded directory itself.
    pub const ROOT: Node = Node(0);
}

/// One thing that the child did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// It changed a file's content or length.
    File(Node, FileChange),
    /// It changed a name in this directory.
    Name(Node, NameChange),
    /// It synced a file or a directory.
    Sync(Node),
    /// It mapped a file to write to it, unseen from then on.
    Map(Node),
    /// It said something.
    Mark(Vec<u8>),
}

/// A change of a file's content or length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileChange {
    /// These bytes were written.
    Write {
        /// Where.
        offset: usize,
        /// What.
        bytes: Vec<u8>,
    },
    /// The file was cut off or lengthened to exactly this.
    Resize(usize),
    /// The file was lengthened to this, if it was not longer already.
    Extend(usize),
}

/// A change of a name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameChange {
    /// Something was made.
    Made(String, Node),
    /// A name was removed.
    Removed(String),
    /// A node got another name in the same directory; who had that name has none now.
    Renamed {
        /// What it was called.
        from: String,
        /// What it is called.
        to: String,
        /// Which.
        node: Node,
    },
}

/// A run of a child process: the directory as it was before, and what was done to it.
#[derive(Debug, Clone)]
pub struct Recording {
    pub(super) start: Disk<'static>,
    pub(super) events: Vec<Event>,
    pub(super) names: Vec<String>,
}

impl Recording {
    /// All that happened, in order.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// What a node was called below the recorded directory when it was made.
    pub fn name(&self, node: Node) -> &str {
        &self.names[node.0]
    }

    /// The same run with only those events that `keep` says, each with its place: a disk that lies, to see whether a
    /// check would notice.
    pub fn retain(&self, keep: impl Fn(usize, &Event) -> bool) -> Recording {
        let kept = self.events.iter().enumerate().filter(|(place, event)| keep(*place, event));
        let events = kept.map(|(_, event)| event.clone()).collect();
        Recording { start: self.start.clone(), events, names: self.names.clone() }
    }

    /// Every moment at which a crash may find another disk than a moment before: just before each change or sync, and
    /// at the end. The marks that follow a sync count as heard by the crash after it.
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

    /// The crash at one point with one fate: to look again at what a check complained about.
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

/// What was said, if something was.
pub(super) fn mark(event: &Event) -> Option<&[u8]> {
    match event {
        Event::Mark(said) => Some(said),
        _ => None,
    }
}

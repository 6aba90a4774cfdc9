//! Parses the recorder's log.

use std::collections::BTreeMap;

use anyhow::{Context, bail, ensure};

use super::durable::{Content, Directory, Disk, File, Found};
use super::recording::{Event, FileChange, NameChange, Node, Recording};

/// The kinds of records; `recorder.c` has the same list.
mod kind {
    pub(super) const CREATE: u64 = 1;
    pub(super) const MAKE_DIRECTORY: u64 = 2;
    pub(super) const WRITE: u64 = 3;
    pub(super) const RESIZE: u64 = 4;
    pub(super) const ALLOCATE: u64 = 5;
    pub(super) const SYNC: u64 = 6;
    pub(super) const REMOVE: u64 = 7;
    pub(super) const RENAME: u64 = 8;
    pub(super) const MAP: u64 = 9;
    pub(super) const MARK: u64 = 10;
    pub(super) const UNSUPPORTED: u64 = 11;
}

/// Reads a log of changes to a directory whose content before was `found`.
pub(super) fn parse(mut log: &[u8], found: Found) -> anyhow::Result<Recording> {
    let mut parser = Parser::new(found);
    let mut events = Vec::new();
    while !log.is_empty() {
        let record = Record::take(&mut log)?;
        let place = events.len();
        events.extend(parser.event(&record).with_context(|| format!("record {place} of the log"))?);
    }
    Ok(Recording { start: parser.disk, events, names: parser.names })
}

struct Record<'a> {
    kind: u64,
    inode: u64,
    offset: usize,
    length: usize,
    name: &'a str,
    data: &'a [u8],
}

impl<'a> Record<'a> {
    fn take(log: &mut &'a [u8]) -> anyhow::Result<Self> {
        let mut number =
            || take(log, 8).map(|bytes| bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)));
        let (kind, inode) = (number()?, number()?);
        let (offset, length) = (usize::try_from(number()?)?, usize::try_from(number()?)?);
        let (name, data) = (usize::try_from(number()?)?, usize::try_from(number()?)?);
        let name = std::str::from_utf8(take(log, name)?).context("a file's name")?;
        Ok(Record { kind, inode, offset, length, name, data: take(log, data)? })
    }
}

fn take<'a>(log: &mut &'a [u8], count: usize) -> anyhow::Result<&'a [u8]> {
    let (taken, rest) = log.split_at_checked(count).context("the log ends in the middle of a record")?;
    *log = rest;
    Ok(taken)
}

/// The node of each inode and each path at the current position.
struct Parser {
    /// Every node of the whole recording; those that the run creates are empty.
    disk: Disk<'static>,
    names: Vec<String>,
    inodes: BTreeMap<u64, Node>,
    paths: BTreeMap<String, Node>,
}

impl Parser {
    fn new(found: Found) -> Self {
        let paths = found.names.iter().cloned().zip((0..).map(Node)).collect();
        Parser { disk: found.disk, names: found.names, inodes: found.inodes, paths }
    }

    fn event(&mut self, record: &Record<'_>) -> anyhow::Result<Option<Event>> {
        let event = match record.kind {
            // The recorder's first record: the recorded directory.
            kind::MAKE_DIRECTORY if record.name.is_empty() => {
                ensure!(self.node(record)? == Node::ROOT, "another directory was recorded");
                return Ok(None);
            }
            kind::CREATE => self.made(record, Content::File(File::default()))?,
            kind::MAKE_DIRECTORY => self.made(record, Content::Directory(Directory::default()))?,
            kind::WRITE => {
                let (offset, bytes) = (record.offset, record.data.to_vec());
                Event::File(self.node(record)?, FileChange::Write { offset, bytes })
            }
            kind::RESIZE => Event::File(self.node(record)?, FileChange::Resize(record.length)),
            kind::ALLOCATE => Event::File(self.node(record)?, FileChange::Extend(record.offset + record.length)),
            kind::SYNC => Event::Sync(self.node(record)?),
            kind::MAP => Event::Map(self.node(record)?),
            kind::REMOVE => {
                self.paths.remove(record.name);
                let (directory, name) = self.place(record.name)?;
                Event::Name(directory, NameChange::Removed(name))
            }
            kind::RENAME => self.renamed(record)?,
            kind::MARK => Event::Mark(record.data.to_vec()),
            kind::UNSUPPORTED => bail!("the recorder does not understand this call: {}", record.name),
            other => bail!("a record of kind {other}"),
        };
        Ok(Some(event))
    }

    fn made(&mut self, record: &Record<'_>, content: Content<'static>) -> anyhow::Result<Event> {
        let (directory, name) = self.place(record.name)?;
        let node = self.disk.add(content);
        self.names.push(record.name.to_owned());
        self.inodes.insert(record.inode, node);
        self.paths.insert(record.name.to_owned(), node);
        Ok(Event::Name(directory, NameChange::Made(name, node)))
    }

    fn renamed(&mut self, record: &Record<'_>) -> anyhow::Result<Event> {
        let new = std::str::from_utf8(record.data).context("a file's new name")?;
        let (directory, from) = self.place(record.name)?;
        let (to_directory, to) = self.place(new)?;
        let node = self.paths.remove(record.name).with_context(|| format!("{} was never made", record.name))?;
        ensure!(directory == to_directory, "{} moved to another directory", record.name);
        ensure!(!self.disk.is_directory(node), "{} is a directory, and was renamed", record.name);
        self.paths.insert(new.to_owned(), node);
        Ok(Event::Name(directory, NameChange::Renamed { from, to, node }))
    }

    fn node(&self, record: &Record<'_>) -> anyhow::Result<Node> {
        self.inodes.get(&record.inode).copied().context("a change of a file that was never made")
    }

    /// Splits a path into its directory and the name in it.
    fn place(&self, path: &str) -> anyhow::Result<(Node, String)> {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let directory = self.paths.get(directory).with_context(|| format!("{directory} was never made"))?;
        Ok((*directory, name.to_owned()))
    }
}

//! The durable content of each file and directory, and the changes that are not synced yet.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::fate::{Draw, Fate};
use super::image::Image;
use super::recording::{Event, FileChange, NameChange, Node};

/// The state of the disk at one moment of a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Disk<'a> {
    nodes: Vec<Content<'a>>,
}

/// The content of a node.
#[derive(Debug, Clone)]
pub(super) enum Content<'a> {
    File(File<'a>),
    Directory(Directory<'a>),
}

/// A file.
#[derive(Debug, Clone, Default)]
pub(super) struct File<'a> {
    pub(super) durable: Vec<u8>,
    /// Changes since the last sync.
    pub(super) pending: Vec<&'a FileChange>,
    pub(super) is_mapped: bool,
}

/// The names in a directory.
#[derive(Debug, Clone, Default)]
pub(super) struct Directory<'a> {
    pub(super) durable: BTreeMap<String, Node>,
    /// Changes since the last sync.
    pub(super) pending: Vec<&'a NameChange>,
}

impl<'a> Disk<'a> {
    /// Adds a node that has no name yet.
    pub(super) fn add(&mut self, content: Content<'a>) -> Node {
        self.nodes.push(content);
        Node(self.nodes.len() - 1)
    }

    pub(super) fn is_directory(&self, node: Node) -> bool {
        matches!(self.nodes.get(node.0), Some(Content::Directory(_)))
    }

    /// Applies an event.
    pub(super) fn apply(&mut self, event: &'a Event) {
        match event {
            Event::File(node, change) => {
                if let Content::File(file) = &mut self.nodes[node.0] {
                    file.pending.push(change);
                }
            }
            Event::Name(directory, change) => {
                if let Content::Directory(directory) = &mut self.nodes[directory.0] {
                    directory.pending.push(change);
                }
            }
            Event::Sync(node) => self.nodes[node.0].sync(),
            Event::Map(node) => {
                if let Content::File(file) = &mut self.nodes[node.0] {
                    file.is_mapped = true;
                }
            }
            Event::Mark(_) => {}
        }
    }

    /// The image after a crash.
    pub(super) fn image(&self, fate: Fate) -> Image {
        let mut image = Image::default();
        self.visit(Node::ROOT, &PathBuf::new(), &mut Draw::new(fate), &mut image);
        image
    }

    fn visit(&self, node: Node, path: &Path, draw: &mut Draw, image: &mut Image) {
        match &self.nodes[node.0] {
            Content::File(file) => {
                image.files.insert(path.to_owned(), draw.content(file));
            }
            Content::Directory(directory) => {
                image.directories.insert(path.to_owned());
                for (name, node) in draw.names(directory) {
                    self.visit(node, &path.join(name), draw, image);
                }
            }
        }
    }
}

impl Content<'_> {
    fn sync(&mut self) {
        match self {
            Content::File(file) => {
                for change in file.pending.drain(..) {
                    change.apply(&mut file.durable);
                }
            }
            Content::Directory(directory) => {
                for change in directory.pending.drain(..) {
                    change.apply(&mut directory.durable);
                }
            }
        }
    }
}

impl FileChange {
    pub(super) fn apply(&self, content: &mut Vec<u8>) {
        match self {
            FileChange::Write { offset, bytes } => {
                content.resize(self.length_after(content.len()), 0);
                content[*offset..offset + bytes.len()].copy_from_slice(bytes);
            }
            FileChange::Resize(_) | FileChange::Extend(_) => content.resize(self.length_after(content.len()), 0),
        }
    }

    pub(super) fn length_after(&self, length: usize) -> usize {
        match self {
            FileChange::Write { offset, bytes } => length.max(offset + bytes.len()),
            FileChange::Resize(exactly) => *exactly,
            FileChange::Extend(least) => length.max(*least),
        }
    }
}

impl NameChange {
    pub(super) fn apply(&self, names: &mut BTreeMap<String, Node>) {
        match self {
            NameChange::Made(name, node) => {
                names.insert(name.clone(), *node);
            }
            NameChange::Removed(name) => {
                names.remove(name);
            }
            NameChange::Renamed { from, to, node } => {
                names.remove(from);
                names.insert(to.clone(), *node);
            }
        }
    }
}

/// A directory before the run; all of it counts as durable.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) disk: Disk<'static>,
    /// The path of each node below the directory.
    pub(super) names: Vec<String>,
    /// The nodes by their inodes.
    pub(super) inodes: BTreeMap<u64, Node>,
}

impl Found {
    pub(super) fn read(directory: &Path) -> anyhow::Result<Found> {
        let mut found = Found::default();
        found.add(directory, String::new()).with_context(|| format!("reading {}", directory.display()))?;
        Ok(found)
    }

    fn add(&mut self, path: &Path, name: String) -> anyhow::Result<Node> {
        let metadata = fs::metadata(path)?;
        let is_directory = metadata.is_dir();
        let content = match is_directory {
            true => Content::Directory(Directory::default()),
            false => Content::File(File { durable: fs::read(path)?, ..File::default() }),
        };
        let node = self.disk.add(content);
        self.names.push(name.clone());
        self.inodes.insert(metadata.ino(), node);
        if is_directory {
            let mut entries = fs::read_dir(path)?.collect::<Result<Vec<_>, _>>()?;
            entries.sort_by_key(fs::DirEntry::file_name);
            for entry in entries {
                let own = entry.file_name().to_string_lossy().into_owned();
                let whole = if name.is_empty() { own.clone() } else { format!("{name}/{own}") };
                let child = self.add(&entry.path(), whole)?;
                if let Content::Directory(directory) = &mut self.disk.nodes[node.0] {
                    directory.durable.insert(own, child);
                }
            }
        }
        Ok(node)
    }
}

//! What happens to the changes that were not synced.

use std::collections::BTreeMap;
use std::fmt;

use super::durable::{Directory, File};
use super::recording::{FileChange, Node};
use crate::random::Random;

/// The unit that is written completely or not at all, in bytes.
const SECTOR: usize = 512;

/// What happens to the changes that were not synced when the power is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// All changes are lost.
    Lost,
    /// All changes are kept.
    Kept,
    /// Some changes are kept, some in part, drawn from this seed.
    Mixed(u64),
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fate::Lost => write!(f, "all lost"),
            Fate::Kept => write!(f, "all kept"),
            Fate::Mixed(seed) => write!(f, "mixed by seed {seed:#x}"),
        }
    }
}

/// A fate with its state while the files of a disk are drawn.
pub(super) enum Draw {
    Lost,
    Kept,
    Mixed(Mix),
}

/// How one image is mixed. Crashes differ in style: nearly everything written or hardly anything, in order or not.
pub(super) struct Mix {
    random: Random,
    /// The probability that a part has all of its changes.
    kept: f64,
    /// How many neighbouring sectors share their fate.
    sectors_per_part: usize,
    /// Whether a sector that a file grew by, and whose data was lost, holds garbage instead of zeros.
    has_garbage: bool,
}

impl Draw {
    pub(super) fn new(fate: Fate) -> Self {
        match fate {
            Fate::Lost => Draw::Lost,
            Fate::Kept => Draw::Kept,
            Fate::Mixed(seed) => Draw::Mixed(Mix::new(seed)),
        }
    }

    /// The content of a file after the crash.
    pub(super) fn content(&mut self, file: &File<'_>) -> Vec<u8> {
        match self {
            Draw::Lost => file.durable.clone(),
            Draw::Kept => {
                let mut content = file.durable.clone();
                file.pending.iter().for_each(|change| change.apply(&mut content));
                content
            }
            Draw::Mixed(mix) => mix.content(file),
        }
    }

    /// The names in a directory after the crash.
    pub(super) fn names(&mut self, directory: &Directory<'_>) -> BTreeMap<String, Node> {
        let mut names = directory.durable.clone();
        for change in &directory.pending {
            let happened = match self {
                Draw::Lost => false,
                Draw::Kept => true,
                Draw::Mixed(mix) => mix.random.chance(mix.kept),
            };
            if happened {
                change.apply(&mut names);
            }
        }
        names
    }
}

impl Mix {
    fn new(seed: u64) -> Self {
        let mut random = Random::stream(seed, 0);
        let kept = *random.pick(&[0.05, 0.25, 0.5, 0.75, 0.95]);
        let sectors_per_part = *random.pick(&[1, 1, 8, usize::MAX]);
        let has_garbage = random.chance(0.5);
        Mix { random, kept, sectors_per_part, has_garbage }
    }

    fn content(&mut self, file: &File<'_>) -> Vec<u8> {
        let mut content = file.durable.clone();
        let mut parts = BTreeMap::new();
        for (index, change) in file.pending.iter().enumerate() {
            let mut happened = |mix: &mut Mix, sector: usize| {
                let part = sector / mix.sectors_per_part;
                *parts.entry(part).or_insert_with(|| mix.changes_that_happened(file.pending.len()))
            };
            match change {
                FileChange::Write { offset, bytes } => {
                    for (start, end) in sectors(*offset, offset + bytes.len()) {
                        let happened = happened(self, start / SECTOR);
                        if index < happened {
                            place(&mut content, start, &bytes[start - offset..end - offset]);
                        } else if happened == 0 && start >= file.durable.len() && self.has_garbage {
                            let mut garbage = vec![0; end - start];
                            self.random.fill(&mut garbage);
                            place(&mut content, start, &garbage);
                        }
                    }
                }
                FileChange::Resize(length) => {
                    for (start, end) in sectors(*length, content.len()) {
                        if index < happened(self, start / SECTOR) {
                            content[start..end].fill(0);
                        }
                    }
                }
                FileChange::Extend(_) => {}
            }
        }
        content.resize(self.length(file), 0);
        if file.is_mapped {
            self.random.fill(&mut content);
        }
        content
    }

    fn length(&mut self, file: &File<'_>) -> usize {
        let happened = self.changes_that_happened(file.pending.len());
        file.pending[..happened].iter().fold(file.durable.len(), |length, change| change.length_after(length))
    }

    /// How many of `all` changes a part has: its state is that of some moment since the last sync.
    fn changes_that_happened(&mut self, all: usize) -> usize {
        if self.random.chance(self.kept) {
            all
        } else if self.random.chance(0.5) {
            0
        } else {
            self.random.below(all + 1)
        }
    }
}

/// The range, split at sector boundaries.
fn sectors(from: usize, to: usize) -> impl Iterator<Item = (usize, usize)> {
    let borders = (from / SECTOR..to.div_ceil(SECTOR)).map(|sector| sector * SECTOR);
    borders.map(move |border| (border.max(from), (border + SECTOR).min(to)))
}

fn place(content: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    if content.len() < at + bytes.len() {
        content.resize(at + bytes.len(), 0);
    }
    content[at..at + bytes.len()].copy_from_slice(bytes);
}

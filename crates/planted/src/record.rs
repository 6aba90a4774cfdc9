//! The records of the bugs in `bugs/*.toml`.

use std::sync::LazyLock;

use serde::Deserialize;

/// A bug that can be planted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bug {
    /// Its position among all bugs: the number of its switch.
    pub number: usize,
    /// Its name on the command line.
    pub name: String,
    /// What it does wrong.
    pub about: String,
    /// The invariants of ARCHITECTURE.md that it may break, by number.
    pub breaks: Vec<u8>,
    /// The seed that found it, if it once was a real bug.
    pub found: Option<Found>,
    /// Its changes of the source.
    pub edits: Vec<Edit>,
}

/// A seed that found a bug when it was a real one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Found {
    /// The seed.
    pub seed: u64,
    /// The invariant that it breaks there.
    pub breaks: u8,
}

/// One change of the source.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The file, from the root of the tree.
    pub file: String,
    /// The right text: it is in the file exactly once.
    pub find: String,
    /// The wrong text. It replaces `find` while the bug is switched on. A text with the word `BUG` replaces it always,
    /// and `BUG` in it is whether the bug is switched on.
    pub replace: String,
}

/// Records that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// A file is not a valid list of bugs.
    #[error("{file}: {source}")]
    Syntax {
        /// The file.
        file: String,
        /// What is wrong with it.
        source: Box<toml::de::Error>,
    },
    /// Two bugs have one name.
    #[error("two bugs are named {0}")]
    SameName(String),
    /// A bug changes nothing.
    #[error("the bug {0} has no edit")]
    NoEdit(String),
    /// A bug names no invariant, or one that does not exist.
    #[error("the bug {0} breaks one or more of the invariants 1 to {LAST_INVARIANT}")]
    Invariants(String),
}

/// The last invariant of ARCHITECTURE.md.
const LAST_INVARIANT: u8 = 14;

/// A file of records.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    bug: Vec<Record>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    name: String,
    about: String,
    breaks: Vec<u8>,
    found: Option<Found>,
    edit: Vec<Edit>,
}

/// The files, by the part of the product that the bugs are in.
const FILES: [(&str, &str); 4] = [
    ("bugs/core.toml", include_str!("../bugs/core.toml")),
    ("bugs/engine.toml", include_str!("../bugs/engine.toml")),
    ("bugs/server.toml", include_str!("../bugs/server.toml")),
    ("bugs/store.toml", include_str!("../bugs/store.toml")),
];

/// Every bug.
pub fn all() -> &'static [Bug] {
    static ALL: LazyLock<Vec<Bug>> =
        LazyLock::new(|| read(&FILES).unwrap_or_else(|error| panic!("the records of the planted bugs: {error}")));
    &ALL
}

/// The bug with this name.
pub fn named(name: &str) -> Option<&'static Bug> {
    all().iter().find(|bug| bug.name == name)
}

/// The bugs in these files, given by name and content.
pub fn read(files: &[(&str, &str)]) -> Result<Vec<Bug>, Unreadable> {
    let mut bugs: Vec<Bug> = Vec::new();
    for (name, content) in files {
        let file: File = toml::from_str(content)
            .map_err(|source| Unreadable::Syntax { file: (*name).to_owned(), source: Box::new(source) })?;
        for record in file.bug {
            let Record { name, about, breaks, found, edit: edits } = record;
            if bugs.iter().any(|bug| bug.name == name) {
                return Err(Unreadable::SameName(name));
            }
            if edits.is_empty() {
                return Err(Unreadable::NoEdit(name));
            }
            let named = breaks.iter().copied().chain(found.as_ref().map(|found| found.breaks));
            if breaks.is_empty() || named.into_iter().any(|number| !(1..=LAST_INVARIANT).contains(&number)) {
                return Err(Unreadable::Invariants(name));
            }
            bugs.push(Bug { number: bugs.len(), name, about, breaks, found, edits });
        }
    }
    Ok(bugs)
}

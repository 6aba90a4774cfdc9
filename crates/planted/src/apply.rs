//! Applies the bugs to the source, each behind its switch.

use std::collections::BTreeMap;

use crate::{Bug, Edit};

/// The placeholder for the switch in a replacement.
const SWITCH: &str = "BUG";

/// A record that does not fit the source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// There is no such file.
    #[error("{bug}: there is no file {file}")]
    NoFile {
        /// The bug's name.
        bug: String,
        /// The file that it changes.
        file: String,
    },
    /// The text is not in the file, or more than once.
    #[error("{bug}: {times} places in {file} match, and it must be one: {find}")]
    Matches {
        /// The bug's name.
        bug: String,
        /// The file that it changes.
        file: String,
        /// The text that it looks for.
        find: String,
        /// How often the text is in the file.
        times: usize,
    },
    /// Two edits change the same text.
    #[error("{first} and {second} change the same text in {file}")]
    Overlap {
        /// The file.
        file: String,
        /// The bug whose text begins first.
        first: String,
        /// The other one.
        second: String,
    },
}

/// The files that the bugs change, with all changes applied. `read` returns the content of a file of the tree.
pub fn apply(
    bugs: &[Bug],
    mut read: impl FnMut(&str) -> Option<String>,
) -> Result<BTreeMap<String, String>, Vec<Mismatch>> {
    let mut by_file: BTreeMap<&str, Vec<(&Bug, &Edit)>> = BTreeMap::new();
    for bug in bugs {
        for edit in &bug.edits {
            by_file.entry(&edit.file).or_default().push((bug, edit));
        }
    }
    let mut mismatches = Vec::new();
    let mut changed = BTreeMap::new();
    for (file, edits) in by_file {
        let Some(source) = read(file) else {
            let missing =
                edits.iter().map(|(bug, _)| Mismatch::NoFile { bug: bug.name.clone(), file: file.to_owned() });
            mismatches.extend(missing);
            continue;
        };
        match apply_to(file, &source, &edits) {
            Ok(source) => drop(changed.insert(file.to_owned(), source)),
            Err(found) => mismatches.extend(found),
        }
    }
    if mismatches.is_empty() { Ok(changed) } else { Err(mismatches) }
}

fn apply_to(file: &str, source: &str, edits: &[(&Bug, &Edit)]) -> Result<String, Vec<Mismatch>> {
    let mut places = Vec::new();
    let mut mismatches = Vec::new();
    for &(bug, edit) in edits {
        let found: Vec<usize> = source.match_indices(&edit.find).map(|(at, _)| at).collect();
        match found[..] {
            [at] => places.push((at, bug, edit)),
            _ => mismatches.push(Mismatch::Matches {
                bug: bug.name.clone(),
                file: file.to_owned(),
                find: edit.find.clone(),
                times: found.len(),
            }),
        }
    }
    places.sort_by_key(|(at, ..)| *at);
    for pair in places.windows(2) {
        let [(at, first, edit), (next, second, _)] = pair else { continue };
        if at + edit.find.len() > *next {
            let (first, second) = (first.name.clone(), second.name.clone());
            mismatches.push(Mismatch::Overlap { file: file.to_owned(), first, second });
        }
    }
    if !mismatches.is_empty() {
        return Err(mismatches);
    }
    let (mut changed, mut from) = (String::with_capacity(source.len() * 2), 0);
    for (at, bug, edit) in places {
        changed.push_str(&source[from..at]);
        changed.push_str(&switched(bug, edit));
        from = at + edit.find.len();
    }
    changed.push_str(&source[from..]);
    Ok(changed)
}

/// The text in the copy that replaces `edit.find`.
fn switched(bug: &Bug, edit: &Edit) -> String {
    let switch = format!("::redrive_planted::is({})", bug.number);
    match edit.replace.contains(SWITCH) {
        true => edit.replace.replace(SWITCH, &switch),
        false => format!("if {switch} {{ {} }} else {{ {} }}", edit.replace, edit.find),
    }
}

#[cfg(test)]
mod tests;

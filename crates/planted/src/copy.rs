//! Writes a copy of the tree that has every bug, each behind its switch.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::{Mismatch, all, apply};

/// The parts of the tree that cargo needs.
const COPIED: [&str; 6] = [".cargo", "Cargo.lock", "Cargo.toml", "crates", "examples", "xtask"];

/// Marks the copy as one: [`crate::IS_PLANTED`].
const IS_PLANTED: (&str, &str, &str) =
    ("crates/planted/src/lib.rs", "pub const IS_PLANTED: bool = false;", "pub const IS_PLANTED: bool = true;");

/// A version of its own, so that cargo keeps the copy's build output apart from the tree's.
const VERSION: (&str, &str, &str) =
    ("Cargo.toml", "[workspace.package]\nversion = \"0.1.0\"\n", "[workspace.package]\nversion = \"0.1.0-planted\"\n");

/// A bug may leave something unused.
const LINTS: (&str, &str, &str) =
    ("Cargo.toml", "[workspace.lints.rust]\n", "[workspace.lints.rust]\nwarnings = \"allow\"\n");

/// Why there is no copy.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// Records that do not fit the tree.
    #[error("the records of the planted bugs do not fit the source any more:{}", list(.0))]
    Mismatches(Vec<Mismatch>),
    /// A text that the copy changes beside the records is not where it was.
    #[error("{file} does not have this text exactly once: {find:?}")]
    Changed {
        /// The file.
        file: String,
        /// The text that the copy replaces.
        find: &'static str,
    },
    /// A file that cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

/// Writes the tree under `root`, with the bugs, to `copy`. Existing files with the same content are not touched, so
/// that only what has changed is built again.
pub fn write_copy(root: &Path, copy: &Path) -> Result<(), CopyError> {
    let mut files = BTreeMap::new();
    collect(root, Path::new(""), &mut files)?;
    let text = |file: &str| files.get(Path::new(file)).and_then(|bytes| String::from_utf8(bytes.clone()).ok());
    let mut changed = apply(all(), text).map_err(CopyError::Mismatches)?;
    let crates: BTreeSet<String> = changed.keys().filter_map(|file| manifest_of(file)).collect();
    let depends = "[dependencies]\nredrive-planted = { path = \"../planted\" }\n";
    let manifests = crates.iter().map(|manifest| (manifest.as_str(), "[dependencies]\n", depends));
    for (file, find, replace) in manifests.chain([IS_PLANTED, VERSION, LINTS]) {
        let source = changed.remove(file).or_else(|| text(file)).unwrap_or_default();
        if source.matches(find).count() != 1 {
            return Err(CopyError::Changed { file: file.to_owned(), find });
        }
        changed.insert(file.to_owned(), source.replace(find, replace));
    }
    for (file, source) in changed {
        files.insert(file.into(), source.into_bytes());
    }
    remove_others(copy, Path::new(""), &files)?;
    for (file, content) in &files {
        let path = copy.join(file);
        if fs::read(&path).is_ok_and(|there| there == *content) {
            continue;
        }
        let directory = path.parent().unwrap_or(copy);
        fs::create_dir_all(directory).map_err(|source| at(directory, source))?;
        fs::write(&path, content).map_err(|source| at(&path, source))?;
    }
    Ok(())
}

/// The manifest of the crate that this file belongs to.
fn manifest_of(file: &str) -> Option<String> {
    let rest = file.strip_prefix("crates/")?;
    Some(format!("crates/{}/Cargo.toml", rest.split('/').next()?))
}

/// Every file of the tree, by its path from the root.
fn collect(root: &Path, under: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) -> Result<(), CopyError> {
    for (name, is_directory) in entries(&root.join(under))? {
        let path = under.join(&name);
        if under == Path::new("") && !COPIED.iter().any(|copied| name == Path::new(copied)) {
            continue;
        }
        if is_directory {
            collect(root, &path, files)?;
        } else {
            let whole = root.join(&path);
            files.insert(path, fs::read(&whole).map_err(|source| at(&whole, source))?);
        }
    }
    Ok(())
}

/// Removes files that an earlier copy had and this one does not have.
fn remove_others(copy: &Path, under: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) -> Result<(), CopyError> {
    if !copy.join(under).exists() {
        return Ok(());
    }
    for (name, is_directory) in entries(&copy.join(under))? {
        let path = under.join(&name);
        if is_directory {
            remove_others(copy, &path, files)?;
        } else if !files.contains_key(&path) {
            let whole = copy.join(&path);
            fs::remove_file(&whole).map_err(|source| at(&whole, source))?;
        }
    }
    Ok(())
}

/// The entries of a directory, and whether each is a directory itself.
fn entries(directory: &Path) -> Result<Vec<(PathBuf, bool)>, CopyError> {
    let failed = |source| at(directory, source);
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        found.push((entry.file_name().into(), entry.file_type().map_err(failed)?.is_dir()));
    }
    Ok(found)
}

fn at(path: &Path, source: io::Error) -> CopyError {
    CopyError::Io { path: path.to_owned(), source }
}

fn list(mismatches: &[Mismatch]) -> String {
    mismatches.iter().map(|mismatch| format!("\n  {mismatch}")).collect()
}

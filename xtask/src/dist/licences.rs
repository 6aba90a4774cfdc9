//! The licences of the crates that are compiled into the program. Most of them ask that their text goes with it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::tool;
use crate::binaries;

/// What the names of files with licences begin with.
const NAMES: &[&str] = &["license", "licence", "copying", "notice", "copyright"];

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    manifest_path: String,
}

/// All texts, each once with the crates that it is the licence of; first the list of crates with their licences' names.
pub(super) fn text() -> Result<String> {
    let compiled = compiled()?;
    let mut list = String::new();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in packages()? {
        let name = format!("{} {}", package.name, package.version);
        if !compiled.contains(&name) {
            continue;
        }
        list.push_str(&format!("{name}: {}\n", package.license.as_deref().unwrap_or("see its text")));
        let directory = Path::new(&package.manifest_path).parent().context("a manifest is in a directory")?;
        for text in texts_in(directory)? {
            texts.entry(text).or_default().push(name.clone());
        }
    }
    let mut all = format!("Redrive contains these crates:\n\n{list}");
    for (text, crates) in texts {
        all.push_str(&format!("\n{}\n{}:\n\n{}\n", "-".repeat(80), crates.join(", "), text.trim_end()));
    }
    Ok(all)
}

/// The crates of others in the program, as `name version`.
fn compiled() -> Result<BTreeSet<String>> {
    let mut tree = binaries::cargo();
    tree.args(["tree", "--locked", "--package", "redrive", "--edges", "normal", "--prefix", "none", "--format", "{p}"]);
    let printed = tool::line(&mut tree)?;
    // `name v1.2.3`, with a path behind it for the crates of this workspace.
    let others = printed.lines().filter(|line| !line.contains('/'));
    Ok(others.filter_map(|line| line.split_once(" v")).map(|(name, rest)| name_and_version(name, rest)).collect())
}

fn name_and_version(name: &str, rest: &str) -> String {
    let version = rest.split_whitespace().next().unwrap_or_default();
    format!("{name} {version}")
}

/// The crates of the workspace and their dependencies on this platform: the others need not have been downloaded.
fn packages() -> Result<Vec<Package>> {
    let version = tool::line(Command::new("rustc").arg("-vV"))?;
    let host =
        version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc did not name its platform")?;
    let mut metadata = binaries::cargo();
    metadata.args(["metadata", "--locked", "--format-version", "1", "--filter-platform", host]);
    let mut found: Metadata =
        serde_json::from_slice(&tool::output(&mut metadata)?).context("reading cargo metadata")?;
    found.packages.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    Ok(found.packages)
}

/// The licences in a crate, also of the C code that it brings along.
fn texts_in(crate_directory: &Path) -> Result<BTreeSet<String>> {
    let mut texts = BTreeSet::new();
    let mut directories = vec![crate_directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).with_context(|| format!("listing {}", directory.display()))? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
            if path.is_dir() {
                directories.push(path);
            } else if NAMES.iter().any(|known| name.starts_with(known)) && !name.ends_with(".rs") {
                let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
                texts.insert(String::from_utf8_lossy(&bytes).into_owned());
            }
        }
    }
    Ok(texts)
}

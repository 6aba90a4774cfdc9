//! Image: what a directory may hold after a crash.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use anyhow::Context;

/// The files and directories after a crash, by their paths below the recorded directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Image {
    /// The files with their content.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
    /// The directories, the recorded one (an empty path) among them.
    pub directories: BTreeSet<PathBuf>,
}

impl Image {
    /// Writes the image to a directory, which should be empty or missing.
    pub fn write_to(&self, directory: &Path) -> anyhow::Result<()> {
        let doing = || format!("writing an image to {}", directory.display());
        for below in &self.directories {
            fs::create_dir_all(directory.join(below)).with_context(doing)?;
        }
        for (below, content) in &self.files {
            fs::write(directory.join(below), content).with_context(doing)?;
        }
        Ok(())
    }

    /// A hash of the image, so that equal images are checked once.
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

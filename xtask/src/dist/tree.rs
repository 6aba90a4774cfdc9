//! The package's files as they will be installed: paths, modes, times.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::source_date::SourceDate;

/// The mode of every directory in the package.
const DIRECTORY_MODE: u32 = 0o755;

/// A directory that stands for `/`.
pub(super) struct Tree {
    root: PathBuf,
    /// The path and the size of every installed file.
    files: Vec<(String, usize)>,
}

impl Tree {
    /// An empty tree in a new directory.
    pub(super) fn new(root: &Path) -> Result<Self> {
        fs::create_dir(root).with_context(|| format!("making {}", root.display()))?;
        Ok(Tree { root: root.to_owned(), files: Vec::new() })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The paths of the installed files that no administrator changes, without a slash in front, sorted.
    pub(super) fn unchanging_paths(&self) -> Vec<&str> {
        let paths = self.files.iter().map(|(path, _)| path.as_str());
        let mut paths: Vec<&str> = paths.filter(|path| !path.starts_with("etc/")).collect();
        paths.sort_unstable();
        paths
    }

    /// The size of all files in KiB, each rounded up.
    pub(super) fn kibibytes(&self) -> usize {
        self.files.iter().map(|(_, size)| size.div_ceil(1024)).sum()
    }

    /// Installs a file with these contents.
    pub(super) fn install(&mut self, path: &str, mode: u32, contents: &[u8]) -> Result<()> {
        self.write(path, mode, contents)?;
        self.files.push((path.to_owned(), contents.len()));
        Ok(())
    }

    /// Installs a copy of a file.
    pub(super) fn install_file(&mut self, path: &str, mode: u32, from: &Path) -> Result<()> {
        let contents = fs::read(from).with_context(|| format!("reading {}", from.display()))?;
        self.install(path, mode, &contents)
    }

    /// Writes a file of the package that is not installed: one of those in `DEBIAN`.
    pub(super) fn write(&self, path: &str, mode: u32, contents: &[u8]) -> Result<()> {
        let file = self.root.join(path);
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent).with_context(|| format!("making {}", parent.display()))?;
        }
        fs::write(&file, contents).with_context(|| format!("writing {}", file.display()))?;
        fs::set_permissions(&file, fs::Permissions::from_mode(mode))
            .with_context(|| format!("changing the mode of {path}"))
    }

    /// Gives all files and directories one time, and all directories one mode, whatever the umask is.
    pub(super) fn finish(&self, date: SourceDate) -> Result<()> {
        let mut found = vec![self.root.clone()];
        while let Some(path) = found.pop() {
            if path.is_dir() {
                fs::set_permissions(&path, fs::Permissions::from_mode(DIRECTORY_MODE))?;
                for entry in fs::read_dir(&path).with_context(|| format!("listing {}", path.display()))? {
                    found.push(entry?.path());
                }
            }
            let file = fs::File::open(&path).with_context(|| format!("opening {}", path.display()))?;
            file.set_modified(date.as_system_time())
                .with_context(|| format!("changing the time of {}", path.display()))?;
        }
        Ok(())
    }
}

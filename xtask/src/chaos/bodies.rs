//! The directory of large bodies that all nodes share: replaced by an empty one, like a volume that is unmounted, and
//! restored.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The directory.
#[derive(Debug)]
pub struct Bodies {
    directory: PathBuf,
    /// How often it was swapped.
    swaps: u32,
    is_away: bool,
}

impl Bodies {
    /// An empty directory below `dir`.
    pub fn new(dir: &Path) -> Result<Self> {
        let directory = dir.join("bodies");
        std::fs::create_dir(&directory).with_context(|| format!("making {}", directory.display()))?;
        Ok(Bodies { directory, swaps: 0, is_away: false })
    }

    /// The URL of the directory, for nodes.
    pub fn url(&self) -> String {
        format!("file://{}", self.directory.display())
    }

    /// Replaces the directory by an empty one.
    pub fn unmount(&mut self) -> Result<()> {
        rename(&self.directory, &self.away())?;
        self.is_away = true;
        self.swaps += 1;
        std::fs::create_dir(&self.directory).with_context(|| format!("making {}", self.directory.display()))
    }

    /// Restores the right directory. Files that were written to the other one are no longer visible.
    pub fn mount(&mut self) -> Result<()> {
        if self.is_away {
            rename(&self.directory, &self.directory.with_file_name(format!("not-bodies-{}", self.swaps)))?;
            rename(&self.away(), &self.directory)?;
            self.is_away = false;
        }
        Ok(())
    }

    fn away(&self) -> PathBuf {
        self.directory.with_file_name("bodies-away")
    }
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    std::fs::rename(from, to).with_context(|| format!("renaming {} to {}", from.display(), to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_is_there_again_and_what_came_in_between_is_not() {
        let dir = crate::binaries::scratch_dir(&format!("bodies/{}", std::process::id())).unwrap();
        let mut bodies = Bodies::new(&dir).unwrap();
        let names = || {
            let entries = std::fs::read_dir(dir.join("bodies")).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
        };
        std::fs::write(dir.join("bodies/right"), "").unwrap();
        for _ in 0..2 {
            bodies.unmount().unwrap();
            assert_eq!(names(), Vec::<String>::new());
            std::fs::write(dir.join("bodies/wrong"), "").unwrap();
            bodies.mount().unwrap();
            assert_eq!(names(), ["right"]);
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }
}

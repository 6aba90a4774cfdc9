//! A wrong machine clock for one node: a small library in front of the C library, which reads the error from a file.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

const SOURCE: &str = include_str!("wrong_clock.c");

/// Compiles the library in this directory.
pub fn compile(dir: &Path) -> Result<PathBuf> {
    let (source, library) = (dir.join("wrong_clock.c"), dir.join("libwrong_clock.so"));
    std::fs::write(&source, SOURCE).with_context(|| format!("writing {}", source.display()))?;
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
    let status = cc.status().context("running cc")?;
    if !status.success() {
        bail!("cc could not compile {}: {status}", source.display());
    }
    Ok(library)
}

/// A node's clock.
#[derive(Debug)]
pub struct WrongClock {
    library: PathBuf,
    path: PathBuf,
    file: File,
}

impl WrongClock {
    /// A clock that is off by this many seconds.
    pub fn new(library: &Path, path: PathBuf, off_seconds: i64) -> Result<Self> {
        let file = File::create(&path).with_context(|| format!("making {}", path.display()))?;
        let clock = WrongClock { library: library.to_owned(), path, file };
        clock.set(off_seconds)?;
        Ok(clock)
    }

    /// Sets the clock, also of a running process. Its measurement of elapsed time stays correct.
    pub fn set(&self, off_seconds: i64) -> Result<()> {
        self.file
            .write_all_at(&off_seconds.to_ne_bytes(), 0)
            .with_context(|| format!("writing {}", self.path.display()))
    }

    /// Makes the command use this clock.
    pub fn apply_to(&self, command: &mut Command) {
        command.env("LD_PRELOAD", &self.library).env("WRONG_CLOCK", &self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_sees_the_clock_that_it_was_given() {
        let dir = crate::binaries::scratch_dir(&format!("wrong-clock/{}", std::process::id())).unwrap();
        let library = compile(&dir).unwrap();
        let clock = WrongClock::new(&library, dir.join("clock"), 0).unwrap();
        let shown = || {
            let mut command = Command::new("date");
            command.arg("+%s");
            clock.apply_to(&mut command);
            String::from_utf8(command.output().unwrap().stdout).unwrap().trim().parse::<i64>().unwrap()
        };
        let right = || (crate::clock::now_us() / 1_000_000) as i64;
        for off in [0, 3_600, -3_600] {
            clock.set(off).unwrap();
            let (before, seen, after) = (right(), shown(), right());
            assert!((before..=after).contains(&(seen - off)), "{off}: {seen}");
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }
}

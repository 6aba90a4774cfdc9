//! `--out`: where the page with plots goes. How it is drawn is not a matter of the command line.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::wrong;
use crate::output::{Output, notice};

/// Where a page goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// Standard output, instead of the table and the charts.
    Standard,
    /// A file, which is replaced as a whole.
    File(PathBuf),
    /// Something that is no file and cannot be replaced, such as a pipe.
    Stream(PathBuf),
}

impl Target {
    /// Where `path` leads, if a page can be written there: better said before a long simulation than after it.
    pub(super) fn at(path: &Path) -> anyhow::Result<Target> {
        if path == Path::new("-") {
            return Ok(Target::Standard);
        }
        let cannot = |why: String| wrong(format!("cannot write the report to {}: {why}", path.display()));
        match fs::metadata(path) {
            Ok(there) if there.is_dir() => Err(cannot("it is a directory".into())),
            Ok(there) if !there.is_file() => Ok(Target::Stream(path.to_owned())),
            _ => match takes_new_files(path) {
                Ok(()) => Ok(Target::File(path.to_owned())),
                Err(error) => Err(cannot(no_directory(path).unwrap_or_else(|| error.to_string()))),
            },
        }
    }

    /// Writes the page.
    pub(super) fn write(&self, page: &str) -> anyhow::Result<()> {
        let (path, written) = match self {
            Target::Standard => return Ok(Output::standard().text(page)?),
            Target::File(path) => (path, replace(path, page)),
            Target::Stream(path) => (path, OpenOptions::new().write(true).open(path).and_then(|file| fill(file, page))),
        };
        written.map_err(|error| wrong(format!("cannot write the report to {}: {error}", path.display())))
    }

    /// Says where the page is.
    pub(super) fn tell(&self) {
        if let Target::File(path) | Target::Stream(path) = self {
            notice(format!("the report is in {}", path.display()));
        }
    }
}

fn no_directory(path: &Path) -> Option<String> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty())?;
    (!directory.is_dir()).then(|| format!("there is no directory {}", directory.display()))
}

/// Whether the directory of this file takes new ones.
fn takes_new_files(path: &Path) -> io::Result<()> {
    let beside = beside(path);
    create(&beside)?;
    fs::remove_file(&beside)
}

/// The page is written to a temporary file first, so that a half-written page is never visible.
fn replace(path: &Path, page: &str) -> io::Result<()> {
    let beside = beside(path);
    let written = create(&beside).and_then(|file| fill(file, page)).and_then(|()| fs::rename(&beside, real(path)));
    if written.is_err() {
        // What went wrong is told; that a part of a page may be left is the smaller trouble.
        fs::remove_file(&beside).ok();
    }
    written
}

fn create(path: &Path) -> io::Result<fs::File> {
    OpenOptions::new().write(true).create(true).truncate(true).open(path)
}

fn fill(mut file: fs::File, page: &str) -> io::Result<()> {
    file.write_all(page.as_bytes())?;
    file.flush()
}

/// A link stays one: what it leads to is replaced.
fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// A name beside the target, for as long as the page is being written.
fn beside(path: &Path) -> PathBuf {
    let path = real(path);
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(directory: &Path) -> Vec<String> {
        let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_page_replaces_what_was_there_and_leaves_nothing_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("page.html");
        for page in ["one", "another"] {
            let target = Target::at(&path).unwrap();
            target.write(page).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), page);
            assert_eq!(files(directory.path()), ["page.html"]);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link_and_a_device_a_device() {
        let directory = tempfile::tempdir().unwrap();
        let (real, link) = (directory.path().join("real.html"), directory.path().join("link.html"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        Target::at(&link).unwrap().write("new").unwrap();
        assert_eq!(fs::read_to_string(&real).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(Target::at(Path::new("/dev/null")).unwrap(), Target::Stream("/dev/null".into()));
    }

    #[test]
    fn where_no_page_can_be_is_said_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("no/page.html");
        for (path, why) in [
            (directory.path(), "it is a directory".to_owned()),
            (&missing, format!("there is no directory {}", directory.path().join("no").display())),
        ] {
            let error = Target::at(path).unwrap_err().to_string();
            assert_eq!(error, format!("cannot write the report to {}: {why}", path.display()));
        }
        assert_eq!(Target::at(Path::new("-")).unwrap(), Target::Standard);
    }
}

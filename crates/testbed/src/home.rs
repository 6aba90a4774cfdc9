//! The directory of a server, and the watchdog that ends the server and removes the directory when this process cannot.
//!
//! The watchdog is a shell that reads from a pipe whose other end only this process has. However this process ends, the
//! kernel closes the pipe, and the shell does what was left undone. A death signal (`PR_SET_PDEATHSIG`) would not do: it
//! follows the thread that started the server rather than the process, is lost when the user changes, and leaves files.

use std::io::Write;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use rustix::process::Pid;
use tempfile::TempDir;

use crate::program::Account;

/// Each line is the process that runs now, or empty; the end of input is the end of the process that started us.
/// A server that does not heed its signal within ten seconds is killed. A PostgreSQL that was killed leaves a segment of
/// shared memory behind, whose number is the last word of the seventh line of its lock file.
const WATCHDOG: &str = r#"
while read -r line; do pid=$line; done
if [ -n "$pid" ]; then
    kill -CONT "$pid"
    kill -s "$1" "$pid"
    tries=100
    while [ "$tries" -gt 0 ] && grep -q "^State:.[^ZX]" "/proc/$pid/status"; do sleep 0.1; tries=$((tries - 1)); done
    kill -KILL "$pid"
fi
if segment=$(sed -n 7p "$2/data/postmaster.pid"); then ipcrm -m "${segment##* }"; fi
rm -rf "$2"
"#;

/// What the directories' names begin with.
const PREFIX: &str = "redrive-testbed-";
/// Where Linux keeps files in memory.
const MEMORY: &str = "/dev/shm";
/// The room that a server's files may need there, in bytes.
const ENOUGH_MEMORY: u64 = 1 << 30;

/// How the watchdog asks a server to end.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Farewell {
    /// PostgreSQL's immediate shutdown: the server ends its children itself.
    Quit,
    /// For servers that leave nothing behind.
    Kill,
}

/// Where a server's files are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    /// Among other temporary files.
    Disk,
    /// In memory if there is room, for servers that do not sync anyway: a new database is several hundred files, and on
    /// some machines these take ten times as long on disk.
    Memory,
}

impl Place {
    fn make_directory(self) -> TempDir {
        let memory = Path::new(MEMORY);
        // Not every machine lets us write there.
        let in_memory = match self {
            Place::Memory if room(memory) >= ENOUGH_MEMORY => TempDir::with_prefix_in(PREFIX, memory).ok(),
            Place::Memory | Place::Disk => None,
        };
        in_memory.unwrap_or_else(|| TempDir::with_prefix(PREFIX).expect("making a temporary directory"))
    }
}

/// A temporary directory in which one server lives.
#[derive(Debug)]
pub(crate) struct Home {
    directory: TempDir,
    watchdog: Child,
    /// Taken when the watchdog is to end.
    pipe: Mutex<Option<ChildStdin>>,
}

impl Home {
    /// An empty directory that belongs to `owner`.
    pub(crate) fn new(place: Place, owner: Option<Account>, farewell: Farewell) -> Self {
        let directory = place.make_directory();
        if let Some(Account { user, group }) = owner {
            chown(directory.path(), Some(user), Some(group)).expect("giving a temporary directory to another user");
        }
        let signal = match farewell {
            Farewell::Quit => "QUIT",
            Farewell::Kill => "KILL",
        };
        let mut command = Command::new("sh");
        command.args(["-c", WATCHDOG, "redrive-testbed-watchdog", signal]).arg(directory.path());
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // A group of its own: what ends the tests from a terminal or a test runner must not end it too.
        let mut watchdog = command.process_group(0).current_dir("/").spawn().expect("starting a watchdog");
        let pipe = Mutex::new(watchdog.stdin.take());
        Home { directory, watchdog, pipe }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Tells the watchdog what runs here now.
    pub(crate) fn runs(&self, pid: Option<Pid>) {
        let line = pid.map_or_else(|| "\n".to_owned(), |pid| format!("{}\n", pid.as_raw_nonzero()));
        let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        let pipe = pipe.as_mut().expect("the pipe is taken on drop only");
        pipe.write_all(line.as_bytes()).expect("the watchdog of a server has ended");
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        drop(self.pipe.lock().unwrap_or_else(PoisonError::into_inner).take());
        // It removes the directory, and so there is nothing for the `TempDir` to do that could fail.
        if let Err(error) = self.watchdog.wait() {
            eprintln!("the watchdog of {} may still be running: {error}", self.directory.path().display());
        }
    }
}

/// The free space below `path` in bytes; none if there is no such directory.
fn room(path: &Path) -> u64 {
    rustix::fs::statvfs(path).map_or(0, |found| found.f_bavail.saturating_mul(found.f_frsize))
}

//! The directory of a server, and a watchdog that ends the server and removes the directory when this process cannot.
//!
//! The watchdog is a shell that reads from a pipe whose other end only this process has. However this process ends, the
//! kernel closes the pipe, and the shell cleans up. A death signal (`PR_SET_PDEATHSIG`) would not be enough: it follows
//! the thread that started the server rather than the process, is lost when the user changes, and leaves files.

use std::io::Write;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use rustix::process::Pid;
use tempfile::TempDir;

use crate::program::Account;

/// Each input line is the current process id, or empty. The end of input means that the parent process has ended. A
/// server that does not end within 10 s of its signal is killed, and so is what is left of its process group: ChromeDriver
/// leaves Chromium there, which may write a last file while the directory is removed. A PostgreSQL server that was killed leaves a segment
/// of shared memory behind, whose number is the last word of the seventh line of its lock file.
const WATCHDOG: &str = r#"
while read -r line; do pid=$line; done
if [ -n "$pid" ]; then
    kill -CONT "$pid"
    kill -s "$1" "$pid"
    tries=100
    while [ "$tries" -gt 0 ] && grep -q "^State:.[^ZX]" "/proc/$pid/status"; do sleep 0.1; tries=$((tries - 1)); done
    kill -KILL "$pid" "-$pid"
fi
if segment=$(sed -n 7p "$2/data/postmaster.pid"); then ipcrm -m "${segment##* }"; fi
rm -rf "$2" || { sleep 0.1; rm -rf "$2"; }
"#;

/// The prefix of the directories' names.
const PREFIX: &str = "redrive-testbed-";
/// Linux's file system in memory.
const MEMORY: &str = "/dev/shm";
/// The space that a server's files may need there, in bytes.
const ENOUGH_MEMORY: u64 = 1 << 30;

/// The signal with which the watchdog ends a server.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Farewell {
    /// PostgreSQL's immediate shutdown: the server ends its children itself.
    Quit,
    /// For servers that leave nothing behind.
    Kill,
}

/// The medium that a server keeps its files on.
#[derive(Debug, Clone, Copy)]
pub(crate) enum StorageMedium {
    /// On disk, among other temporary files.
    Disk,
    /// In memory if there is room, for servers that do not sync anyway. A new database is several hundred files, and on
    /// some machines these take ten times as long on disk.
    Memory,
}

impl StorageMedium {
    fn make_directory(self) -> TempDir {
        let memory = Path::new(MEMORY);
        // Not every machine permits writes there.
        let in_memory = match self {
            StorageMedium::Memory if room(memory) >= ENOUGH_MEMORY => TempDir::with_prefix_in(PREFIX, memory).ok(),
            StorageMedium::Memory | StorageMedium::Disk => None,
        };
        in_memory.unwrap_or_else(|| TempDir::with_prefix(PREFIX).expect("making a temporary directory"))
    }
}

/// The temporary directory of one server.
#[derive(Debug)]
pub(crate) struct Home {
    directory: TempDir,
    watchdog: Child,
    /// Taken when the watchdog is to end.
    pipe: Mutex<Option<ChildStdin>>,
}

impl Home {
    /// An empty directory that belongs to `owner`.
    pub(crate) fn new(medium: StorageMedium, owner: Option<Account>, farewell: Farewell) -> Self {
        let directory = medium.make_directory();
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
        // A process group of its own: a signal that ends the tests must not end the watchdog.
        let mut watchdog = command.process_group(0).current_dir("/").spawn().expect("starting a watchdog");
        let pipe = Mutex::new(watchdog.stdin.take());
        Home { directory, watchdog, pipe }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Informs the watchdog of the process that runs here now.
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
        // The watchdog removes the directory, so nothing is left for the `TempDir` that could fail.
        if let Err(error) = self.watchdog.wait() {
            eprintln!("the watchdog of {} may still be running: {error}", self.directory.path().display());
        }
    }
}

/// The free space below `path` in bytes; zero if there is no such directory.
fn room(path: &Path) -> u64 {
    rustix::fs::statvfs(path).map_or(0, |found| found.f_bavail.saturating_mul(found.f_frsize))
}

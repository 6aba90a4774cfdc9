//! Child processes that never outlive this one: servers that are measured, killed and restarted.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal};
use tokio::signal::unix::{SignalKind, signal};

use crate::procfs::Usage;

/// The longest time until a server prints its address.
const START_LIMIT: Duration = Duration::from_secs(60);
/// The most bytes of a dead server's log that are printed.
const LOG_TAIL: usize = 4_000;

/// Every child that may be running, for the signal handler to kill.
static CHILDREN: Mutex<Vec<Weak<Mutex<Child>>>> = Mutex::new(Vec::new());

/// When the current run has exceeded its time limit.
static GUARD_UNTIL: Mutex<Option<Instant>> = Mutex::new(None);

/// A running server; killed (SIGKILL) when this is dropped.
pub struct Process {
    child: Arc<Mutex<Child>>,
    pid: u32,
    started: Instant,
    log: PathBuf,
}

impl Process {
    /// Starts `command` with all of its output in the file `log`.
    pub fn spawn(mut command: Command, log: &Path) -> Result<Self> {
        let output = File::create(log).with_context(|| format!("making {}", log.display()))?;
        command.stdin(Stdio::null()).stderr(output.try_clone()?).stdout(output);
        let started = Instant::now();
        let child = command.spawn().with_context(|| format!("starting {command:?}"))?;
        let pid = child.id();
        let child = Arc::new(Mutex::new(child));
        let mut children = held(&CHILDREN);
        children.retain(|known| known.strong_count() > 0);
        children.push(Arc::downgrade(&child));
        drop(children);
        Ok(Process { child, pid, started, log: log.to_owned() })
    }

    /// Waits until it has printed its address.
    pub fn wait_for_address(&self) -> Result<SocketAddr> {
        loop {
            let log = self.log_text();
            if let Some(address) = find_address(&log) {
                return Ok(address);
            }
            if let Some(status) = held(&self.child).try_wait()? {
                bail!("the server ended ({status}) before it listened; it said:\n{}", tail(&log));
            }
            if self.started.elapsed() > START_LIMIT {
                bail!("the server did not listen within {START_LIMIT:?}; it said:\n{}", tail(&log));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// The loopback address after the first `words` in its output, once it is there.
    pub fn address_behind(&self, words: &str) -> Option<SocketAddr> {
        find_address(self.log_text().split_once(words)?.1)
    }

    /// Its exit status, if it has ended.
    pub fn ended(&self) -> Result<Option<ExitStatus>> {
        Ok(held(&self.child).try_wait()?)
    }

    /// Sends it a signal. Returns whether it was still running.
    pub fn signal(&self, signal: Signal) -> Result<bool> {
        let mut child = held(&self.child);
        // Until it has been waited for, its process id is not reused.
        if child.try_wait()?.is_some() {
            return Ok(false);
        }
        rustix::process::kill_process(Pid::from_child(&child), signal).context("sending a signal to a server")?;
        Ok(true)
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// When it was started.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Its resource usage so far.
    pub fn usage(&self) -> Result<Usage> {
        Usage::of(self.pid)
    }

    /// The end of its output.
    pub fn log_tail(&self) -> String {
        tail(&self.log_text()).to_owned()
    }

    /// Kills it (SIGKILL) and waits until it has ended. Returns whether it was still running.
    pub fn kill(&self) -> Result<bool> {
        let mut child = held(&self.child);
        if child.try_wait()?.is_some() {
            return Ok(false);
        }
        child.kill().context("killing a server")?;
        child.wait().context("waiting for a killed server")?;
        Ok(true)
    }

    /// All of its output.
    pub fn log_text(&self) -> String {
        std::fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Err(error) = self.kill() {
            eprintln!("process {} may still be running: {error:#}", self.pid);
        }
    }
}

/// Kills all children and ends this program on SIGINT or SIGTERM, or after `limit`: no run is unbounded, and none
/// leaves a server behind. A later call replaces the limit.
pub fn guard(limit: Duration) -> Result<()> {
    let is_first = held(&GUARD_UNTIL).replace(Instant::now() + limit).is_none();
    if !is_first {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("guard".to_owned()).spawn(move || {
        let code = runtime.block_on(async {
            let (Ok(mut interrupt), Ok(mut terminate)) =
                (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
            else {
                eprintln!("signals cannot be caught: a signal may leave servers behind");
                return std::future::pending().await;
            };
            tokio::select! {
                _ = interrupt.recv() => 130,
                _ = terminate.recv() => 143,
                () = until_the_limit() => {
                    eprintln!("gave up: this took longer than it may");
                    124
                }
            }
        });
        for child in held(&CHILDREN).iter().filter_map(Weak::upgrade) {
            if let Err(error) = held(&child).kill() {
                eprintln!("a server may still be running: {error}");
            }
        }
        std::process::exit(code)
    })?;
    Ok(())
}

/// Waits until the current limit is over.
async fn until_the_limit() {
    loop {
        // Copied: the lock is not held during the wait.
        let until = *held(&GUARD_UNTIL);
        match until {
            Some(until) if until > Instant::now() => tokio::time::sleep_until(until.into()).await,
            _ => return,
        }
    }
}

/// Locks, also after a panic elsewhere: the children must still be killed then.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The first loopback address with a port in `text`, if more text follows (so that it is complete).
fn find_address(text: &str) -> Option<SocketAddr> {
    text.match_indices("127.0.0.1:").find_map(|(at, _)| {
        let rest = &text[at..];
        let digits = rest[10..].bytes().take_while(u8::is_ascii_digit).count();
        let end = 10 + digits;
        (rest.len() > end).then(|| rest[..end].parse().ok()).flatten()
    })
}

fn tail(text: &str) -> &str {
    let from = text.len().saturating_sub(LOG_TAIL);
    let from = (from..text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len());
    &text[from..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_counts_once_it_is_complete() {
        assert_eq!(find_address("listening on http://127.0.0.1:80"), None, "more digits may follow");
        let address = find_address("see 127.0.0.1: listening on http://127.0.0.1:8080\n").unwrap();
        assert_eq!(address.port(), 8080);
    }

    #[test]
    fn a_child_is_killed_with_its_guard() {
        let log = std::env::temp_dir().join(format!("xtask-process-{}", std::process::id()));
        let mut command = Command::new("sleep");
        command.arg("600");
        let process = Process::spawn(command, &log).unwrap();
        let stat = format!("/proc/{}/stat", process.pid);
        assert!(Path::new(&stat).exists());
        drop(process);
        assert!(!Path::new(&stat).exists());
        std::fs::remove_file(log).unwrap();
    }
}

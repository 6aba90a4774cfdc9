//! A server process: started on a free port, killed, and restarted on the same one.

use std::fmt;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::home::Home;
use crate::{port, process_tree, wait_until};

/// The longest time until a server is ready, recovery from a crash included.
const START_LIMIT: Duration = Duration::from_secs(120);
/// The longest time until it ends after its signal.
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// The pause between two checks whether it has ended.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(5);
/// How many ports may be lost to other processes before the start fails.
const PORT_TRIES: usize = 20;
/// A part of every server's message when its port is taken.
const PORT_TAKEN: &str = "ddress already in use";

/// How to start a server.
pub(crate) struct Plan {
    /// Its name in messages.
    pub(crate) name: &'static str,
    /// The command for a port; it must stay in the foreground and log to standard output or error.
    pub(crate) command: Box<dyn Fn(u16) -> Command + Send + Sync>,
    /// What it logs once it is ready.
    pub(crate) ready: &'static str,
    /// The signal that ends it without leaving anything behind.
    pub(crate) farewell: Signal,
}

/// A server, running or killed. Dropping it ends the server.
pub(crate) struct Server {
    plan: Plan,
    port: u16,
    child: Mutex<Option<Child>>,
    home: Home,
}

impl Server {
    /// Starts a server on a free port and waits until it is ready.
    pub(crate) fn start(plan: Plan, home: Home) -> Self {
        for _ in 0..PORT_TRIES {
            let port = port::free();
            match launch(&plan, &home, port) {
                Ok(child) => return Server { plan, port, child: Mutex::new(Some(child)), home },
                Err(said) if said.contains(PORT_TAKEN) => {}
                Err(said) => panic!("{} did not start:\n{said}", plan.name),
            }
        }
        panic!("{} found its port taken {PORT_TRIES} times", plan.name);
    }

    /// Restarts it, on the same port and the same files.
    pub(crate) fn start_again(&self) {
        let mut child = self.child();
        assert!(child.is_none(), "{} is still running", self.plan.name);
        match launch(&self.plan, &self.home, self.port) {
            Ok(started) => *child = Some(started),
            Err(said) => panic!("{} did not start again:\n{said}", self.plan.name),
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn directory(&self) -> &std::path::Path {
        self.home.path()
    }

    /// Everything that it has logged since it was last started.
    pub(crate) fn log(&self) -> String {
        read_log(&log_file(&self.home))
    }

    pub(crate) fn pid(&self) -> Option<Pid> {
        self.child().as_ref().map(pid_of)
    }

    /// Kills the process and all its children at once (SIGKILL); returns when all have ended.
    pub(crate) fn kill(&self) {
        let mut running = self.child();
        let Some(child) = running.as_mut() else { return };
        let pid = pid_of(child);
        // Suspended first, so that it can neither clean up after its children nor start new ones.
        process_tree::signal(pid, Signal::STOP);
        wait_until("a server has stopped", || process_tree::is_stopped(pid) || process_tree::is_gone(pid));
        let children = process_tree::children(pid);
        children.iter().for_each(|&child| process_tree::signal(child, Signal::KILL));
        process_tree::signal(pid, Signal::KILL);
        child.wait().expect("waiting for a killed server");
        wait_until("a killed server's children are gone", || children.iter().copied().all(process_tree::is_gone));
        *running = None;
        self.home.runs(None);
    }

    /// Ends it with `signal`, and kills what has not ended within `STOP_LIMIT`.
    pub(crate) fn stop(&self, signal: Signal) {
        if let Some(pid) = self.pid() {
            let children = process_tree::children(pid);
            self.resume();
            process_tree::signal(pid, signal);
            let begin = Instant::now();
            while begin.elapsed() < STOP_LIMIT
                && !(process_tree::is_gone(pid) && children.iter().copied().all(process_tree::is_gone))
            {
                std::thread::sleep(LOOK_AGAIN_AFTER);
            }
        }
        self.kill();
    }

    /// Suspends the process and all its children (SIGSTOP); returns when all are suspended.
    pub(crate) fn pause(&self) {
        let Some(pid) = self.pid() else { return };
        process_tree::signal(pid, Signal::STOP);
        wait_until("a server has stopped", || process_tree::is_stopped(pid) || process_tree::is_gone(pid));
        let children = process_tree::children(pid);
        children.iter().for_each(|&child| process_tree::signal(child, Signal::STOP));
        let stands = |&child: &Pid| process_tree::is_stopped(child) || process_tree::is_gone(child);
        wait_until("a server's children have stopped", || children.iter().all(stands));
    }

    /// Resumes it (SIGCONT).
    pub(crate) fn resume(&self) {
        let Some(pid) = self.pid() else { return };
        process_tree::children(pid).into_iter().for_each(|child| process_tree::signal(child, Signal::CONT));
        process_tree::signal(pid, Signal::CONT);
    }

    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop(self.plan.farewell);
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("name", &self.plan.name).field("port", &self.port).finish_non_exhaustive()
    }
}

/// Starts a process and waits until it is ready. The error is its log if it does not become ready.
fn launch(plan: &Plan, home: &Home, port: u16) -> Result<Child, String> {
    let log = log_file(home);
    let output = File::create(&log).expect("making a server's log");
    let mut command = (plan.command)(port);
    command.stdin(Stdio::null()).stdout(output.try_clone().expect("sharing a server's log")).stderr(output);
    // A process group of its own: an interrupt from the terminal is for the tests, which end their servers themselves.
    command.process_group(0).current_dir(home.path());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("starting {command:?}: {error}"));
    home.runs(Some(pid_of(&child)));
    let begin = Instant::now();
    loop {
        let said = read_log(&log);
        if child.try_wait().expect("looking after a server").is_some() {
            home.runs(None);
            return Err(said);
        }
        if said.contains(plan.ready) {
            return Ok(child);
        }
        if begin.elapsed() > START_LIMIT {
            child.kill().expect("killing a server that does not get ready");
            child.wait().expect("waiting for a killed server");
            home.runs(None);
            return Err(format!("it was not ready after {START_LIMIT:?} and said:\n{said}"));
        }
        std::thread::sleep(LOOK_AGAIN_AFTER);
    }
}

fn log_file(home: &Home) -> PathBuf {
    home.path().join("log")
}

fn read_log(path: &std::path::Path) -> String {
    String::from_utf8_lossy(&fs::read(path).expect("reading a server's log")).into_owned()
}

fn pid_of(child: &Child) -> Pid {
    Pid::from_child(child)
}

//! Nothing outlives a test process, however it ends.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use redrive_testbed::postgres::Options;
use redrive_testbed::{Browser, Postgres, Redis, wait_until};

/// Set for the process that is to be killed.
const VICTIM: &str = "REDRIVE_TESTBED_VICTIM";

#[test]
fn servers_and_their_files_are_gone_after_a_sigkill() {
    let (mut victim, left) = start_victim("stay");
    left.assert_runs();
    victim.kill().unwrap();
    victim.wait().unwrap();
    wait_until("the servers of a killed process are gone", || left.is_gone());
}

#[test]
fn servers_and_their_files_are_gone_after_an_exit_without_drops() {
    let (mut victim, left) = start_victim("exit");
    left.assert_runs();
    drop(victim.stdin.take());
    assert_eq!(victim.wait().unwrap().code(), Some(7));
    wait_until("the servers of an ended process are gone", || left.is_gone());
}

/// Not a test: the process that is killed.
#[test]
fn victim() {
    let Ok(role) = std::env::var(VICTIM) else { return };
    // Started by a thread that ends at once: the servers belong to the process.
    let postgres = || Postgres::start_with(Options { fsync: false, settings: &[], files: &[] });
    let start = move || (postgres(), Redis::start(), Browser::start());
    let (postgres, redis, browser) = std::thread::spawn(start).join().unwrap();
    let [driver, chromium] = browser.pids();
    let (data, pids) = (postgres.data_directory(), (postgres.pid(), redis.pid()));
    println!("\nservers {} {} {driver} {chromium} {}", pids.0, pids.1, data.display());
    std::io::stdin().read_line(&mut String::new()).unwrap();
    assert_eq!(role, "exit");
    std::process::exit(7);
}

/// The servers of a victim, which may outlive it.
struct VictimServers {
    processes: [PathBuf; 4],
    data: PathBuf,
}

impl VictimServers {
    fn assert_runs(&self) {
        assert!(self.processes.iter().all(|process| process.exists()));
        assert!(self.data.join("PG_VERSION").exists());
    }

    fn is_gone(&self) -> bool {
        let is_gone = |process: &PathBuf| {
            let stat = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
            stat.is_empty() || stat.contains(") Z ")
        };
        self.processes.iter().all(is_gone) && !self.data.parent().unwrap().exists()
    }
}

fn start_victim(role: &str) -> (Child, VictimServers) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "victim", "--nocapture"]).env(VICTIM, role);
    let mut victim = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let line = lines.map(Result::unwrap).find(|line| line.starts_with("servers ")).unwrap();
    let words: Vec<&str> = line.split(' ').collect();
    let process = |at: usize| PathBuf::from(format!("/proc/{}", words[at]));
    (victim, VictimServers { processes: [1, 2, 3, 4].map(process), data: PathBuf::from(words[5]) })
}

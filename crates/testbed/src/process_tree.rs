//! A process and its children, from /proc.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Linux counts CPU time in ticks of 1/100 s on every supported architecture (USER_HZ).
const TICK: Duration = Duration::from_millis(10);

/// The content of /proc/PID/stat.
struct Stat {
    parent: i32,
    state: char,
    /// User and system time of the process itself.
    own: u32,
    /// User and system time of its children that have ended and been waited for.
    reaped: u32,
}

/// The processes whose parent is `parent`.
pub(crate) fn children(parent: Pid) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").expect("listing /proc");
    let pids = entries.filter_map(|entry| Pid::from_raw(entry.ok()?.file_name().to_str()?.parse().ok()?));
    pids.filter(|&pid| Stat::of(pid).is_some_and(|stat| stat.parent == parent.as_raw_nonzero().get())).collect()
}

/// The CPU time of `parent` and of all its children, also of those that have ended.
pub(crate) fn cpu_time(parent: Pid) -> Duration {
    let own = Stat::of(parent).map_or(0, |stat| stat.own + stat.reaped);
    let living: u32 = children(parent).into_iter().filter_map(Stat::of).map(|stat| stat.own + stat.reaped).sum();
    TICK * (own + living)
}

/// Kills a process with its children, and theirs (SIGKILL). It is the caller's own child, so that its id is not reused.
pub fn kill_tree(root: u32) {
    let mut found: Vec<Pid> = i32::try_from(root).ok().and_then(Pid::from_raw).into_iter().collect();
    let mut at = 0;
    while let Some(&pid) = found.get(at) {
        // Suspended before its children are listed, so that it can start no more of them.
        signal(pid, Signal::STOP);
        crate::wait_until("a process has stopped", || is_stopped(pid) || is_gone(pid));
        found.extend(children(pid));
        at += 1;
    }
    found.into_iter().for_each(|pid| signal(pid, Signal::KILL));
}

/// Whether the process no longer runs. A zombie does not run.
pub(crate) fn is_gone(pid: Pid) -> bool {
    Stat::of(pid).is_none_or(|stat| matches!(stat.state, 'Z' | 'X'))
}

/// Whether the process is suspended by SIGSTOP.
pub(crate) fn is_stopped(pid: Pid) -> bool {
    Stat::of(pid).is_some_and(|stat| stat.state == 'T')
}

/// Sends a signal, unless the process has just ended.
pub(crate) fn signal(pid: Pid, signal: Signal) {
    if let Err(error) = kill_process(pid, signal)
        && error != rustix::io::Errno::SRCH
    {
        panic!("sending {signal:?} to process {pid:?}: {error}");
    }
}

impl Stat {
    fn of(pid: Pid) -> Option<Self> {
        Stat::parse(&fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?)
    }

    /// The name in brackets may itself contain blanks and brackets, so the fields are counted from behind it.
    fn parse(line: &str) -> Option<Self> {
        let (_, rest) = line.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let ticks = |at: usize| fields.get(at)?.parse::<u32>().ok();
        Some(Stat {
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            own: ticks(11)? + ticks(12)?,
            reaped: ticks(13)? + ticks(14)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_behind_a_name_with_brackets() {
        let stat = Stat::parse("7 (a) b (c)) S 3 7 7 0 -1 4194560 200 0 0 0 150 50 20 5 20 0 3 0 99 1 2").unwrap();
        assert_eq!((stat.parent, stat.state, stat.own, stat.reaped), (3, 'S', 200, 25));
    }
}

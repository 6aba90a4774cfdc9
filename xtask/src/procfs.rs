//! Figures of a process and of the machine, from /proc.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

/// Linux counts CPU time in ticks of 1/100 s on every supported architecture (USER_HZ).
const TICK: Duration = Duration::from_millis(10);

/// The resource usage of a process since it started.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    /// User and system time of all its threads.
    pub cpu: Duration,
    /// Its peak of resident memory, in bytes.
    pub peak_rss: u64,
    /// Its resident memory now, in bytes.
    pub rss: u64,
    /// How often one of its threads went to sleep: an idle process should not wake up.
    pub sleeps: u64,
}

/// The usage of two processes together. The peak of both is at most the sum.
impl std::ops::Add for Usage {
    type Output = Usage;

    fn add(self, other: Usage) -> Usage {
        Usage {
            cpu: self.cpu + other.cpu,
            peak_rss: self.peak_rss + other.peak_rss,
            rss: self.rss + other.rss,
            sleeps: self.sleeps + other.sleeps,
        }
    }
}

impl Usage {
    /// The usage of the process `pid`.
    pub fn of(pid: u32) -> Result<Usage> {
        let stat = read(&format!("/proc/{pid}/stat"))?;
        let status = read(&format!("/proc/{pid}/status"))?;
        Ok(Usage {
            cpu: cpu_of_stat(&stat).context("reading the CPU time of a process")?,
            peak_rss: kib(&status, "VmHWM:").context("reading the peak memory of a process")?,
            rss: kib(&status, "VmRSS:").context("reading the memory of a process")?,
            sleeps: sleeps(pid)?,
        })
    }
}

/// Resets the peak memory of the process `pid` to its current memory.
pub fn reset_peak(pid: u32) -> Result<()> {
    fs::write(format!("/proc/{pid}/clear_refs"), "5").context("resetting the peak memory of a process")
}

/// The time that all cores together have spent on work since boot.
pub fn machine_cpu() -> Result<Duration> {
    let stat = read("/proc/stat")?;
    let line = stat.lines().next().context("/proc/stat is empty")?;
    let ticks: Vec<u64> = line.split_ascii_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
    // The columns: user nice system idle iowait irq softirq steal. Idle and iowait are not work. The guests' columns
    // after them are already contained in user.
    let busy: u64 = ticks.iter().take(8).enumerate().filter(|(at, _)| !matches!(at, 3 | 4)).map(|(_, t)| t).sum();
    Ok(ticks_to_duration(busy))
}

/// The 1-minute load average.
pub fn load_average() -> Result<f64> {
    let text = read("/proc/loadavg")?;
    text.split(' ').next().and_then(|word| word.parse().ok()).context("reading /proc/loadavg")
}

/// User and system time from the line of /proc/PID/stat; the name in brackets may itself contain blanks and brackets.
fn cpu_of_stat(stat: &str) -> Option<Duration> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(ticks_to_duration(user + system))
}

fn ticks_to_duration(ticks: u64) -> Duration {
    Duration::from_millis(ticks * TICK.as_millis() as u64)
}

fn kib(status: &str, field: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    Some(line.split_ascii_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

fn sleeps(pid: u32) -> Result<u64> {
    let mut sum = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task")).context("listing the threads of a process")? {
        // A thread may end between the listing and the read.
        let Ok(status) = fs::read_to_string(thread?.path().join("status")) else { continue };
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        sum += line.and_then(|count| count.trim().parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(sum)
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("reading {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_read_behind_a_name_with_brackets() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194560 200 0 0 0 150 50 0 0 20 0 3 0 99 1 2";
        assert_eq!(cpu_of_stat(stat), Some(Duration::from_secs(2)));
    }

    #[test]
    fn this_process_and_machine_can_be_measured() {
        let usage = Usage::of(std::process::id()).unwrap();
        assert!(usage.peak_rss >= usage.rss && usage.rss > 0);
        assert!(machine_cpu().unwrap() > Duration::ZERO);
    }
}

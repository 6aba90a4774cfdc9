//! CPU time, memory and open files of this process, from `/proc`. Systems without it have no such metrics.

use std::fs;

/// What `/proc` says of this process.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Process {
    pub(super) cpu_seconds: f64,
    pub(super) resident_bytes: u64,
    pub(super) virtual_bytes: u64,
    pub(super) open_files: u64,
    pub(super) most_files: Option<u64>,
    pub(super) started_at: f64,
}

impl Process {
    /// Reads the files of this process.
    pub(super) fn read() -> Option<Self> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        let boot = fs::read_to_string("/proc/stat").ok()?;
        let boot = boot.lines().find_map(|line| line.strip_prefix("btime "))?.parse().ok()?;
        let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
        let open_files = fs::read_dir("/proc/self/fd").ok()?.count() as u64;
        let page = rustix::param::page_size() as u64;
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        parse(&stat, boot, &limits, open_files, page, ticks)
    }
}

/// The fields of `stat` are numbered as in proc(5), from 1; the second one, a name in parentheses, may contain spaces.
fn parse(stat: &str, boot: f64, limits: &str, open_files: u64, page: u64, ticks: f64) -> Option<Process> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
    let most_files = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    Some(Process {
        cpu_seconds: (field(14)? + field(15)?) / ticks,
        resident_bytes: field(24)? as u64 * page,
        virtual_bytes: field(23)? as u64,
        open_files,
        most_files: most_files.and_then(|limit| limit.split_ascii_whitespace().next()?.parse().ok()),
        started_at: boot + field(22)? / ticks,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_found_behind_a_name_with_spaces() {
        let stat =
            "7 (re (d) x) S 1 1 1 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 5 0 1000 4096000 300 18446744073709551615 1";
        let limits = "Limit                     Soft Limit           Hard Limit\nMax open files            1024                 4096                 files\n";
        let expected = Process {
            cpu_seconds: 3.0,
            resident_bytes: 300 * 4096,
            virtual_bytes: 4_096_000,
            open_files: 9,
            most_files: Some(1024),
            started_at: 1_010.0,
        };
        assert_eq!(parse(stat, 1_000.0, limits, 9, 4096, 100.0), Some(expected));
        assert_eq!(parse("7 (x) S", 0.0, "", 0, 4096, 100.0), None);
    }

    #[test]
    fn this_process_has_memory_and_open_files() {
        let process = Process::read().unwrap();
        assert!(process.resident_bytes > 0 && process.open_files > 0 && process.started_at > 1.6e9, "{process:?}");
    }
}

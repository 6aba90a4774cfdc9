//! Linux's statistics of this process.

use std::fs;

/// Nanoseconds of processor time so far.
pub(crate) struct Cpu {
    pub(crate) writer: u64,
    pub(crate) checkpointer: u64,
    pub(crate) all: u64,
}

impl Cpu {
    pub(crate) fn now() -> Cpu {
        let mut cpu = Cpu { writer: 0, checkpointer: 0, all: 0 };
        for thread in fs::read_dir("/proc/self/task").unwrap() {
            let thread = thread.unwrap().path();
            let Ok(times) = fs::read_to_string(thread.join("schedstat")) else { continue };
            let nanos: u64 = times.split(' ').next().unwrap().parse().unwrap();
            cpu.all += nanos;
            match fs::read_to_string(thread.join("comm")).unwrap_or_default().trim() {
                "redrive-write" => cpu.writer += nanos,
                // Linux truncates names to 15 bytes.
                "redrive-checkpo" => cpu.checkpointer += nanos,
                _ => {}
            }
        }
        cpu
    }

    pub(crate) fn since(&self, before: &Cpu) -> Cpu {
        Cpu {
            writer: self.writer - before.writer,
            checkpointer: self.checkpointer - before.checkpointer,
            // The time of a thread that has ended in between is lost.
            all: self.all.saturating_sub(before.all),
        }
    }
}

pub(crate) fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

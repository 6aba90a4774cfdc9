//! The machine: its figures, to compare two runs.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use serde::Serialize;

use crate::procfs::load_average;
use crate::stats::Latency;

const SYNCS: usize = 200;
const PAGE: [u8; 4096] = [b'r'; 4096];

/// The state of the machine before the first round.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    /// Its cores.
    pub cores: usize,
    /// The 1-minute load average: a high one means that other programs were running.
    pub load_average: f64,
    /// The latency of an fdatasync after appending 4 KiB to a file, on the disk of the stores.
    pub sync: Latency,
}

impl Machine {
    /// Measures the machine, with a file in `dir`.
    pub fn measure(dir: &Path) -> Result<Machine> {
        Ok(Machine {
            cores: std::thread::available_parallelism()?.get(),
            load_average: load_average()?,
            sync: measure_sync(dir)?,
        })
    }
}

fn measure_sync(dir: &Path) -> Result<Latency> {
    let path = dir.join("sync-probe");
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).open(&path)?;
    let mut samples = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        file.write_all(&PAGE)?;
        let begin = Instant::now();
        file.sync_data()?;
        samples.push(begin.elapsed().as_micros() as i64);
    }
    std::fs::remove_file(path)?;
    Ok(Latency::of(samples))
}

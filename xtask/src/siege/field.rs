//! The environment of a step: the attackers' runtime, and services that are started on one data directory.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tokio::runtime::Runtime;

use super::service::{Service, Surroundings};

/// The environment of a step.
pub struct Field {
    /// The attackers' runtime.
    pub runtime: Runtime,
    /// The binary of the service.
    pub redrive: PathBuf,
    dir: PathBuf,
    serve_arguments: Vec<String>,
}

impl Field {
    /// An environment in `dir`, with further arguments for every service.
    pub fn new(redrive: &Path, dir: PathBuf, serve_arguments: &[String]) -> Result<Self> {
        std::fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        Ok(Field { runtime, redrive: redrive.to_owned(), dir, serve_arguments: serve_arguments.to_vec() })
    }

    /// Starts a service. The services of one environment use one data directory, one after the other.
    pub fn start(&self, surroundings: Surroundings, arguments: &[&str]) -> Result<Service> {
        let further = self.serve_arguments.iter().cloned();
        let arguments: Vec<String> = arguments.iter().map(|&word| word.to_owned()).chain(further).collect();
        Service::start(&self.redrive, &self.dir, surroundings, &arguments)
    }
}

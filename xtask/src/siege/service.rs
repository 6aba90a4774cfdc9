//! The service under siege: the real binary, in an environment with limits.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::binaries;
use crate::process::Process;

/// Limits the open files of the service, also after it has raised its own limit.
const WITH_FEW_FILES: &str = r#"ulimit -n "$1" && shift && exec "$@""#;
/// Mounts a small file system as its data directory, which is removed with the process.
const ON_A_SMALL_DISK: &str = r#"mount -t tmpfs -o size="$1" tmpfs "$2" && shift 2 && exec "$@""#;
/// Starts a program that may mount file systems that only it sees.
const UNSHARE: [&str; 3] = ["unshare", "--map-root-user", "--mount"];

/// The limits of the service's environment.
#[derive(Debug, Clone, Copy)]
pub enum Surroundings {
    /// No limits.
    Ordinary,
    /// At most this many open files.
    FewFiles(u32),
    /// A disk of this many MiB.
    SmallDisk(u32),
}

impl Surroundings {
    /// Why this machine cannot provide it, if it cannot.
    pub fn missing(self) -> Option<&'static str> {
        let Surroundings::SmallDisk(_) = self else { return None };
        let mut command = Command::new(UNSHARE[0]);
        command.args(&UNSHARE[1..]).args(["sh", "-c", "mount -t tmpfs tmpfs /mnt"]);
        let can_mount =
            command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        (!can_mount).then_some("no file system can be mounted here (needs root or user namespaces)")
    }

    fn command(self, redrive: &Path, data: &Path) -> Command {
        let (program, words): (&str, Vec<String>) = match self {
            Surroundings::Ordinary => return binaries::redrive(redrive),
            Surroundings::FewFiles(files) => ("sh", shell(WITH_FEW_FILES, [files.to_string()])),
            Surroundings::SmallDisk(mib) => {
                let words = shell(ON_A_SMALL_DISK, [format!("{mib}m"), data.display().to_string()]);
                let shell = UNSHARE[1..].iter().chain(&["sh"]).map(|&word| word.to_owned());
                (UNSHARE[0], shell.chain(words).collect())
            }
        };
        let mut command = binaries::redrive(Path::new(program));
        command.args(words).arg(redrive);
        command
    }
}

/// The arguments of `sh` that run this script with these arguments.
fn shell<const N: usize>(script: &str, arguments: [String; N]) -> Vec<String> {
    ["-c", script, "sh"].map(str::to_owned).into_iter().chain(arguments).collect()
}

/// A running service.
pub struct Service {
    /// Its process.
    pub process: Process,
    /// Its address.
    pub address: SocketAddr,
    /// Its data directory, as this program sees it.
    pub data: PathBuf,
}

impl Service {
    /// Starts one on the data directory `dir/data` and waits until it listens.
    pub fn start(redrive: &Path, dir: &Path, surroundings: Surroundings, arguments: &[String]) -> Result<Self> {
        let data = dir.join("data");
        std::fs::create_dir_all(&data)?;
        let mut command = surroundings.command(redrive, &data);
        command.args(["serve", "--listen", "127.0.0.1:0", "--store", "sqlite", "--data-dir"]).arg(&data);
        command.args(arguments);
        let process = Process::spawn(command, &unused_log(dir))?;
        let address = process.wait_for_address()?;
        let data = match surroundings {
            // Only its own process sees what is mounted there.
            Surroundings::SmallDisk(_) => {
                let inside = data.strip_prefix("/").unwrap_or(&data);
                Path::new("/proc").join(process.pid().to_string()).join("root").join(inside)
            }
            Surroundings::Ordinary | Surroundings::FewFiles(_) => data,
        };
        Ok(Service { process, address, data })
    }

    /// Waits until it has ended by itself. Returns its exit code.
    pub fn wait_for_end(&self, within: Duration) -> Result<Option<i32>> {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.process.ended()? {
                return Ok(status.code());
            }
            if begin.elapsed() > within {
                bail!("the service has not ended after {within:?}; it said:\n{}", self.process.log_tail());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The name of a log that no earlier service in `dir` has.
fn unused_log(dir: &Path) -> PathBuf {
    let names = (1..).map(|number| dir.join(format!("service-{number}.log")));
    names.into_iter().find(|name| !name.exists()).unwrap_or_else(|| dir.join("service.log"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_is_the_last_program_that_is_executed() {
        let words = |surroundings: Surroundings| {
            let command = surroundings.command(Path::new("/bin/redrive"), Path::new("/data"));
            let arguments = command.get_args().map(|word| word.to_string_lossy().into_owned());
            std::iter::once(command.get_program().to_string_lossy().into_owned()).chain(arguments).collect::<Vec<_>>()
        };
        assert_eq!(words(Surroundings::Ordinary), ["/bin/redrive"]);
        let few = ["sh", "-c", WITH_FEW_FILES, "sh", "256", "/bin/redrive"];
        assert_eq!(words(Surroundings::FewFiles(256)), few);
        let small = ["sh", "-c", ON_A_SMALL_DISK, "sh", "16m", "/data", "/bin/redrive"];
        assert_eq!(words(Surroundings::SmallDisk(16)), [&UNSHARE[..], &small].concat());
    }
}

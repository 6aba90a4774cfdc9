mod call;
mod cluster;
mod sentinel;

use std::process::Command;

use rustix::process::Signal;

pub use cluster::RedisCluster;
pub use sentinel::RedisSentinel;

use crate::home::{Farewell, Home, StorageMedium};
use crate::program;
use crate::server::{Plan, Server};

/// How a server differs from the default.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'a> {
    /// Whether every write is on disk before it is answered (`appendonly yes`, `appendfsync always`). Otherwise nothing
    /// is ever written to disk, and a server that is restarted is empty.
    pub durable: bool,
    /// Further settings by their names in redis.conf.
    pub settings: &'a [(&'a str, &'a str)],
}

/// A Redis server with files of its own.
#[derive(Debug)]
pub struct Redis {
    server: Server,
}

impl Redis {
    /// A new server that keeps nothing on disk.
    pub fn start() -> Self {
        Redis::start_with(Options::default())
    }

    /// A new server with `options`.
    pub fn start_with(options: Options<'_>) -> Self {
        let program = program::REDIS.path();
        let settings = settings_of(&options);
        let command = move |port: u16| {
            let mut command = Command::new(&program);
            command.args(["--port", &port.to_string()]).args(&settings);
            command
        };
        let plan = Plan {
            name: "Redis",
            command: Box::new(command),
            ready: "Ready to accept connections",
            farewell: Signal::KILL,
        };
        Redis { server: Server::start(plan, Home::new(StorageMedium::Disk, None, Farewell::Kill)) }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port())
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.server.port()
    }

    /// The process.
    ///
    /// # Panics
    ///
    /// When the server does not run.
    pub fn pid(&self) -> u32 {
        self.server.pid().expect("the server does not run").as_raw_nonzero().get().unsigned_abs()
    }

    /// Kills the server at once (SIGKILL).
    pub fn kill(&self) {
        self.server.kill();
    }

    /// Starts a killed server on the same port and the same files.
    pub fn start_again(&self) {
        self.server.start_again();
    }

    /// Suspends the server (SIGSTOP): connections stay open, and nothing is answered.
    pub fn pause(&self) {
        self.server.pause();
    }

    /// Resumes a paused server.
    pub fn resume(&self) {
        self.server.resume();
    }

    /// The answer to a command as text, nested answers line by line.
    ///
    /// # Panics
    ///
    /// When there is no answer, or an error.
    pub fn call(&self, words: &[&str]) -> String {
        call::call(self.port(), words).unwrap_or_else(|error| panic!("{words:?} for Redis: {error}"))
    }
}

fn settings_of(options: &Options<'_>) -> Vec<String> {
    let mut settings = vec![("bind", "127.0.0.1"), ("save", ""), ("daemonize", "no")];
    if options.durable {
        settings.extend([("appendonly", "yes"), ("appendfsync", "always")]);
    }
    settings.extend(options.settings);
    settings.into_iter().flat_map(|(name, value)| [format!("--{name}"), value.to_owned()]).collect()
}

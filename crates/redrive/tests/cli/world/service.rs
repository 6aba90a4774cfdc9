//! `redrive serve` on a free port.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::s3::{self, S3};
use super::{Ended, Program, redrive};

/// A running service and the directory that it was started in.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) program: Program,
    pub(crate) url: String,
    directory: PathBuf,
    _temporary: Option<TempDir>,
}

impl Service {
    /// A new service in an empty directory.
    pub(crate) fn start() -> Service {
        Service::start_with(&[])
    }

    /// A new service in an empty directory, with these flags.
    pub(crate) fn start_with(flags: &[&str]) -> Service {
        let temporary = tempfile::tempdir().unwrap();
        let mut service = Service::start_in(temporary.path(), flags);
        service._temporary = Some(temporary);
        service
    }

    /// A service in a directory that may have been used before.
    pub(crate) fn start_in(directory: &Path, flags: &[&str]) -> Service {
        Service::start_at("127.0.0.1:0", directory, flags)
    }

    pub(crate) fn start_at(listen: &str, directory: &Path, flags: &[&str]) -> Service {
        let words = [&["serve", "--listen", listen], flags].concat();
        Service::of(redrive(directory, &words), directory)
    }

    /// A service in a directory that may have been used before, with these variables.
    pub(crate) fn start_with_variables(directory: &Path, flags: &[&str], variables: &[(&str, &str)]) -> Service {
        let words = [&["serve", "--listen", "127.0.0.1:0"], flags].concat();
        let mut command = redrive(directory, &words);
        command.envs(variables.iter().copied());
        Service::of(command, directory)
    }

    /// A service that keeps large bodies in S3.
    pub(crate) fn start_over(s3: &S3, directory: &Path, flags: &[&str]) -> Service {
        let url = s3.url();
        let words = [&["serve", "--listen", "127.0.0.1:0", "--blobs", &url], flags].concat();
        let mut command = redrive(directory, &words);
        command.env("AWS_ACCESS_KEY_ID", s3::ACCESS_KEY_ID).env("AWS_SECRET_ACCESS_KEY", s3::SECRET_ACCESS_KEY);
        Service::of(command, directory)
    }

    fn of(command: Command, directory: &Path) -> Service {
        let is_json = command.get_args().any(|word| word == "json");
        let mut program = Program::start(command);
        let url = match is_json {
            true => {
                let line = program.stderr.wait_for("\"message\":\"listening\"");
                serde_json::from_str::<Value>(&line).unwrap()["url"].as_str().unwrap().to_owned()
            }
            false => {
                let line = program.stdout.wait_for("listens on http://");
                line.split_whitespace().last().unwrap().to_owned()
            }
        };
        Service { program, url, directory: directory.to_owned(), _temporary: None }
    }

    /// What `/readyz` says, head and body.
    pub(crate) fn ready(&self) -> String {
        let mut asking = std::net::TcpStream::connect(self.authority()).unwrap();
        std::io::Write::write_all(&mut asking, b"GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            .unwrap();
        std::io::read_to_string(&mut asking).unwrap()
    }

    /// Posts a document to the API, and says the answer, head and body.
    pub(crate) fn post(&self, path: &str, document: &str) -> String {
        let (host, length) = (self.authority(), document.len());
        let mut asking = std::net::TcpStream::connect(host).unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {length}");
        let request = format!("{head}\r\ncontent-type: application/json\r\n\r\n{document}");
        std::io::Write::write_all(&mut asking, request.as_bytes()).unwrap();
        std::io::read_to_string(&mut asking).unwrap()
    }

    /// Where it was started.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The address without the scheme.
    pub(crate) fn authority(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }

    /// Starts a client command.
    pub(crate) fn begin(&self, words: &[&str]) -> Program {
        let mut command = redrive(&self.directory, words);
        command.env("REDRIVE_SERVER", &self.url);
        Program::start(command)
    }

    /// Runs a client command.
    pub(crate) fn run(&self, words: &[&str]) -> Ended {
        self.begin(words).end()
    }

    /// Runs a client command with something on its standard input.
    pub(crate) fn run_with_input(&self, words: &[&str], input: &[u8]) -> Ended {
        let mut command = redrive(&self.directory, words);
        command.env("REDRIVE_SERVER", &self.url);
        Program::start_with_input(command, input).end()
    }

    /// Sends a request and says the task's id.
    pub(crate) fn send(&self, words: &[&str]) -> String {
        let ended = self.run(&[&["send", "--json"], words].concat()).with(0);
        ended.json()["taskId"].as_str().unwrap().to_owned()
    }

    /// The task as the server has it.
    pub(crate) fn task(&self, id: &str) -> Value {
        self.run(&["tasks", "show", id, "--json"]).with(0).json()
    }

    /// Ends it without warning.
    pub(crate) fn kill(self) {
        self.program.kill();
    }

    /// Stops it as an operator would.
    pub(crate) fn stop(self) -> Ended {
        self.program.signal("TERM");
        self.program.end()
    }
}

//! What every example must do, whatever its language: the same orders, the same answers.
//!
//! Not here: how an example is started. Nothing sleeps: exits, answers and open ports are what is waited for.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use redrive_testbed::{Proxy, free_port, wait_until};
use tempfile::TempDir;

/// A command line for an order: its id, its amount, the URL to announce it to.
pub(crate) type Submit = dyn Fn(&[&str; 3]) -> Command;
/// A command line for an event, given its key and its body, which is also the command's input.
pub(crate) type Apply = dyn Fn(&str, &str) -> Command + Send;

/// How an example is started.
pub(crate) struct Example {
    pub(crate) submit: Box<Submit>,
    pub(crate) receiver: Receiver,
    /// The exit codes for a key of another request, and for a task that was not delivered.
    pub(crate) exit_codes: [i32; 2],
    /// Whether it submits over HTTP, where an answer may be lost.
    pub(crate) is_over_http: bool,
}

/// The side that is called.
pub(crate) enum Receiver {
    /// A server on this port.
    Server(Box<dyn Fn(u16) -> Command>),
    /// A program for each event. The test's own server runs it, as a web server would.
    PerEvent(Box<Apply>),
}

/// A running service.
pub(crate) struct Redrive {
    _process: Killed,
    address: String,
}

/// An answer: the status, the head and the body.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

/// A process that is killed with this value.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Redrive {
    /// Starts `program serve` with the store in `directory`, or another one.
    pub(crate) fn start(program: &Path, directory: &TempDir, arguments: &[&str]) -> Redrive {
        let address = format!("127.0.0.1:{}", free_port());
        let mut serve = Command::new(program);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("REDRIVE_")) {
            serve.env_remove(name);
        }
        serve.args(["serve", "--listen", &address]).args(arguments).current_dir(directory.path());
        let process = Killed(serve.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let redrive = Redrive { _process: process, address };
        wait_until("redrive is ready", || {
            TcpStream::connect(&redrive.address).is_ok()
                && request(&redrive.address, "GET /readyz", "", "").status == 200
        });
        redrive
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// Plays everything that an example promises.
pub(crate) fn orders_are_announced_and_applied_once(example: Example, redrive: &Redrive, directory: &TempDir) {
    let applied = Applied::start(example.receiver, redrive, directory);
    let orders = format!("http://{}/orders", applied.address);
    let submit = |order: &[&str; 3]| ended((example.submit)(order).env("REDRIVE", redrive.url()));
    let [other_request, not_delivered] = example.exit_codes;
    if example.is_over_http {
        a_lost_answer_is_asked_for_again(&example.submit, redrive, &applied);
    }
    let applied_before = applied.lines().len();
    let lines = || applied.lines().split_off(applied_before);

    let delivered = (0, "order-7: SUCCEEDED after 1 attempt(s)\n".to_owned());
    assert_eq!(submit(&["order-7", "100.00", &orders]), delivered);
    assert_eq!(submit(&["order-7", "100.00", &orders]), delivered, "submitted again, it is the same task");
    assert_eq!(submit(&["order-7", "100.01", &orders]), (other_request, String::new()), "the key of another request");
    assert_eq!(lines(), ["order-7: paid 100.00"]);

    // Another attempt of the same task: the sender did not get the answer.
    assert_eq!(applied.deliver("order-7", "100.00").status, 200);
    assert_eq!(lines(), ["order-7: paid 100.00"]);

    let nowhere = format!("http://{}/nowhere", applied.address);
    let (code, printed) = submit(&["order-8", "5.00", &nowhere]);
    assert_eq!((code, printed.as_str()), (not_delivered, "order-8: FAILED after 1 attempt(s)\n"));

    // Another process is applying the event.
    let event = "POST /inboxes/orders/events/order-9";
    let begun = request(&redrive.address, event, "", r#"{"mode": "begin", "leaseMs": 600000}"#);
    assert_eq!(begun.status, 201, "{}", begun.body);
    let later = applied.deliver("order-9", "7.00");
    assert_eq!(later.status, 503);
    assert!(later.head.to_lowercase().contains("\r\nretry-after: "), "{}", later.head);
    // That process gives it back.
    let owner = begun.body.split_once("\"executionId\":\"").unwrap().1.split_once('"').unwrap().0;
    let owner = format!(r#"{{"executionId": "{owner}", "epoch": 1}}"#);
    assert_eq!(request(&redrive.address, &format!("{event}/release"), "", &owner).status, 200);
    assert_eq!(applied.deliver("order-9", "7.00").status, 200);
    assert_eq!(lines(), ["order-7: paid 100.00", "order-9: paid 7.00"]);
}

/// The task is accepted and delivered, and the connection breaks before the answer arrives.
fn a_lost_answer_is_asked_for_again(submit: &Submit, redrive: &Redrive, applied: &Applied) {
    let proxy = Proxy::start(redrive.address.parse().unwrap());
    proxy.lose_answers();
    let mut command = submit(&["order-6", "1.00", &format!("http://{}/orders", applied.address)]);
    command.env("REDRIVE", format!("http://{}", proxy.address())).stdin(Stdio::null()).stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    wait_until("the answer is lost", || proxy.lost_bytes() > 0);
    proxy.cut_all();
    proxy.restore();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "order-6: SUCCEEDED after 1 attempt(s)\n");
    assert_eq!(applied.lines(), ["order-6: paid 1.00"]);
}

/// A receiver, and what it has printed: one line for each order that it has applied.
struct Applied {
    _process: Option<Killed>,
    address: String,
    printed: PathBuf,
}

impl Applied {
    fn start(receiver: Receiver, redrive: &Redrive, directory: &TempDir) -> Applied {
        let (port, printed) = (free_port(), directory.path().join("applied"));
        let output = OpenOptions::new().create(true).append(true).open(&printed).unwrap();
        let address = format!("127.0.0.1:{port}");
        let process = match receiver {
            Receiver::Server(command) => {
                let mut command = command(port);
                command.env("REDRIVE", redrive.url()).stdin(Stdio::null()).stdout(output);
                let process = Killed(command.spawn().unwrap());
                wait_until("the receiver listens", || TcpStream::connect(&address).is_ok());
                Some(process)
            }
            Receiver::PerEvent(command) => {
                let (listener, url) = (TcpListener::bind(&address).unwrap(), redrive.url());
                thread::spawn(move || {
                    for stream in listener.incoming() {
                        answer_by_program(stream.unwrap(), &*command, &url, &output);
                    }
                });
                None
            }
        };
        Applied { _process: process, address, printed }
    }

    /// Delivers an order once more, as Redrive would.
    fn deliver(&self, order: &str, amount: &str) -> Answer {
        let headers = format!("content-type: application/json\r\nidempotency-key: {order}\r\n");
        let body = format!(r#"{{"order": "{order}", "amount": "{amount}"}}"#);
        request(&self.address, "POST /orders", &headers, &body)
    }

    fn lines(&self) -> Vec<String> {
        fs::read_to_string(&self.printed).unwrap().lines().map(str::to_owned).collect()
    }
}

/// Answers one request with the exit code of a program: 200, or 503 if it fails.
fn answer_by_program(stream: TcpStream, command: &Apply, redrive: &str, output: &File) {
    let (head, body) = read_message(&stream);
    let key = head.lines().find_map(|line| line.to_lowercase().strip_prefix("idempotency-key: ").map(str::to_owned));
    let status = match (head.starts_with("POST /orders "), key) {
        (true, Some(key)) => {
            let mut command = command(key.trim(), &body);
            command.env("REDRIVE", redrive).stdin(Stdio::piped()).stdout(output.try_clone().unwrap());
            let mut child = command.spawn().unwrap();
            // A program that does not need its input may have ended.
            child.stdin.take().unwrap().write_all(body.as_bytes()).ok();
            if child.wait().unwrap().success() { "200 OK\r\n" } else { "503 Unavailable\r\nretry-after: 1\r\n" }
        }
        _ => "404 Not Found\r\n",
    };
    let answer = format!("HTTP/1.1 {status}content-length: 0\r\nconnection: close\r\n\r\n");
    (&stream).write_all(answer.as_bytes()).unwrap();
}

fn request(address: &str, line: &str, headers: &str, body: &str) -> Answer {
    let json = if headers.is_empty() { "content-type: application/json\r\n" } else { headers };
    let length = body.len();
    let stream = TcpStream::connect(address).unwrap();
    let text = format!(
        "{line} HTTP/1.1\r\nhost: {address}\r\n{json}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    (&stream).write_all(text.as_bytes()).unwrap();
    let (head, body) = read_message(&stream);
    let status = head.split_whitespace().nth(1).and_then(|status| status.parse().ok());
    Answer { status: status.unwrap_or_else(|| panic!("{head}")), head, body }
}

/// The head and the body of a message with a `Content-Length`.
fn read_message(stream: &TcpStream) -> (String, String) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap() > 0 {}
    let length =
        head.to_lowercase().lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).unwrap();
    (head, String::from_utf8(body).unwrap())
}

/// How a command ended: its exit code, and what it printed.
fn ended(command: &mut Command) -> (i32, String) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let code = output.status.code().unwrap();
    assert!(code == 0 || !errors.is_empty() || !output.stdout.is_empty(), "it failed without a word");
    assert!(code != 1, "{command:?}: {errors}");
    (code, String::from_utf8(output.stdout).unwrap())
}

//! A machine without file descriptors. The limit is the whole process's, so whoever runs out of them is a process of
//! its own: this program once more, with the servers left in the first.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../wire/call.rs"]
#[allow(dead_code, reason = "the calls of the other tests need more")]
mod call;
#[path = "../support/mod.rs"]
mod support;

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};

use redrive_core::ErrorType;
use redrive_transport::Options;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use call::{call, transport};
use support::{DnsServer, Reply, Server, behaviours};

/// Few, so that it does not take long to use them up.
const FILES: u64 = 256;
/// The variable with the address to send to and that of the DNS server.
const SERVERS: &str = "SHORTAGE_SERVERS";
/// What the other process says when it has met the shortage; it goes on when it is told to.
const MET: &str = "met the shortage";

#[tokio::test(flavor = "multi_thread")]
async fn a_send_for_which_no_file_descriptor_is_left_is_not_sent_and_is_no_failure_of_the_dependency() {
    let dns = DnsServer::start(|_, _| Reply::Address(Ipv4Addr::LOCALHOST));
    let server = Server::start(|visitor| behaviours::answer(visitor, behaviours::OK)).await;
    let mut sender = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_process_that_runs_out_of_file_descriptors", "--ignored", "--nocapture"])
        .env(SERVERS, format!("{} {}", server.address(), dns.address()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(sender.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(said.any(|line| line.contains(MET)), "it ended before it met the shortage: {:?}", sender.wait());
    assert_eq!((server.counts().accepted, dns.questions().len()), (0, 0));
    writeln!(sender.stdin.take().unwrap(), "go on").unwrap();
    said.for_each(drop);
    assert!(sender.wait().unwrap().success());
    assert_eq!(server.counts().accepted, 2, "by address, and by name");
}

#[ignore = "the other half of the test above, which runs it in a process of its own"]
#[tokio::test]
async fn the_process_that_runs_out_of_file_descriptors() {
    let servers = std::env::var(SERVERS).unwrap();
    let (server, dns) = servers.split_once(' ').unwrap();
    let transport = transport(Options { dns_servers: vec![dns.parse().unwrap()], ..Options::default() });
    let urls = [format!("http://{server}/"), format!("http://a.test:{}/", server.rsplit_once(':').unwrap().1)];

    let limit = Rlimit { current: Some(FILES), ..getrlimit(Resource::Nofile) };
    setrlimit(Resource::Nofile, limit).unwrap();
    let taken: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    for url in &urls {
        let (kind, message) = call(url).fails_over(&transport).await;
        assert_eq!(kind, ErrorType::NotSent, "{url}: {message}");
        assert!(message.contains("no file descriptor left"), "{url}: {message}");
    }
    println!("{MET}");
    std::io::stdin().read_line(&mut String::new()).unwrap();

    drop(taken);
    for url in &urls {
        assert_eq!(call(url).over(&transport).await.unwrap().status, 200, "{url}");
    }
}

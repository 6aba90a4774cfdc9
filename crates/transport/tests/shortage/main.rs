//! A machine without file descriptors. A program of its own: the limit is the whole process's.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../wire/call.rs"]
#[allow(dead_code, reason = "the calls of the other tests need more")]
mod call;
#[path = "../support/mod.rs"]
mod support;

use std::fs::File;
use std::net::Ipv4Addr;

use redrive_core::ErrorType;
use redrive_transport::Options;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use call::{call, transport};
use support::{DnsServer, Reply, Server, behaviours};

/// Few, so that it does not take long to use them up.
const FILES: u64 = 256;

#[ignore = "takes the file descriptors of its own servers too, and fails now and then"]
#[tokio::test]
async fn a_send_for_which_no_file_descriptor_is_left_is_not_sent_and_is_no_failure_of_the_dependency() {
    let dns = DnsServer::start(|_, _| Reply::Address(Ipv4Addr::LOCALHOST));
    let server = Server::start(|visitor| behaviours::answer(visitor, behaviours::OK)).await;
    let transport = transport(Options { dns_servers: vec![dns.address()], ..Options::default() });
    let by_name = format!("http://a.test:{}/", server.address().port());

    let limit = Rlimit { current: Some(FILES), ..getrlimit(Resource::Nofile) };
    setrlimit(Resource::Nofile, limit).unwrap();
    let taken: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    for url in [&server.url("/"), &by_name] {
        let (kind, message) = call(url).fails_over(&transport).await;
        assert_eq!(kind, ErrorType::NotSent, "{url}: {message}");
        assert!(message.contains("no file descriptor left"), "{url}: {message}");
    }
    assert_eq!((server.counts().accepted, dns.questions().len()), (0, 0));

    drop(taken);
    for url in [&server.url("/"), &by_name] {
        assert_eq!(call(url).over(&transport).await.unwrap().status, 200, "{url}");
    }
}

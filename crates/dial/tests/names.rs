//! Names, looked up at a DNS server that does what the test says.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

mod support;

use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join_all, select_all};
use redrive_dial::{DialError, DialErrorKind, Dialer, Endpoint, Options, Roots, Stream};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use support::dns::{DnsServer, Question, Reply};
use tokio::net::TcpListener;

const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;
/// Long enough to never run out in a test that does not want it to.
const PLENTY: Duration = Duration::from_secs(60);
/// Short enough to run out soon in a test that waits for it.
const SHORT: Duration = Duration::from_millis(400);

fn dialer(dns_servers: Vec<SocketAddr>) -> Arc<Dialer> {
    Arc::new(Dialer::new(&Options { dns_servers, roots: Roots::ExtraOnly, ..Options::default() }).unwrap())
}

fn asking(dns: &DnsServer) -> Arc<Dialer> {
    dialer(vec![dns.address()])
}

/// Something that can be connected to.
async fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind((HERE, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

async fn dial(dialer: &Dialer, name: &str, port: u16, within: Duration) -> Result<SocketAddr, DialError> {
    let endpoint = Endpoint::new(name, port, false).unwrap();
    match dialer.dial(&endpoint, within, |_| ()).await? {
        Stream::Tcp(stream) => Ok(stream.peer_addr().unwrap()),
        Stream::Tls(_) => panic!("TLS was not asked for"),
    }
}

/// A connection in a task of its own.
fn spawn(dialer: &Arc<Dialer>, name: String, port: u16) -> tokio::task::JoinHandle<Result<SocketAddr, DialError>> {
    let dialer = dialer.clone();
    tokio::spawn(async move { dial(&dialer, &name, port, Duration::from_millis(2_500)).await })
}

#[tokio::test]
async fn connections_that_follow_each_other_share_a_look_up() {
    let dns = DnsServer::start(|_, _| Reply::Address(HERE));
    let ((_listener, port), dialer) = (listener().await, asking(&dns));
    for _ in 0..3 {
        assert_eq!(dial(&dialer, "a.test", port, PLENTY).await.unwrap(), SocketAddr::from((HERE, port)));
    }
    assert_eq!(dns.questions().len(), 2, "one for each family: {:?}", dns.questions());
}

#[tokio::test]
async fn connections_at_once_share_a_look_up() {
    let dns = DnsServer::start(|_, _| Reply::Held(HERE));
    let ((_listener, port), dialer) = (listener().await, asking(&dns));
    let connections = join_all((0..50).map(|_| dial(&dialer, "a.test", port, PLENTY)));
    let release = async {
        dns.wait_for(|questions| questions.len() == 2).await;
        dns.release();
    };
    let (opened, ()) = tokio::join!(connections, release);
    assert!(opened.iter().all(Result::is_ok), "{opened:?}");
    assert_eq!(dns.questions().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_look_ups_that_hang_cost_a_healthy_name_nothing() {
    const HANGING: usize = 1_000;
    // Two sockets for each look-up: more than many systems let a process begin with.
    let files = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: files.maximum, maximum: files.maximum }).unwrap();
    let dns = DnsServer::start(|name, _| match name.strip_suffix(".silent.test") {
        Some(_) => Reply::Silence,
        None => Reply::Address(HERE),
    });
    let ((_listener, port), dialer) = (listener().await, asking(&dns));
    let hang = |number: usize| {
        let dialer = dialer.clone();
        tokio::spawn(async move { dial(&dialer, &format!("{number}.silent.test"), port, PLENTY).await })
    };
    let hanging = (0..HANGING).map(hang).collect::<Vec<_>>();
    let names = |questions: &[Question]| questions.iter().map(|question| &question.name).collect::<HashSet<_>>().len();
    dns.wait_for(|questions| questions.len() >= HANGING && names(questions) == HANGING).await;
    tokio::select! {
        opened = dial(&dialer, "a.test", port, PLENTY) => assert_eq!(opened.unwrap().port(), port),
        (ended, _, _) = select_all(hanging) => panic!("a look-up that hangs ended first: {ended:?}"),
    }
}

#[tokio::test]
async fn a_look_up_without_an_answer_in_time_is_a_dns_error() {
    let dns = DnsServer::start(|_, _| Reply::Silence);
    let ((_listener, port), dialer) = (listener().await, asking(&dns));
    let failed = dial(&dialer, "a.test", port, SHORT).await.unwrap_err();
    assert_eq!(failed.kind, DialErrorKind::Dns);
    let expected = format!("could not resolve \"a.test\" to connect to a.test:{port} within 400ms");
    assert_eq!(failed.to_string(), expected);
}

#[test]
fn look_ups_without_an_answer_do_not_block_the_threads() {
    const CONNECTIONS: usize = 200;
    // They once asked again without a pause. Look-ups of the same name share an outcome, which was there at once each
    // time until the first of them had seen it, and that one never got a thread. So this is watched from another
    // thread.
    let (ended, end) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let kinds = runtime.block_on(async {
            let dns = DnsServer::start(|_, _| Reply::Silence);
            let ((_listener, port), dialer) = (listener().await, asking(&dns));
            let name = |nth| format!("{}.test", nth % (CONNECTIONS / 4));
            let opening = (0..CONNECTIONS).map(|nth| spawn(&dialer, name(nth), port)).collect::<Vec<_>>();
            join_all(opening).await.into_iter().map(|ended| ended.unwrap().unwrap_err().kind).collect::<Vec<_>>()
        });
        ended.send(kinds).unwrap();
    });
    let kinds = end.recv_timeout(Duration::from_secs(60)).expect("look-ups without an answer blocked the threads");
    assert_eq!(kinds, [DialErrorKind::Dns; CONNECTIONS]);
}

#[tokio::test]
async fn a_question_that_gets_lost_is_asked_again() {
    let dns = DnsServer::start(|_, nth| if nth == 1 { Reply::Silence } else { Reply::Address(HERE) });
    let ((_listener, port), dialer) = (listener().await, asking(&dns));
    assert_eq!(dial(&dialer, "a.test", port, PLENTY).await.unwrap().port(), port);
    assert_eq!(dns.questions().len(), 4);
}

#[tokio::test]
async fn a_name_that_exists_by_the_second_try_is_found() {
    let dns = DnsServer::start(|_, nth| if nth == 1 { Reply::NoSuchName } else { Reply::Address(HERE) });
    let ((_listener, port), dialer) = (listener().await, asking(&dns));
    let failed = dial(&dialer, "a.test", port, PLENTY).await.unwrap_err();
    assert_eq!(failed.kind, DialErrorKind::Dns);
    assert!(failed.message.contains("no such name"), "{failed}");
    assert_eq!(dial(&dialer, "a.test", port, PLENTY).await.unwrap().port(), port);
}

#[tokio::test]
async fn a_server_that_failed_once_is_asked_again_and_one_that_fails_is_a_dns_error() {
    let dns = DnsServer::start(|name, nth| match (name, nth) {
        ("once.test", 2..) => Reply::Address(HERE),
        _ => Reply::Failure,
    });
    let ((_listener, port), dialer) = (listener().await, asking(&dns));
    assert_eq!(dial(&dialer, "once.test", port, PLENTY).await.unwrap().port(), port);
    let failed = dial(&dialer, "always.test", port, PLENTY).await.unwrap_err();
    assert_eq!(failed.kind, DialErrorKind::Dns, "{failed}");
}

#[tokio::test]
async fn an_answer_that_is_too_large_for_a_datagram_comes_over_tcp() {
    let dns = DnsServer::start(|_, _| Reply::OverTcp(HERE));
    let ((_listener, port), dialer) = (listener().await, asking(&dns));
    assert_eq!(dial(&dialer, "a.test", port, PLENTY).await.unwrap().port(), port);
    assert!(dns.questions().iter().any(|question| question.tcp && question.ipv4));
}

#[tokio::test]
async fn an_address_at_which_nothing_listens_is_not_kept() {
    const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);
    let dns = DnsServer::start(|_, nth| Reply::Address(if nth == 1 { ELSEWHERE } else { HERE }));
    let ((_listener, port), dialer) = (listener().await, asking(&dns));
    let failed = dial(&dialer, "moved.test", port, PLENTY).await.unwrap_err();
    assert_eq!(failed.kind, DialErrorKind::ConnectionRefused);
    assert_eq!(dial(&dialer, "moved.test", port, PLENTY).await.unwrap().port(), port);
}

#[tokio::test]
async fn the_second_server_answers_where_the_first_is_silent() {
    let silent = DnsServer::start(|_, _| Reply::Silence);
    let dns = DnsServer::start(|_, _| Reply::Address(HERE));
    let ((_listener, port), dialer) = (listener().await, dialer(vec![silent.address(), dns.address()]));
    assert_eq!(dial(&dialer, "a.test", port, PLENTY).await.unwrap().port(), port);
}

#[tokio::test]
async fn addresses_and_localhost_are_no_question_for_a_server() {
    let dns = DnsServer::start(|_, _| Reply::NoSuchName);
    let ((_listener, port), dialer) = (listener().await, asking(&dns));
    for host in ["127.0.0.1", "localhost"] {
        assert_eq!(dial(&dialer, host, port, PLENTY).await.unwrap().port(), port, "{host}");
    }
    assert_eq!(dns.questions(), []);
}

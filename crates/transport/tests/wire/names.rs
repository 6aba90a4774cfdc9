//! Names, looked up at a server that does what the tests say.

use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use futures_util::future::{join_all, select_all};
use redrive_core::ErrorType;
use redrive_engine::transport::Transport;
use redrive_transport::{HttpTransport, Options, Plain};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::call::{Call, SHORT, call, transport};
use crate::support::behaviours::OK;
use crate::support::{DnsServer, Question, Reply, Server, behaviours};

const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;

fn asking(dns: &DnsServer) -> HttpTransport {
    transport(Options { dns_servers: vec![dns.address()], ..Options::default() })
}

async fn server() -> Server {
    Server::start(|visitor| behaviours::answer(visitor, OK)).await
}

/// A call of `server` by this name.
fn named(name: &str, server: &Server) -> Call {
    call(format!("http://{name}:{}/", server.address().port()))
}

#[tokio::test]
async fn a_name_is_looked_up_once_for_calls_that_follow_each_other() {
    let dns = DnsServer::start(|_, _| Reply::Address(HERE));
    // No connection can be kept.
    let server =
        Server::start(|visitor| behaviours::answer_and_close(visitor, "HTTP/1.0 204 No Content\r\n\r\n")).await;
    let transport = asking(&dns);
    for _ in 0..3 {
        assert_eq!(named("a.test", &server).over(&transport).await.unwrap().status, 204);
    }
    assert_eq!(server.counts().accepted, 3);
    assert_eq!(server.requests()[0].one("host"), Some(format!("a.test:{}", server.address().port()).as_str()));
    assert_eq!(dns.questions().len(), 2, "one for each family: {:?}", dns.questions());
}

#[tokio::test]
async fn calls_of_one_name_at_once_share_its_look_up() {
    let dns = DnsServer::start(|_, _| Reply::Held(HERE));
    let (server, transport) = (server().await, asking(&dns));
    let calls = join_all((0..50).map(|_| named("a.test", &server).over(&transport)));
    let release = async {
        dns.wait_for(|questions| questions.len() == 2).await;
        dns.release();
    };
    let (answers, ()) = tokio::join!(calls, release);
    assert!(answers.iter().all(|answer| answer.as_ref().unwrap().status == 200));
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
    let (server, transport) = (server().await, asking(&dns));
    let hang = |number| tokio::spawn(transport.send(named(&format!("{number}.silent.test"), &server).outbound));
    let hanging = (0..HANGING).map(hang).collect::<Vec<_>>();
    let names = |questions: &[Question]| questions.iter().map(|question| &question.name).collect::<HashSet<_>>().len();
    dns.wait_for(|questions| questions.len() >= HANGING && names(questions) == HANGING).await;
    let healthy = named("a.test", &server).over(&transport);
    tokio::select! {
        answer = healthy => assert_eq!(answer.unwrap().status, 200),
        (ended, _, _) = select_all(hanging) => panic!("a look-up that hangs ended first: {ended:?}"),
    }
}

#[tokio::test]
async fn a_look_up_without_an_answer_in_time_is_a_dns_error() {
    let dns = DnsServer::start(|_, _| Reply::Silence);
    let (server, transport) = (server().await, asking(&dns));
    let (kind, message) = named("a.test", &server).connect_timeout(SHORT).fails_over(&transport).await;
    assert_eq!(kind, ErrorType::Dns);
    assert!(message.contains("could not resolve \"a.test\"") && message.contains("within"), "{message}");
}

#[test]
fn look_ups_that_nobody_answers_leave_the_others_the_threads() {
    const CALLS: usize = 200;
    // They once asked again without a pause. Calls of the same name share an outcome, which was there at once each time until
    // the first of them had seen it, and that one never got a thread. So this is watched from another thread.
    let (ended, end) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let kinds = runtime.block_on(async {
            let dns = DnsServer::start(|_, _| Reply::Silence);
            let (server, transport) = (server().await, asking(&dns));
            let call = |nth| named(&format!("{}.test", nth % (CALLS / 4)), &server);
            let call = |nth| call(nth).connect_timeout(Duration::from_millis(2_500)).outbound;
            let calls = (0..CALLS).map(|nth| tokio::spawn(transport.send(call(nth)))).collect::<Vec<_>>();
            join_all(calls).await.into_iter().map(|ended| ended.unwrap().unwrap_err().kind).collect::<Vec<_>>()
        });
        ended.send(kinds).unwrap();
    });
    let kinds = end.recv_timeout(Duration::from_secs(60)).expect("look-ups that nobody answers took the threads");
    assert_eq!(kinds, [ErrorType::Dns; CALLS]);
}

#[tokio::test]
async fn a_call_that_waits_for_the_connection_of_another_fails_at_the_step_that_it_is_at() {
    let dns = DnsServer::start(|_, _| Reply::Silence);
    let server = server().await;
    let transport = transport(Options { plain: Plain::Http2, dns_servers: vec![dns.address()], ..Options::default() });
    let opening = tokio::spawn(transport.send(named("a.test", &server).outbound));
    dns.wait_for(|questions| questions.len() == 2).await;
    let (kind, message) = named("a.test", &server).connect_timeout(SHORT).fails_over(&transport).await;
    assert_eq!(kind, ErrorType::Dns, "{message}");
    opening.abort();
}

#[tokio::test]
async fn a_question_that_gets_lost_is_asked_again() {
    let dns = DnsServer::start(|_, nth| if nth == 1 { Reply::Silence } else { Reply::Address(HERE) });
    let (server, transport) = (server().await, asking(&dns));
    assert_eq!(named("a.test", &server).over(&transport).await.unwrap().status, 200);
    assert_eq!(dns.questions().len(), 4);
}

#[tokio::test]
async fn a_name_that_exists_by_the_second_try_is_found() {
    let dns = DnsServer::start(|_, nth| if nth == 1 { Reply::NoSuchName } else { Reply::Address(HERE) });
    let (server, transport) = (server().await, asking(&dns));
    let (kind, message) = named("a.test", &server).fails_over(&transport).await;
    assert_eq!(kind, ErrorType::Dns);
    assert!(message.contains("no such name"), "{message}");
    assert_eq!(named("a.test", &server).over(&transport).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_server_that_failed_once_is_asked_again_and_one_that_fails_is_a_dns_error() {
    let dns = DnsServer::start(|name, nth| match (name, nth) {
        ("once.test", 2..) => Reply::Address(HERE),
        _ => Reply::Failure,
    });
    let (server, transport) = (server().await, asking(&dns));
    assert_eq!(named("once.test", &server).over(&transport).await.unwrap().status, 200);
    let (kind, message) = named("always.test", &server).fails_over(&transport).await;
    assert_eq!(kind, ErrorType::Dns, "{message}");
}

#[tokio::test]
async fn an_answer_that_is_too_large_for_a_datagram_comes_over_tcp() {
    let dns = DnsServer::start(|_, _| Reply::OverTcp(HERE));
    let (server, transport) = (server().await, asking(&dns));
    assert_eq!(named("a.test", &server).over(&transport).await.unwrap().status, 200);
    assert!(dns.questions().iter().any(|question| question.tcp && question.ipv4));
}

#[tokio::test]
async fn an_address_at_which_nothing_listens_is_not_kept() {
    const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);
    let dns = DnsServer::start(|_, nth| Reply::Address(if nth == 1 { ELSEWHERE } else { HERE }));
    let (server, transport) = (server().await, asking(&dns));
    let (kind, _) = named("moved.test", &server).fails_over(&transport).await;
    assert_eq!(kind, ErrorType::ConnectionRefused);
    assert_eq!(named("moved.test", &server).over(&transport).await.unwrap().status, 200);
}

#[tokio::test]
async fn the_second_server_answers_where_the_first_is_silent() {
    let silent = DnsServer::start(|_, _| Reply::Silence);
    let dns = DnsServer::start(|_, _| Reply::Address(HERE));
    let server = server().await;
    let dns_servers = vec![silent.address(), dns.address()];
    let transport = transport(Options { dns_servers, ..Options::default() });
    assert_eq!(named("a.test", &server).over(&transport).await.unwrap().status, 200);
}

#[tokio::test]
async fn addresses_and_localhost_are_no_question_for_a_server() {
    let dns = DnsServer::start(|_, _| Reply::NoSuchName);
    let (server, transport) = (server().await, asking(&dns));
    for host in ["127.0.0.1", "localhost"] {
        assert_eq!(named(host, &server).over(&transport).await.unwrap().status, 200, "{host}");
    }
    assert_eq!(dns.questions(), []);
}

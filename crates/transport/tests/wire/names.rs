//! Calls of names, looked up at a server that does what the tests say. What the look-up does is tested in
//! `redrive-dial`.

use std::net::Ipv4Addr;

use futures_util::future::join_all;
use redrive_core::ErrorType;
use redrive_engine::transport::Transport;
use redrive_transport::{HttpTransport, Options, PlainProtocol};

use crate::call::{Call, SHORT, call, transport};
use crate::support::behaviours::OK;
use crate::support::{DnsServer, Reply, Server, behaviours};

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

#[tokio::test]
async fn a_look_up_without_an_answer_in_time_is_a_dns_error() {
    let dns = DnsServer::start(|_, _| Reply::Silence);
    let (server, transport) = (server().await, asking(&dns));
    let (kind, message) = named("a.test", &server).connect_timeout(SHORT).fails_over(&transport).await;
    assert_eq!(kind, ErrorType::Dns);
    assert!(message.contains("could not resolve \"a.test\"") && message.contains("within"), "{message}");
}

#[tokio::test]
async fn a_call_that_waits_for_the_connection_of_another_fails_at_the_step_that_it_is_at() {
    let dns = DnsServer::start(|_, _| Reply::Silence);
    let server = server().await;
    let transport =
        transport(Options { plain: PlainProtocol::Http2, dns_servers: vec![dns.address()], ..Options::default() });
    let opening = tokio::spawn(transport.send(named("a.test", &server).outbound));
    dns.wait_for(|questions| questions.len() == 2).await;
    let (kind, message) = named("a.test", &server).connect_timeout(SHORT).fails_over(&transport).await;
    assert_eq!(kind, ErrorType::Dns, "{message}");
    opening.abort();
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

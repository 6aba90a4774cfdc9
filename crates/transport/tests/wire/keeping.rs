//! Connections that are kept, bounded and given up.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use redrive_core::ErrorType;
use redrive_engine::transport::Transport;
use redrive_transport::Options;
use tokio::sync::Semaphore;

use crate::call::{SHORT, call, transport};
use crate::support::behaviours::OK;
use crate::support::{Server, Visitor, behaviours};

#[tokio::test]
async fn a_connection_is_used_again() {
    let server = Server::start(|visitor| behaviours::answer(visitor, OK)).await;
    let transport = transport(Options::default());
    for _ in 0..50 {
        assert_eq!(call(server.url("/")).over(&transport).await.unwrap().body.inline().unwrap(), "ok");
    }
    assert_eq!((server.counts().accepted, server.counts().requests), (1, 50));
}

#[tokio::test]
async fn the_lanes_of_a_tenant_share_connections_and_tenants_do_not() {
    let server = Server::start(|visitor| behaviours::answer(visitor, OK)).await;
    let transport = transport(Options::default());
    for (tenant, lane, accepted) in [("a", "x", 1), ("a", "y", 1), ("b", "x", 2), ("a", "x", 2), ("b", "y", 2)] {
        call(server.url("/")).lane(lane).tenant(tenant).over(&transport).await.unwrap();
        assert_eq!(server.counts().accepted, accepted, "{tenant}, {lane}");
    }
}

/// A server that answers only when told to, one permit for one answer.
async fn gated() -> (Server, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let server = Server::start({
        let gate = gate.clone();
        move |visitor| answer_through(gate.clone(), visitor)
    })
    .await;
    (server, gate)
}

async fn answer_through(gate: Arc<Semaphore>, mut visitor: Visitor<tokio::net::TcpStream>) {
    while visitor.read_request().await.is_some() {
        gate.acquire().await.unwrap().forget();
        if visitor.write(OK).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn no_send_waits_for_another_to_end() {
    const CALLS: usize = 500;
    let (server, gate) = gated().await;
    let transport = transport(Options::default());
    let calls = join_all((0..CALLS).map(|_| call(server.url("/")).over(&transport)));
    let open_the_gate = async {
        server.wait_for(|counts| counts.requests == CALLS).await;
        gate.add_permits(CALLS);
    };
    let (answers, ()) = tokio::join!(calls, open_the_gate);
    assert!(answers.iter().all(|answer| answer.as_ref().unwrap().status == 200));
}

#[tokio::test]
async fn a_call_that_is_dropped_takes_its_connection_with_it() {
    let server = Server::start(behaviours::stall).await;
    let transport = transport(Options::default());
    for round in 1..=3 {
        let under_way = tokio::spawn(transport.send(call(server.url("/")).outbound));
        server.wait_for(|counts| counts.requests == round).await;
        under_way.abort();
        server.wait_for(|counts| counts.open == 0).await;
    }
    assert_eq!(server.counts().accepted, 3);
}

#[tokio::test]
async fn a_call_that_times_out_gives_its_connection_up() {
    let server = Server::start(behaviours::stall).await;
    let transport = transport(Options::default());
    let (kind, _) = call(server.url("/")).attempt_timeout(SHORT).fails_over(&transport).await;
    assert_eq!(kind, ErrorType::ReadTimeout);
    server.wait_for(|counts| counts.open == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_sent_twice_to_a_server_that_closes_without_saying_so() {
    const CALLS: usize = 500;
    let server = Server::start(|visitor| behaviours::answer_and_close(visitor, OK)).await;
    let transport = transport(Options::default());
    let (mut answered, mut failed) = (HashSet::new(), HashSet::new());
    for at in 0..CALLS {
        let call = call(server.url("/"));
        let key = call.key();
        match call.over(&transport).await {
            Ok(answer) => {
                assert_eq!(answer.body.inline().unwrap(), "ok");
                answered.insert(key);
            }
            Err(error) => {
                assert_eq!(error.kind, ErrorType::ConnectionReset, "{error}");
                failed.insert(key);
            }
        }
        // In half of the calls the server's close has arrived before the next one, in the others they race.
        if at % 2 == 0 {
            server.wait_for(|counts| counts.open == 0).await;
        }
    }
    let mut came: HashMap<String, usize> = HashMap::new();
    for request in server.requests() {
        *came.entry(request.one("idempotency-key").unwrap().to_owned()).or_default() += 1;
    }
    assert!(came.values().all(|&times| times == 1), "a request came twice");
    assert!(answered.iter().all(|key| came.contains_key(key)), "an answer without a request");
    assert_eq!(answered.len() + failed.len(), CALLS);
    assert!(answered.len() >= CALLS / 4, "{} of {CALLS} answered", answered.len());
}

#[tokio::test]
async fn what_a_kept_connection_lost_is_not_sent_again() {
    // Whether the server closes or resets, it has had the request: only the engine may decide to send another.
    let closes = Server::start(|visitor| behaviours::answer_one_and_lose_one(visitor, OK)).await;
    let resets = Server::start(|mut visitor| async move {
        if visitor.read_request().await.is_some() && visitor.write(OK).await.is_ok() {
            behaviours::reset_after_head(visitor).await;
        }
    })
    .await;
    let transport = transport(Options::default());
    for server in [closes, resets] {
        for round in 1..=10 {
            assert_eq!(call(server.url("/")).over(&transport).await.unwrap().status, 200);
            let (kind, _) = call(server.url("/")).fails_over(&transport).await;
            assert_eq!(kind, ErrorType::ConnectionReset);
            assert_eq!((server.counts().accepted, server.counts().requests), (round, 2 * round));
        }
    }
}

#[tokio::test]
async fn a_server_that_says_that_it_closes_is_believed() {
    let answer = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok";
    let server = Server::start(move |visitor| behaviours::answer_and_close(visitor, answer)).await;
    let transport = transport(Options::default());
    for _ in 0..50 {
        assert_eq!(call(server.url("/")).over(&transport).await.unwrap().status, 200);
    }
    assert_eq!((server.counts().accepted, server.counts().requests), (50, 50));
}

#[tokio::test]
async fn unrequested_bytes_never_become_an_answer() {
    let two = format!("{OK}HTTP/1.1 500 Not Asked For\r\ncontent-length: 0\r\n\r\n");
    let server = Server::start(move |visitor| behaviours::answer(visitor, two.clone())).await;
    let transport = transport(Options::default());
    for _ in 0..10 {
        assert_eq!(call(server.url("/")).over(&transport).await.unwrap().status, 200);
    }
    assert_eq!((server.counts().accepted, server.counts().requests), (10, 10));
}

#[tokio::test]
async fn an_answer_before_the_request_was_read_leaves_no_connection_behind() {
    // The server answers after the head, and reads the body only when the client has its answer.
    let server = Server::start(|mut visitor| async move {
        if visitor.read_head().await.is_some() && visitor.write(OK).await.is_ok() {
            visitor.read_to_end().await;
        }
    })
    .await;
    let transport = transport(Options::default());
    for round in 1..=2 {
        let call = call(server.url("/")).body(vec![0; 64 * 1024 * 1024]);
        assert_eq!(call.over(&transport).await.unwrap().status, 200);
        assert_eq!(server.counts().accepted, round);
    }
}

#[tokio::test]
async fn an_unused_connection_is_closed_after_its_time_without_further_calls() {
    let server = Server::start(|visitor| behaviours::answer(visitor, OK)).await;
    let transport = transport(Options { idle_timeout: Duration::from_millis(50), ..Options::default() });
    call(server.url("/")).over(&transport).await.unwrap();
    server.wait_for(|counts| counts.open == 0).await;
    call(server.url("/")).over(&transport).await.unwrap();
    assert_eq!(server.counts().accepted, 2);
}

#[tokio::test]
async fn no_more_unused_connections_than_allowed_are_kept() {
    let (server, gate) = gated().await;
    let transport = transport(Options { max_idle_per_origin: 2, ..Options::default() });
    let calls = join_all((0..5).map(|_| call(server.url("/")).over(&transport)));
    let open_the_gate = async {
        server.wait_for(|counts| counts.requests == 5).await;
        gate.add_permits(5);
    };
    tokio::join!(calls, open_the_gate);
    server.wait_for(|counts| counts.open == 2).await;
}

#[tokio::test]
async fn those_used_least_recently_are_closed_when_too_many_are_kept_in_all() {
    let server = Server::start(|visitor| behaviours::answer(visitor, OK)).await;
    let transport = transport(Options { max_idle: 8, ..Options::default() });
    let tenant = |number| call(server.url("/")).tenant(&format!("tenant-{number}"));
    for number in 0..9 {
        tenant(number).over(&transport).await.unwrap();
    }
    // The ninth was one too many, so a quarter was closed: three of nine.
    server.wait_for(|counts| counts.open == 6).await;
    for (number, accepted) in [(8, 9), (3, 9), (2, 10)] {
        tenant(number).over(&transport).await.unwrap();
        assert_eq!(server.counts().accepted, accepted, "tenant {number}");
    }
}

#[tokio::test]
async fn dropping_the_transport_closes_its_connections() {
    let (server, gate) = gated().await;
    let transport = transport(Options::default());
    gate.add_permits(1);
    call(server.url("/")).over(&transport).await.unwrap();
    let under_way = tokio::spawn(transport.send(call(server.url("/")).lane("other").outbound));
    server.wait_for(|counts| counts.requests == 2).await;
    drop(transport);
    server.wait_for(|counts| counts.open == 1).await;
    // The call under way may end, but its connection is not kept.
    gate.add_permits(1);
    assert_eq!(under_way.await.unwrap().unwrap().status, 200);
    server.wait_for(|counts| counts.open == 0).await;
}

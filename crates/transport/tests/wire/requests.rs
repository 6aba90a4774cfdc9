//! What a request looks like on the wire.

use redrive_transport::Options;

use crate::call::{call, transport};
use crate::support::behaviours::OK;
use crate::support::{Request, Server, behaviours};

async fn sent(calls: impl FnOnce(&Server) -> Vec<crate::call::Call>) -> Vec<Request> {
    let server = Server::start(|visitor| behaviours::answer(visitor, OK)).await;
    let transport = transport(Options::default());
    for call in calls(&server) {
        call.over(&transport).await.unwrap();
    }
    server.requests()
}

#[tokio::test]
async fn every_attempt_carries_the_same_key_and_task_and_its_own_number() {
    let mut expected = Vec::new();
    let requests = sent(|server| {
        let call = call(server.url("/")).header("idempotency-key", "another").header("redrive-attempt", "9");
        expected = vec![call.key(), call.outbound.task.to_string()];
        (1..=3).map(|number| call.clone().attempt(number)).collect()
    })
    .await;
    assert_eq!(requests.len(), 3);
    for (request, number) in requests.iter().zip(["1", "2", "3"]) {
        assert_eq!(request.one("idempotency-key"), Some(expected[0].as_str()));
        assert_eq!(request.one("redrive-task-id"), Some(expected[1].as_str()));
        assert_eq!(request.one("redrive-attempt"), Some(number));
        assert_eq!(request.body, requests[0].body);
    }
}

#[tokio::test]
async fn any_method_is_sent_as_given() {
    let methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE", "M-SEARCH", "get", "!#$%&'*+-.^_`|~"];
    let requests = sent(|server| methods.iter().map(|method| call(server.url("/")).method(method)).collect()).await;
    assert_eq!(requests.iter().map(|request| request.method.as_str()).collect::<Vec<_>>(), methods);
}

#[tokio::test]
async fn path_and_query_are_sent_as_given() {
    let paths = ["/", "/a/../b//c/", "/%7Euser/%c3%a4", "/?", "/a?b=c&d=%20+&&e", "/{x}|'\"?{y}|'`", "/;p=1,2@3:4"];
    let requests = sent(|server| paths.iter().map(|path| call(server.url(path))).collect()).await;
    assert_eq!(requests.iter().map(|request| request.target.as_str()).collect::<Vec<_>>(), paths);
    let requests = sent(|server| ["", "#part", "?q#part"].map(|path| call(server.url(path))).into()).await;
    assert_eq!(requests.iter().map(|request| request.target.as_str()).collect::<Vec<_>>(), ["/", "/", "/?q"]);
}

#[tokio::test]
async fn any_bytes_and_a_large_body_arrive_as_given() {
    let every_byte: Vec<u8> = (0..=255).collect();
    let large: Vec<u8> = every_byte.iter().copied().cycle().take(1024 * 1024).collect();
    let bodies = [Vec::new(), every_byte, large];
    let requests = sent(|server| bodies.iter().map(|body| call(server.url("/")).body(body.clone())).collect()).await;
    for (request, body) in requests.iter().zip(&bodies) {
        assert_eq!(request.one("content-length"), Some(body.len().to_string().as_str()));
        assert!(request.one("transfer-encoding").is_none());
        assert!(request.body == *body, "{} bytes differ", body.len());
    }
}

#[tokio::test]
async fn headers_arrive_in_order_and_more_than_once() {
    let requests = sent(|server| {
        let call = call(server.url("/")).header("x-a", "1").header("x-b", "").header("x-a", "2");
        vec![call.header("x-c", "caf\u{e9} \t tab").header("x-a", "1")]
    })
    .await;
    assert_eq!(requests[0].all("x-a"), ["1", "2", "1"]);
    assert_eq!(requests[0].one("x-b"), Some(""));
    assert_eq!(requests[0].one("x-c"), Some("caf\u{e9} \t tab"));
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(requests[0].one("user-agent"), Some(format!("redrive/{version}").as_str()));
    for absent in ["accept", "accept-encoding", "connection", "te"] {
        assert_eq!(requests[0].one(absent), None);
    }
}

#[tokio::test]
async fn a_get_without_a_body_says_nothing_about_its_length() {
    let requests = sent(|server| vec![call(server.url("/")).method("GET").body("")]).await;
    assert_eq!(requests[0].one("content-length"), None);
}

#[tokio::test]
async fn the_host_is_the_urls_unless_given() {
    let mut address = String::new();
    let requests = sent(|server| {
        address = server.address().to_string();
        vec![call(server.url("/")), call(server.url("/")).header("Host", "other.test")]
    })
    .await;
    assert_eq!(requests[0].headers[0], ("host".to_owned(), address));
    assert_eq!(requests[1].one("host"), Some("other.test"));
}

#[tokio::test]
async fn user_and_password_are_sent_as_authorization_and_nowhere_else() {
    let requests = sent(|server| vec![call(server.url("/").replace("http://", "http://user:pass%20word@"))]).await;
    assert_eq!(requests[0].one("authorization"), Some("Basic dXNlcjpwYXNzIHdvcmQ="));
    assert!(!format!("{:?}", requests[0].headers).contains('@'));
}

#[tokio::test]
async fn an_ipv6_address_is_called() {
    let server = Server::start_on("[::1]:0", |visitor| behaviours::answer(visitor, OK)).await;
    call(server.url("/")).over(&transport(Options::default())).await.unwrap();
    assert_eq!(server.requests()[0].one("host"), Some(server.address().to_string().as_str()));
}

#[tokio::test]
async fn a_name_is_resolved() {
    let server = Server::start(|visitor| behaviours::answer(visitor, OK)).await;
    let url = format!("http://localhost:{}/", server.address().port());
    assert_eq!(call(url).over(&transport(Options::default())).await.unwrap().status, 200);
}

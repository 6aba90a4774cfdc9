//! The trace of a caller: taken over from the request, and no part of what is compared.

use serde_json::json;

use crate::world::{Ask, World};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const OTHER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn document(key: &str, headers: &str) -> String {
    format!(r#"{{"targetUrl":"https://example.com/","idempotencyKey":"{key}","headers":{{{headers}}}}}"#)
}

fn traced(path: &str, document: &str, parent: &str) -> Ask {
    let mut ask = Ask::post(path, document).header("traceparent", parent).header("baggage", "user=7");
    ask.headers.extend(["a=1", "b=2"].map(|state| ("tracestate".to_owned(), state.to_owned())));
    ask
}

#[tokio::test]
async fn a_task_continues_the_trace_of_its_document_or_else_of_its_request() {
    let world = World::start().await;
    let explicit = format!(r#""TraceParent":"{CALLER}""#);
    let submissions = [
        (traced("/retry-tasks", &document("request", ""), CALLER), Some(TRACE), true),
        (traced("/retry-tasks", &document("document", &explicit), OTHER), Some(TRACE), false),
        (traced("/retry-tasks", &document("malformed", r#""traceparent":"00-1""#), CALLER), None, false),
        (traced("/retry-tasks", &document("upper", ""), &CALLER.to_uppercase()), None, false),
        (Ask::post("/retry-tasks", &document("none", "")), None, false),
    ];
    for (number, (ask, trace, keeps_state)) in submissions.into_iter().enumerate() {
        let answer = world.ask(ask.clone()).await;
        assert_eq!(answer.status, 201, "{ask:?}: {}", answer.text());
        let own = answer.json()["taskId"].as_str().unwrap().replace('-', "");
        let sent = world.target.sends(number + 1).await.pop().unwrap();
        let context = sent.trace.unwrap();
        assert_eq!(context.parent.trace.to_string(), trace.unwrap_or(&own), "{ask:?}");
        assert_eq!(context.keeps_state, trace.is_some());
        let states = sent.request.headers.iter().filter(|(name, _)| name == "tracestate");
        let states: Vec<&str> = states.map(|(_, value)| value.as_str()).collect();
        assert_eq!(states, if keeps_state { vec!["a=1,b=2"] } else { vec![] }, "{ask:?}");
    }
}

#[tokio::test]
async fn every_task_of_a_batch_continues_the_trace_of_the_request() {
    let world = World::start().await;
    let batch = format!(r#"{{"tasks":[{},{}]}}"#, document("1", ""), document("2", r#""x":"y""#));
    assert_eq!(world.ask(traced("/retry-tasks/batch", &batch, CALLER)).await.status, 200);
    let sends = world.target.sends(2).await;
    for sent in &sends {
        assert_eq!(sent.trace.unwrap().parent.trace.to_string(), TRACE);
        assert!(sent.request.headers.contains(&("baggage".to_owned(), "user=7".to_owned())));
    }
    assert_ne!(sends[0].trace, sends[1].trace, "each attempt has its own span");
}

#[tokio::test]
async fn the_trace_of_a_request_does_not_make_another_request() {
    let world = World::start().await;
    let plain = document("k", r#""x":"y""#);
    let first = world.ask(traced("/retry-tasks", &plain, CALLER)).await;
    assert_eq!(first.status, 201, "{}", first.text());
    let id = first.json()["taskId"].clone();
    // What was adopted is shown at once, and later.
    assert_eq!(first.json()["headers"], json!({ "x": "y", "tracestate": "a=1,b=2", "baggage": "user=7" }));
    let with_other_baggage = document("k", r#""x":"y","baggage":"user=8""#);
    for (ask, ignored) in [
        (traced("/retry-tasks", &plain, OTHER), None),
        (Ask::post("/retry-tasks", &plain), None),
        (Ask::post("/retry-tasks", &with_other_baggage), Some(json!(["baggage"]))),
    ] {
        let again = world.ask(ask.clone()).await;
        assert_eq!((again.status, &again.json()["taskId"]), (200, &id), "{ask:?}");
        assert_eq!(again.json().get("ignoredHeaders").cloned(), ignored, "{ask:?}");
        assert_eq!(again.json()["headers"], first.json()["headers"]);
    }
}

//! Dependencies: what holds their tasks back, and how operators control it.

use std::time::Duration;

use redrive_core::ErrorType;
use serde_json::{Value, json};

use crate::world::{Ask, Plan, World};

const START: u64 = 1_700_000_000_000;
const PATH: &str = "/dependencies/https%3A%2F%2Fexample.com";

impl World {
    /// Calls a POST route that takes no document.
    async fn post_nothing(&self, path: &str) -> crate::world::Answer {
        self.ask(Ask::new("POST", path)).await
    }

    /// Submits ten tasks, a second apart, whose first attempts fail: the breaker opens with the last one. Returns the
    /// first one, which is due 20 s after the start.
    async fn ten_failures(&self) -> String {
        let document = r#"{"targetUrl":"https://example.com/","policy":{"jitterType":"NONE","initialDelayMs":20000}}"#;
        let mut ids = Vec::new();
        for number in 1..=10 {
            self.target.plan(Plan::Fail(ErrorType::ConnectionRefused));
            ids.push(self.submit(document).await);
            self.target.sends(number).await;
            self.until(&ids[number - 1], |task| task["status"] == "PENDING").await;
            // A slot rests for a moment after a failure.
            self.clock.advance(Duration::from_secs(1));
        }
        ids.remove(0)
    }
}

#[tokio::test]
async fn a_dependency_that_was_called_is_shown_with_all_of_its_guards() {
    let world = World::start().await;
    let id = world.submit(r#"{"targetUrl":"https://example.com/"}"#).await;
    world.ended(&id).await;
    let dependency = world.get(PATH).await;
    assert_eq!(dependency.status, 200, "{}", dependency.text());
    let expected = json!({
        "dependency": "https://example.com",
        "state": "ok",
        "why": "Nothing is held back.",
        "waitingFor": null,
        "waitingUntil": null,
        "breaker": { "state": "closed", "openUntil": null, "reason": null },
        "budget": {
            "firstAttempts": 1, "retries": 0, "refunded": 0, "left": 10, "utilization": 0.0, "windowMs": 30_000
        },
        "healthy": false,
        "recentOutcomes": { "count": 1, "failures": 0 },
        "concurrency": { "limit": 20, "inFlight": 0 },
        "totals": { "attempts": 1, "failures": 0 },
        "latencyMs": { "p50": 0.0, "p95": 0.0, "p99": 0.0, "calls": 1 },
        "firstAttemptDueAt": null,
        "retryDueAt": null,
        "failingSince": null,
        "backlog": { "due": 0, "waiting": 0, "countedUpTo": 100_000 },
        "controls": { "pause": null, "open": null, "limits": null },
    });
    assert_eq!(dependency.json(), expected);
    let mut listed = expected;
    listed["backlog"]["countedUpTo"] = json!(1_000);
    assert_eq!(world.get("/dependencies").await.json(), json!({ "dependencies": [listed], "nextCursor": null }));
}

#[tokio::test]
async fn a_dependency_has_a_backlog_of_due_and_of_waiting_tasks_and_so_has_each_one_of_a_list() {
    let world = World::start().await;
    world.ten_failures().await;
    let backlog = |due: u32, waiting: u32, most: u32| json!({ "due": due, "waiting": waiting, "countedUpTo": most });
    assert_eq!(world.get(PATH).await.json()["backlog"], backlog(0, 10, 100_000));
    // The breaker is open, so those that become due stay.
    world.clock.advance(Duration::from_secs(13));
    assert_eq!(world.get(PATH).await.json()["backlog"], backlog(4, 6, 100_000));
    let paused = world.post_nothing("/dependencies/a/pause").await.json();
    assert_eq!(paused.get("backlog"), None, "a change does not count");
    let list = world.get("/dependencies").await.json();
    let shown =
        |at: usize| (list["dependencies"][at]["dependency"].clone(), list["dependencies"][at]["backlog"].clone());
    assert_eq!(shown(0), (json!("a"), backlog(0, 0, 1_000)));
    assert_eq!(shown(1), (json!("https://example.com"), backlog(4, 6, 1_000)));
}

#[tokio::test]
async fn a_list_counts_up_to_a_thousand_tasks_of_each_dependency() {
    let world = World::start().await;
    world.post_nothing("/dependencies/a/pause").await;
    for _ in 0..11 {
        let task = r#"{"targetUrl":"https://example.com/","dependency":"a"}"#;
        let batch = format!(r#"{{"tasks":[{}]}}"#, [task; 100].join(","));
        assert_eq!(world.post("/retry-tasks/batch", &batch).await.status, 200);
    }
    let listed = &world.get("/dependencies").await.json()["dependencies"][0]["backlog"];
    assert_eq!(*listed, json!({ "due": 1_000, "waiting": 0, "countedUpTo": 1_000 }));
    let one = &world.get("/dependencies/a").await.json()["backlog"];
    assert_eq!(*one, json!({ "due": 1_100, "waiting": 0, "countedUpTo": 100_000 }));
}

#[tokio::test]
async fn the_guards_are_shown_without_a_backlog_while_the_store_does_not_answer() {
    let world = World::start().await;
    world.post_nothing("/dependencies/a/pause").await;
    world.engine.store().close().await;
    for shown in [world.get("/dependencies/a").await, world.get("/dependencies").await] {
        assert_eq!(shown.status, 200, "{}", shown.text());
        let document = shown.json();
        let shown = document["dependencies"].get(0).unwrap_or(&document);
        assert_eq!((&shown["state"], shown.get("backlog")), (&json!("paused"), None));
    }
}

#[tokio::test]
async fn a_breaker_that_opened_is_shown_with_its_reason_and_so_is_a_task_that_waits_for_it() {
    let world = World::start().await;
    let id = world.ten_failures().await;
    let dependency = world.get(PATH).await.json();
    let until = START + 9_000 + 15_000;
    assert_eq!((&dependency["state"], &dependency["waitingFor"]), (&json!("open"), &json!("breaker")));
    assert_eq!(dependency["waitingUntil"], until);
    let breaker = json!({ "state": "open", "openUntil": until, "reason": "failuresInARow" });
    assert_eq!(dependency["breaker"], breaker);
    assert_eq!(
        dependency["why"],
        "The circuit breaker is open because too many calls in a row failed. Nothing is sent until it probes the \
         dependency."
    );
    assert_eq!(dependency["totals"], json!({ "attempts": 10, "failures": 10 }));
    assert_eq!(dependency["recentOutcomes"], json!({ "count": 10, "failures": 10 }));

    let path = format!("/retry-tasks/{id}");
    let waits = |task: &Value| (task["waitingFor"].clone(), task["waitingUntil"].clone());
    assert_eq!(waits(&world.get(&path).await.json()), (json!("backoff"), json!(START + 20_000)));
    world.clock.advance(Duration::from_secs(10));
    assert_eq!(waits(&world.get(&path).await.json()), (json!("breaker"), json!(until)));
    let list = world.get("/retry-tasks").await.json();
    assert_eq!(waits(&list["tasks"][9]), (json!("breaker"), json!(until)));
    assert_eq!(waits(&list["tasks"][0]), (json!("backoff"), json!(START + 29_000)));

    let closed = world.post_nothing(&format!("{PATH}/close")).await.json();
    assert_eq!(closed["breaker"]["state"], "closed");
    assert_eq!(world.ended(&id).await.get("waitingFor"), None);
}

#[tokio::test]
async fn a_paused_dependency_sends_nothing_until_it_is_resumed() {
    let world = World::start().await;
    let paused = world.post(&format!("{PATH}/pause"), r#"{"reason":" moving house. "}"#).await;
    assert_eq!(paused.status, 200, "{}", paused.text());
    let paused = paused.json();
    assert_eq!(paused["state"], "paused");
    assert_eq!(paused["why"], "Paused by local: moving house. Nothing is sent until it is resumed.");
    assert_eq!(paused["controls"]["pause"], json!({ "at": START, "by": "local", "reason": "moving house." }));

    let id = world.submit(r#"{"targetUrl":"https://example.com/"}"#).await;
    let task = world.get(&format!("/retry-tasks/{id}")).await.json();
    assert_eq!((&task["status"], &task["waitingFor"]), (&json!("PENDING"), &json!("pause")));
    assert_eq!(task.get("waitingUntil"), None);
    assert_eq!(world.target.sent(), 0);

    let resumed = world.post_nothing(&format!("{PATH}/resume")).await.json();
    assert_eq!((&resumed["controls"]["pause"], resumed["state"] == "paused"), (&json!(null), false));
    assert_eq!(world.ended(&id).await["status"], "SUCCEEDED");
}

#[tokio::test]
async fn a_breaker_is_held_open_for_a_time_until_a_time_or_until_it_is_closed() {
    let world = World::start().await;
    let path = format!("{PATH}/open");
    for (document, until) in [
        (r#"{"forMs":60000}"#, json!(START + 60_000)),
        (r#"{"untilMs":1700000005000}"#, json!(START + 5_000)),
        ("{}", json!(null)),
    ] {
        let open = world.post(&path, document).await.json();
        let breaker = json!({ "state": "open", "openUntil": until, "reason": "operator" });
        assert_eq!((&open["state"], &open["breaker"]), (&json!("open"), &breaker), "{document}");
        let held = json!({ "at": START, "by": "local", "reason": null, "until": until });
        assert_eq!((&open["controls"]["open"], &open["waitingUntil"]), (&held, &until), "{document}");
    }
    let open = world.post_nothing(&path).await.json();
    assert_eq!(
        open["why"],
        "The circuit breaker is open because it was opened by local. Nothing is sent until it is closed."
    );
    for end in ["close", "reset"] {
        world.post_nothing(&path).await;
        let closed = world.post_nothing(&format!("{PATH}/{end}")).await.json();
        assert_eq!((&closed["state"], &closed["controls"]["open"]), (&json!("ok"), &json!(null)), "{end}");
    }
    // A time that is over is not shown as held open.
    world.post(&path, r#"{"forMs":1000}"#).await;
    world.clock.advance(Duration::from_secs(1));
    let probing = world.get(PATH).await.json();
    assert_eq!((&probing["state"], &probing["controls"]["open"]), (&json!("probing"), &json!(null)));
}

#[tokio::test]
async fn tasks_wait_for_the_breaker_while_its_probes_are_under_way() {
    let world = World::start().await;
    world.post(&format!("{PATH}/open"), r#"{"forMs":1000}"#).await;
    let probes = [(); 3].map(|()| world.target.hold());
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(world.submit(r#"{"targetUrl":"https://example.com/"}"#).await);
    }
    world.clock.advance(Duration::from_secs(1));
    world.target.sends(1).await;
    world.until(&ids[4], |task| task["waitingFor"] == "breaker" && task.get("waitingUntil").is_none()).await;
    let probing = world.get(PATH).await.json();
    assert_eq!((&probing["state"], &probing["waitingFor"]), (&json!("probing"), &json!("breaker")));
    // They are answered 200.
    drop(probes);
    for id in ids {
        assert_eq!(world.ended(&id).await["status"], "SUCCEEDED");
    }
    assert_eq!(world.get(PATH).await.json()["breaker"]["state"], "closed");
}

#[tokio::test]
async fn limits_are_set_replaced_and_removed() {
    let world = World::start().await;
    let path = format!("{PATH}/limits");
    for (document, concurrency, least, most, limit) in [
        (r#"{"concurrency":5,"reason":"small box"}"#, json!(5), json!(null), json!(null), 5),
        (r#"{"minConcurrency":2,"maxConcurrency":7}"#, json!(null), json!(2), json!(7), 5),
        (r#"{"minConcurrency":30}"#, json!(null), json!(30), json!(null), 30),
        (r#"{"concurrency":100000}"#, json!(100_000), json!(null), json!(null), 128),
    ] {
        let limited = world.ask(Ask::json("PUT", &path, document)).await;
        assert_eq!(limited.status, 200, "{document}: {}", limited.text());
        let limited = limited.json();
        let shown = &limited["controls"]["limits"];
        assert_eq!((&shown["concurrency"], &shown["at"], &shown["by"]), (&concurrency, &json!(START), &json!("local")));
        assert_eq!((&shown["minConcurrency"], &shown["maxConcurrency"]), (&least, &most), "{document}");
        assert_eq!(limited["concurrency"]["limit"], limit, "{document}");
    }
    let removed = world.ask(Ask::json("PUT", &path, "{}")).await.json();
    assert_eq!(removed["controls"], json!({ "pause": null, "open": null, "limits": null }));
}

#[tokio::test]
async fn what_is_invalid_is_refused_with_its_field() {
    let world = World::start().await;
    let long = format!(r#"{{"reason":"{}"}}"#, "r".repeat(301));
    for (method, action, document, field) in [
        ("PUT", "limits", r#"{"concurrency":0}"#, "concurrency"),
        ("PUT", "limits", r#"{"concurrency":100001}"#, "concurrency"),
        ("PUT", "limits", r#"{"concurrency":3,"maxConcurrency":4}"#, "concurrency"),
        ("PUT", "limits", r#"{"minConcurrency":5,"maxConcurrency":4}"#, "minConcurrency"),
        ("POST", "open", r#"{"forMs":0}"#, "forMs"),
        ("POST", "open", r#"{"forMs":2592000001}"#, "forMs"),
        ("POST", "open", r#"{"untilMs":1700000000000}"#, "untilMs"),
        ("POST", "open", r#"{"untilMs":1702592000001}"#, "untilMs"),
        ("POST", "open", r#"{"untilMs":1700000001000,"forMs":5}"#, "forMs"),
        ("POST", "pause", &long, "reason"),
        ("POST", "pause", r#"{"reason":"a\nb"}"#, "reason"),
    ] {
        let answer = world.ask(Ask::json(method, &format!("{PATH}/{action}"), document)).await;
        assert_eq!(answer.problem(422, "invalid-value")["field"], field, "{document}");
    }
    let unknown = world.post(&format!("{PATH}/pause"), r#"{"because":"x"}"#).await;
    assert_eq!(unknown.problem(400, "invalid-document")["field"], "because");
    world.get("/dependencies/a%20b").await.problem(400, "invalid-parameter");
    world.get(PATH).await.problem(404, "dependency-not-found");
}

#[tokio::test]
async fn a_dependency_that_this_node_knows_nothing_of_is_not_found() {
    let world = World::start().await;
    let detail = world.get(PATH).await.problem(404, "dependency-not-found")["detail"].clone();
    assert!(detail.as_str().unwrap().contains("\"https://example.com\""), "{detail}");
    for action in ["resume", "close", "reset"] {
        world.post_nothing(&format!("{PATH}/{action}")).await.problem(404, "dependency-not-found");
    }
    world.ask(Ask::json("PUT", &format!("{PATH}/limits"), "{}")).await.problem(404, "dependency-not-found");
    assert_eq!(world.get("/dependencies").await.json(), json!({ "dependencies": [], "nextCursor": null }));
}

#[tokio::test]
async fn dependencies_come_in_pages_by_name() {
    let world = World::start().await;
    for name in ["c", "a", "e", "b", "d"] {
        world.post_nothing(&format!("/dependencies/{name}/pause")).await;
    }
    let (mut names, mut query) = (Vec::new(), String::from("limit=2"));
    loop {
        let page = world.get(&format!("/dependencies?{query}")).await.json();
        let items = page["dependencies"].as_array().unwrap();
        names.push(items.iter().map(|item| item["dependency"].as_str().unwrap()).collect::<String>());
        match page["nextCursor"].as_str() {
            Some(cursor) => query = format!("limit=2&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(names, ["ab", "cd", "e"]);
}

#[tokio::test]
async fn a_caller_that_waits_is_refused_before_anything_is_stored_while_the_breaker_is_open() {
    let world = World::start().await;
    world.ten_failures().await;
    let document = |context: &str| {
        format!(
            r#"{{"targetUrl":"https://example.com/","idempotencyKey":"waits-{context}","policy":{{"context":"{context}"}}}}"#
        )
    };
    let submit = |context: &str, prefer: &str| {
        let ask = Ask::json("POST", "/retry-tasks", &document(context));
        if prefer.is_empty() { ask } else { ask.header("prefer", prefer) }
    };
    let refused = world.ask(submit("sync", "wait=10")).await;
    refused.problem(503, "dependency-unavailable");
    assert_eq!(refused.header("retry-after"), Some("14"));
    let counts = world.get("/retry-tasks").await.json();
    assert_eq!(counts["tasks"].as_array().unwrap().len(), 10, "nothing was stored");
    assert_eq!(world.ask(submit("sync", "")).await.status, 201, "its key was not used up, and it does not wait");
    assert_eq!(world.ask(submit("event", "")).await.status, 201, "durable work is accepted");
}

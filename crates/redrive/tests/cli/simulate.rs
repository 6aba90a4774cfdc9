//! `redrive simulate`.

use std::fs;

use serde_json::{Value, json};

use super::world::{Ended, Program, redrive};

fn simulate(words: &[&str]) -> Ended {
    let directory = tempfile::tempdir().unwrap();
    let words: Vec<&str> = ["simulate"].iter().chain(words).copied().collect();
    Program::start(redrive(directory.path(), &words)).end()
}

/// The contender of this name.
fn contender<'a>(document: &'a Value, name: &str) -> &'a Value {
    let contenders = document["contenders"].as_array().unwrap();
    contenders.iter().find(|contender| contender["name"] == name).unwrap()
}

#[test]
fn without_any_words_it_shows_what_jitter_and_guards_are_worth() {
    let shown = simulate(&[]).with(0).says(&[
        "10,000 requests at once; 500 calls/s, queue 500, latency 50ms (p99 400ms); down 0s..5s (refuse); seed 1",
        "peak after the outage     10,000 at 5s",
        "dead letters",
        "with guards  attempts/s, 1s per column",
        "━━━━━─────",
    ]);
    let too_wide: Vec<_> = shown.stdout.lines().filter(|line| line.chars().count() > 110).collect();
    assert!(too_wide.is_empty() && !shown.stdout.contains('\x1b'), "{too_wide:?}");
    assert_eq!(shown.stderr, "", "no bar where nobody watches");
}

#[test]
fn the_same_seed_shows_the_same_and_another_seed_something_else() {
    let shown = |seed| simulate(&["--clients", "500", "--seed", seed, "--json"]).with(0).stdout;
    assert_eq!(shown("7"), shown("7"));
    assert_ne!(shown("7"), shown("8"));
}

#[test]
fn programs_get_the_world_the_policies_and_every_number() {
    let document = simulate(&[
        "naive:backoff=fixed,initialDelayMs=200,jitterType=NONE",
        "sync+budget",
        "default,maxAttempts=9+breaker+concurrency=20",
        "--clients",
        "2000",
        "--over",
        "20s",
        "--capacity",
        "400/s",
        "--queue",
        "50",
        "--latency",
        "20ms",
        "--outage",
        "5s..9s:fail",
        "--outage",
        "12s..13s:hang",
        "--retry-after",
        "2s",
        "--seed",
        "3",
        "--json",
    ])
    .with(0)
    .json();
    let world = json!({
        "clients": 2000,
        "overMs": 20000,
        "capacity": 400,
        "queue": 50,
        "latency": {"constantMs": 20},
        "outages": [
            {"fromMs": 5000, "toMs": 9000, "manner": "fail"},
            {"fromMs": 12000, "toMs": 13000, "manner": "hang"},
        ],
        "retryAfterMs": 2000,
    });
    assert_eq!((&document["scenario"], &document["seed"], &document["world"]), (&json!("outage"), &json!(3), &world));
    let naive = contender(&document, "naive");
    assert_eq!(naive["policy"]["initialDelayMs"], 200);
    assert_eq!(naive["guards"], json!({"budget": false, "breaker": false, "concurrency": null}));
    let sync = contender(&document, "sync+budget");
    assert_eq!((&sync["policy"]["context"], &sync["policy"]["maxAttempts"]), (&json!("sync"), &json!(4)));
    let guarded = contender(&document, "default,maxAttempts=9+breaker+concurrency=20");
    assert_eq!(guarded["guards"], json!({"budget": false, "breaker": true, "concurrency": 20}));
    for story in document["contenders"].as_array().unwrap() {
        let totals = &story["totals"];
        let count = |name: &str| totals[name].as_u64().unwrap();
        let ended = count("succeeded") + count("deadLetters") + count("suppressed") + count("turnedAway");
        assert_eq!(ended, 2000, "{story}");
        let sends = story["buckets"]["sends"].as_array().unwrap().iter().filter_map(Value::as_u64).sum::<u64>();
        assert_eq!(sends + story["later"]["sends"].as_u64().unwrap(), count("calls"), "{story}");
        assert_eq!(story["completionPercentilesMs"].as_array().unwrap().len(), 101, "{story}");
    }
}

#[test]
fn guards_can_be_given_to_everybody() {
    let words = ["default", "sync+concurrency=5", "--budget", "--breaker", "--concurrency", "9", "--json"];
    let document = simulate(&words).with(0).json();
    let guards: Vec<_> = document["contenders"].as_array().unwrap().iter().map(|story| &story["guards"]).collect();
    assert_eq!(guards[0], &json!({"budget": true, "breaker": true, "concurrency": 9}));
    assert_eq!(guards[1], &json!({"budget": true, "breaker": true, "concurrency": 5}), "its own limit stays");
}

#[test]
fn policies_of_a_file_can_be_named() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("p.toml"), "[policies.payments]\ncontext = \"sync\"\nmaxAttempts = 2\n").unwrap();
    let run = |words: &[&str]| Program::start(redrive(directory.path(), words)).end();
    let document = run(&["simulate", "payments", "webhook", "--file", "p.toml", "--json"]).with(0).json();
    assert_eq!(contender(&document, "payments")["policy"]["maxAttempts"], 2);
    assert_eq!(contender(&document, "webhook")["policy"]["context"], "webhook");
    run(&["simulate", "paymnts", "--file", "p.toml"]).with(2).says(&["no policy \"paymnts\"", "grpc, payments"]);
    run(&["simulate", "payments", "--file", "q.toml"]).with(2).says(&["q.toml: the file cannot be read"]);
}

#[test]
fn what_cannot_be_simulated_is_wrong_usage_and_says_why() {
    for (words, why) in [
        (&["snyc"][..], "contender \"snyc\": there is no policy \"snyc\"; there are default, sync, event, webhook"),
        (&["default+speed"], "there is no guard \"speed\""),
        (&["default,maxAttempts=0"], "maxAttempts must be"),
        (&["default", "default"], "two contenders are called \"default\""),
        (
            &["a:default", "b:sync", "c:sync", "d:sync", "e:sync", "f:sync", "g:sync", "h:sync", "i:sync"],
            "1 to 8, got 9",
        ),
        (&["--clients", "0"], "the number of clients must be 1 to 10000000, got 0"),
        (&["--clients", "many"], "invalid value 'many'"),
        (&["--capacity", "5/m"], "must be a number of calls per second"),
        (&["--latency", "400ms,50ms"], "99th percentile must be at least its median"),
        (&["--outage", "9s..3s"], "an outage must end after it begins, got 9s to 3s"),
        (&["--outage", "1s..3s", "--outage", "2s..4s"], "outages must be apart from each other"),
        (&["--outage", "1s..3s:burn"], "must be refuse, hang or fail"),
        (&["--concurrency", "0"], "invalid value '0'"),
        (&["--scenario", "chaos"], "possible values: outage, occ"),
        (&["--scenario", "occ", "sync"], "--scenario occ has its own contenders"),
        (&["--scenario", "occ", "--breaker"], "--breaker has no meaning with --scenario occ"),
        (&["--runs", "5"], "--runs has no meaning but with --scenario occ"),
        (&["--scenario", "occ", "--clients", "1001"], "the number of clients must be 1 to 1000, got 1001"),
        (&["--scenario", "occ", "--runs", "0"], "the number of runs must be 1 to 100000, got 0"),
    ] {
        simulate(words).with(2).says(&[why]);
    }
}

#[test]
fn a_dependency_that_is_never_down_has_no_figures_of_an_outage() {
    let shown = simulate(&["default", "--outage", "none", "--clients", "100"]).with(0).says(&["never down"]);
    for absent in ["after the outage", "while it was down", "━"] {
        assert!(!shown.stdout.contains(absent), "{absent:?} in\n{}", shown.stdout);
    }
}

#[test]
fn contention_is_shown_for_every_strategy() {
    let words = ["--scenario", "occ", "--clients", "20", "--runs", "30"];
    simulate(&words).with(0).says(&[
        "means of 30 runs",
        "decorrelated",
        "calls, 20 clients",
        "milliseconds, 20 clients",
    ]);
    let document = simulate(&[&words[..], &["--json"]].concat()).with(0).json();
    let points = document["points"].as_array().unwrap();
    let calls = |strategy: &str| {
        let point = points.iter().find(|point| point["strategy"] == strategy).unwrap();
        point["calls"]["mean"].as_f64().unwrap()
    };
    assert_eq!(points.len(), 5);
    assert!(calls("none") > 1.5 * calls("full"), "{points:?}");
}

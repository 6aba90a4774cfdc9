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

/// The guards of a contender as programs get them.
fn guards(drain: Option<&str>, breaker: bool, most: Option<u32>, adapts: bool) -> Value {
    json!({
        "budget": drain.is_some(),
        "budgetDrain": drain,
        "breaker": breaker,
        "concurrency": most,
        "concurrencyAdapts": adapts,
    })
}

#[test]
fn without_any_words_it_shows_what_jitter_and_guards_are_worth() {
    let shown = simulate(&[]).with(0).says(&[
        "10,000 requests at once; 500 calls/s, queue 500, latency 50ms (p99 400ms); down 0s..5s (refuse); seed 1",
        "  with guards  default+budget+breaker+concurrency",
        "peak after recovery          10,000 at 5s",
        "times: the contenders complete different numbers of requests",
        "dead letters",
        "with guards  attempts/s, 1s per column",
        "━━━━━─────",
    ]);
    let too_wide: Vec<_> = shown.stdout.lines().filter(|line| line.chars().count() > 110).collect();
    assert!(too_wide.is_empty() && !shown.stdout.contains('\x1b'), "{too_wide:?}");
    assert_eq!(shown.stderr, "", "no progress bar without a terminal");
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
    assert_eq!(naive["guards"], guards(None, false, None, false));
    let sync = contender(&document, "sync+budget");
    assert_eq!((&sync["policy"]["context"], &sync["policy"]["maxAttempts"]), (&json!("sync"), &json!(4)));
    let guarded = contender(&document, "default,maxAttempts=9+breaker+concurrency=20");
    assert_eq!(guarded["guards"], guards(None, true, Some(20), false));
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
    let words = [
        "default",
        "sync+concurrency=5",
        "default+budget=strict+concurrency",
        "--budget",
        "--breaker",
        "--concurrency",
        "9",
        "--json",
    ];
    let document = simulate(&words).with(0).json();
    let guards: Vec<_> = document["contenders"].as_array().unwrap().iter().map(|story| &story["guards"]).collect();
    assert_eq!(guards[0], &self::guards(Some("earned"), true, Some(9), false));
    assert_eq!(guards[1], &self::guards(Some("earned"), true, Some(5), false), "its own limit stays");
    assert_eq!(guards[2], &self::guards(Some("strict"), true, Some(200), true), "its own limit and budget stay");
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
        (&["--outage", "none", "--outage", "1s..3s"], "--outage none says that it is never down"),
        (&["--until", "0s"], "must be above 0s"),
        (&["--until", "8d"], "the end of the charts must be at most 7d, got 8d"),
        (&["--over", "8d"], "must be at most 7d, got 8d"),
        (&["default,maxAttemps=3"], "did you mean maxAttempts?"),
        (&["--json", "--out", "-"], "both want standard output"),
        (
            &["--out", "nowhere/page.html"],
            "cannot write the report to nowhere/page.html: there is no directory nowhere",
        ),
        (&["--out", "."], "cannot write the report to .: it is a directory"),
        (&["--concurrency", "0"], "invalid value '0'"),
        (&["--scenario", "chaos"], "possible values: outage, occ"),
        (&["--scenario", "occ", "sync"], "--scenario occ has its own contenders"),
        (&["--scenario", "occ", "--breaker"], "--breaker has no meaning with --scenario occ"),
        (&["--scenario", "occ", "--over", "0s"], "--over has no meaning with --scenario occ"),
        (&["--scenario", "occ", "--capacity", "500"], "--capacity has no meaning with --scenario occ"),
        (&["--scenario", "occ", "--queue", "500"], "--queue has no meaning with --scenario occ"),
        (&["--scenario", "occ", "--latency", "50ms"], "--latency has no meaning with --scenario occ"),
        (&["--scenario", "occ", "--until", "1m"], "--until has no meaning with --scenario occ"),
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
    for absent in ["after recovery", "recovery", "while it was down", "━"] {
        assert!(!shown.stdout.contains(absent), "{absent:?} in\n{}", shown.stdout);
    }
}

#[test]
fn many_contenders_with_long_names_are_shown_in_several_tables() {
    let guards = ["", "+budget", "+breaker", "+concurrency=20", "+budget+breaker+concurrency=20"];
    let contenders = guards.map(|guards| format!("default,maxAttempts=9{guards}"));
    let words: Vec<&str> = contenders.iter().map(String::as_str).chain(["--clients", "100"]).collect();
    let shown = simulate(&words).with(0);
    assert_eq!(shown.stdout.lines().filter(|line| line.starts_with("calls per request")).count(), 3);
    let too_wide: Vec<_> = shown.stdout.lines().filter(|line| line.chars().count() > 110).collect();
    assert!(too_wide.is_empty(), "{too_wide:?}");
}

#[test]
fn who_takes_far_longer_than_the_others_is_cut_off_and_it_says_so() {
    let words = ["default", "default+budget=strict"];
    simulate(&words).with(0).says(&[
        "default+budget=strict: its retries wait for the budget",
        "calls more, until 8h 37m",
        "  0s                  23s   ━",
    ]);
    simulate(&[&words[..], &["--until", "10h"]].concat()).with(0).says(&["10h   ━"]);
}

/// The command that a page shows.
fn command_of(page: &str) -> String {
    let (_, code) = page.split_once("<pre tabindex=\"0\"><code>").unwrap();
    let (code, _) = code.split_once("</code>").unwrap();
    let code = code.replace("<span>", "").replace("</span>", "");
    code.replace("&#39;", "'").replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

#[cfg(unix)]
#[test]
fn a_page_is_complete_in_itself_and_shows_a_command_that_repeats_it() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("my p.toml"), "[policies.payments]\nmaxAttempts = 2\n").unwrap();
    let run = |words: &[&str]| Program::start(redrive(directory.path(), words)).end();
    for words in [
        &["it's \"so\" & <so>:payments", "default+budget", "--file", "my p.toml", "--clients", "300", "--seed", "9"][..],
        &["--scenario", "occ", "--clients", "10", "--runs", "5", "--seed", "9"],
    ] {
        let numbers = run(&[&["simulate", "--json"], words].concat()).with(0).stdout;
        let words = [&["simulate", "--out", "page.html"], words].concat();
        let shown = run(&words).with(0).says(&["the report is in page.html"]);
        assert!(shown.stdout.contains("seed 9"), "{}", shown.stdout);
        let page = fs::read_to_string(directory.path().join("page.html")).unwrap();
        let contender =
            if words.contains(&"occ") { "decorrelated" } else { "it&#39;s &quot;so&quot; &amp; &lt;so&gt;" };
        for part in [contender, "<!DOCTYPE html>", "Seed 9.", "<svg", "</html>"] {
            assert!(page.contains(part), "{part}");
        }
        for absent in ["<script", "src=", "href=", "@import", "url(http"] {
            assert!(!page.contains(absent), "{absent}");
        }
        let command = command_of(&page);
        assert!(command.contains(" --seed 9") && !command.contains("page.html"), "{command}");
        let line = format!("redrive() {{ {} \"$@\"; }}; {command} --json", env!("CARGO_BIN_EXE_redrive"));
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &line]).current_dir(directory.path());
        assert_eq!(Program::start(shell).end().with(0).stdout, numbers, "{command}");
        let only = run(&[&["simulate", "--out", "-"], &words[3..]].concat()).with(0);
        assert_eq!((only.stdout.as_str(), only.stderr.as_str()), (page.as_str(), ""));
    }
    let left: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
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

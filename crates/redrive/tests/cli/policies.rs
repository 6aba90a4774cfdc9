//! `redrive policies`.

use std::fs;

use redrive_core::policy::Context;
use serde_json::json;

use super::world::{Service, Target};

#[test]
fn applying_again_changes_nothing_and_a_change_makes_a_version() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("policies.toml");
    let file = path.to_str().unwrap();
    fs::write(&path, "[policies.webhooks]\nmaxAttempts = 8\n[policies.slow]\nbackoff = \"fixed\"\n").unwrap();
    let apply = || service.run(&["policies", "apply", file]).with(0);
    apply().says(&["webhooks created, version 1", "slow created, version 1"]);
    apply().says(&["webhooks unchanged, version 1", "slow unchanged, version 1"]);
    fs::write(&path, "[policies.webhooks]\nmaxAttempts = 9\n[policies.slow]\nbackoff = \"fixed\"\n").unwrap();
    apply().says(&["webhooks updated, version 2", "slow unchanged, version 1"]);

    let shown = service.run(&["policies", "show", "webhooks", "--json"]).with(0).json();
    assert_eq!((&shown["version"], &shown["maxAttempts"]), (&json!(2), &json!(9)));
    service.run(&["policies", "show", "webhooks"]).with(0).says(&[
        "maxAttempts",
        "initialDelayMs",
        "1000 (1s)",
        "version 1, since",
        ", maxAttempts 8",
    ]);
    service.run(&["policies", "list"]).with(0).says(&["default", "slow", "webhooks", "fixed"]);
    let listed = service.run(&["policies", "list", "--json"]).with(0).json();
    assert_eq!(listed["policies"].as_array().unwrap().len(), 3 + Context::ALL.len());
}

#[test]
fn json_on_standard_input_is_applied_and_answered_as_json() {
    let service = Service::start();
    let document = br#"{"policies": [{"policyId": "a", "maxAttempts": 2}, {"policyId": "b"}]}"#;
    let ended = service.run_with_input(&["policies", "apply", "-", "--json"], document).with(0);
    let policies = ended.json()["policies"].clone();
    assert_eq!((&policies[0]["policyId"], &policies[0]["maxAttempts"]), (&json!("a"), &json!(2)));
    assert_eq!((&policies[1]["policyId"], &policies[1]["version"]), (&json!("b"), &json!(1)));
}

#[test]
fn a_mistake_in_the_last_file_leaves_nothing_applied() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let (good, bad) = (directory.path().join("good.toml"), directory.path().join("bad.toml"));
    fs::write(&good, "policyId = \"good\"").unwrap();
    fs::write(&bad, "maxAttempts = 3").unwrap();
    let (good, bad) = (good.to_str().unwrap(), bad.to_str().unwrap());
    service
        .run(&["policies", "apply", good, bad])
        .with(1)
        .says(&["the files are not valid", "bad.toml:1:1: a policy needs a policyId"]);
    service
        .run(&["policies", "apply", good, "missing"])
        .with(1)
        .says(&["missing: the file cannot be read: No such file"]);
    service.run(&["policies", "show", "good"]).with(5).says(&["error: No such policy"]);
}

#[test]
fn yaml_is_applied_and_the_services_beside_the_policies_are_passed_over() {
    let service = Service::start();
    let document = b"policies:\n  hooks:\n    maxAttempts: 4\nservices:\n  - name: shop\n";
    service.run_with_input(&["policies", "apply", "-"], document).with(0).says(&["hooks created, version 1"]);
    let shown = service.run(&["policies", "show", "hooks", "--json"]).with(0).json();
    assert_eq!(shown["maxAttempts"], 4);
}

#[test]
fn an_impossible_policy_is_refused_by_name_and_field() {
    let service = Service::start();
    let document = br#"{"policyId": "odd", "maxAttempts": 0}"#;
    service.run_with_input(&["policies", "apply", "-"], document).with(1).says(&["error: policy odd: ", "maxAttempts"]);
}

#[test]
fn a_policy_is_deleted_unless_it_is_needed() {
    let (service, target) = (Service::start(), Target::answering(&[200]));
    service.run_with_input(&["policies", "apply", "-"], b"policyId = \"a\"").with(0);
    let id = service.send(&[&target.url, "--policy", "a", "--delay", "1h"]);
    service.run(&["policies", "delete", "a"]).with(1).says(&["error: Tasks still use this policy"]);
    service.run(&["tasks", "cancel", &id]).with(0);
    service.run(&["policies", "delete", "a"]).with(0).says(&["a deleted"]);
    service.run(&["policies", "delete", "a"]).with(5);
    service.run(&["policies", "delete", "default"]).with(1).says(&["error: This policy cannot be deleted"]);
}

#[test]
fn a_preset_is_shown_with_its_timetable_with_or_without_a_server() {
    let service = Service::start();
    let timetable = [
        "context           webhook-patient",
        "[30000,120000,600000,3600000] (30s, 2m, 10m, 1h)",
        "ATTEMPT  WAIT: EARLIEST  TYPICAL  LATEST  IN ALL: EARLIEST  TYPICAL  LATEST",
        "1        -               -        -       0ms               0ms      0ms",
        "2        24s             30s      36s     24s               30s      36s",
        "5        48m             1h       1h 12m  58m               1h 12m   1h 27m",
        "after attempt 5, or after 1d: a dead letter, with an alert",
        "the policy conforms to the retry standard",
    ];
    service.run(&["policies", "show", "webhook-patient"]).with(0).says(&timetable).says(&["1, built in, since"]);
    service.run(&["policies", "show", "webhook"]).with(0).says(&["[1000,5000,30000,120000,900000]"]);
    service.run(&["policies", "list"]).with(0).says(&["webhook-patient  1        webhook-patient", "built in"]);
    let without_server = ["policies", "show", "webhook-patient", "--server", "http://127.0.0.1:1"];
    service.run(&without_server).with(0).says(&timetable).says(&["the server was not asked"]);
    service.run(&["policies", "show", "unknown", "--server", "http://127.0.0.1:1"]).with(6);
    // A proxy in front of a server that may have a policy of this name is not asked in vain.
    let proxy = Target::answering(&[502]);
    for format in [&[][..], &["--json"]] {
        service.run(&[&["policies", "show", "webhook", "--server", &proxy.url], format].concat()).with(6);
    }

    // A policy of the server's own comes first.
    let replaced = service.run_with_input(&["policies", "apply", "-"], b"policyId = \"sync\"\nmaxAttempts = 2").with(0);
    replaced.says(&["sync replaces the preset of this name and inherits nothing from it; context = \"sync\""]);
    let shown = service.run(&["policies", "show", "sync", "--json"]).with(0).json();
    assert_eq!((&shown["version"], &shown["maxAttempts"]), (&json!(2), &json!(2)));
    let expected = json!([
        {"attempt": 1, "waitMs": {"earliest": 0, "typical": 0, "latest": 0},
         "cumulativeMs": {"earliest": 0, "typical": 0, "latest": 0}, "fits": "always"},
        {"attempt": 2, "waitMs": {"earliest": 0, "typical": 500, "latest": 1000},
         "cumulativeMs": {"earliest": 0, "typical": 500, "latest": 1000}, "fits": "always"},
    ]);
    assert_eq!(shown["timetable"], expected);
}

#[test]
fn a_policy_is_shown_from_a_file_before_it_is_applied() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("policies.toml");
    fs::write(&path, "[policies.quick]\ncontext = \"sync\"\ntotalBudgetMs = 3000\n").unwrap();
    let show = |name: &str| service.run(&["policies", "show", name, "--file", path.to_str().unwrap()]);
    show("quick").with(0).says(&["context", "sync", "attempt 3 is only made if the waits are short"]);
    show("quick").with(0).says(&[
        "advice: R-3 attempts-too-late: attempt 4 of 4 typically comes after 3.5s, and the time is over after 3s",
    ]);
    show("slow").with(5).says(&["there is no policy slow in"]);
}

#[test]
fn the_standard_is_pointed_out_or_enforced_as_the_service_is_told() {
    let naive = b"policyId = \"naive\"\nbackoff = \"fixed\"";
    let warned = Service::start_with(&["--standard", "warn"]);
    warned.run_with_input(&["policies", "apply", "-"], naive).with(0).says(&[
        "naive created, version 1",
        "naive: R-1 fixed-interval: backoff: the wait does not grow: 1s before every retry, jitter aside",
        "fix: leave backoff out",
    ]);
    let enforced = Service::start_with(&["--standard", "enforce"]);
    enforced.run_with_input(&["policies", "apply", "-"], naive).with(1).says(&[
        "error: policy naive: Not allowed by the retry standard: breaks R-1 of the retry standard",
        "backoff: R-1: the wait does not grow: 1s before every retry, jitter aside; leave backoff out",
    ]);
    let target = Target::answering(&[200]);
    // The command brings the key that R-6 asks for.
    enforced.run(&["send", &target.url, "-d", "x"]).with(0);
    enforced.run(&["send", &target.url, "-d", "x", "--key", "order-7"]).with(0);
}

#[test]
fn what_a_service_shows_can_be_applied_and_linted() {
    let service = Service::start_with(&["--standard", "warn"]);
    let document = b"policies:\n  hooks: {context: event, maxAttempts: 16, approval: {by: Board, until: 2099-01-31, maxAttempts: 16}}\n  plain: {}\n";
    service.run_with_input(&["policies", "apply", "-"], document).with(0);
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, shown: String| {
        let path = directory.path().join(name);
        fs::write(&path, shown).unwrap();
        path.to_str().unwrap().to_owned()
    };
    // A policy of the server's, presets, a page of all policies, the answer to a registration.
    for words in [
        &["show", "hooks"][..],
        &["show", "plain"],
        &["show", "default"],
        &["show", "grpc"],
        &["show", "webhook-patient"],
        &["list"],
        &["apply", &file("again.yaml", String::from_utf8(document.to_vec()).unwrap())],
    ] {
        let shown = service.run(&[&["policies"], words, &["--json"]].concat()).with(0).stdout;
        let file = file("shown.json", shown);
        service.run(&["lint", &file]).with(0).says(&["no findings"]);
        service.run(&["policies", "apply", &file]).with(0);
    }
    for unchanged in ["hooks", "plain", "default"] {
        service.run(&["policies", "show", unchanged]).with(0).says(&["1, since"]);
    }
    let answer =
        service.run_with_input(&["policies", "apply", "-", "--json"], b"policyId = \"slow\"\nbackoff = \"fixed\"");
    let answer = answer.with(0).stdout;
    assert!(answer.contains("\"findings\""), "{answer}");
    service.run(&["lint", &file("answer.json", answer)]).with(1).says(&["1 finding: 1 blocks merge"]);
}

#[test]
fn a_mistake_in_a_file_is_shown_at_its_place_before_a_server_is_asked() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("policies.toml");
    let file = path.to_str().unwrap();
    fs::write(&path, "[policies.a]\nbackof = \"x\"\nmaxAttempts = \"\u{202e}3\"\n").unwrap();
    let expected = [
        "policies.toml:2:1: there is no field backof; did you mean backoff?",
        "policies.toml:3:15: this must be a whole number from 0, not the text \"",
    ];
    for words in [&["policies", "apply", file][..], &["policies", "show", "a", "--file", file]] {
        let ended = service.run(words).with(1).says(&expected);
        assert!(!ended.stderr.contains('\u{202e}'), "{ended:?}");
    }
    fs::write(&path, "[policies.a]\nmaxAttempts = 0\n").unwrap();
    let expected = "policies.toml:2:15: maxAttempts must be 1 to 100, got 0";
    service.run(&["policies", "show", "a", "--file", file]).with(1).says(&[expected]);
    service.run(&["policies", "show", "a"]).with(5);
    let approval = "approval = { by = \"x\u{202e}y\\u009b\", until = 2099-01-31, maxAttempts = 16 }";
    fs::write(&path, format!("[policies.a]\nmaxAttempts = 16\n{approval}\n")).unwrap();
    for words in [
        &["show", "a", "--file", file][..],
        &["show", "a", "--file", file, "--json"],
        &["apply", file, "--json"],
        &["apply", file],
        &["show", "a", "--json"],
        &["show", "a"],
    ] {
        let ended = service.run(&[&["policies"], words].concat()).with(0);
        assert!(!ended.stdout.contains(['\u{202e}', '\u{9b}']), "{words:?}: {ended:?}");
        assert!(!ended.stderr.contains(['\u{202e}', '\u{9b}']), "{words:?}: {ended:?}");
    }
}

#[test]
fn a_preset_is_named_without_registering_it_and_survives_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let target = Target::answering(&[200]);
    let service = Service::start_in(directory.path(), &[]);
    service.run(&["send", &target.url, "--policy", "webhook", "--wait"]).with(0).says(&[
        "policy webhook v1 (built in)",
        "6 attempts over about 17m 36s, at most 21m 7s, if each fails at once; all within 1d",
    ]);
    service.run(&["policies", "delete", "webhook"]).with(1).says(&["error: This policy cannot be deleted"]);
    service.run_with_input(&["policies", "apply", "-"], b"policyId = \"webhook\"\nmaxAttempts = 1").with(0);
    service.stop().with(0);

    // The next start leaves the policy that was applied.
    let service = Service::start_in(directory.path(), &[]);
    let sent = service.run(&["send", &target.url, "--policy", "webhook", "--wait"]).with(0);
    sent.says(&["policy webhook v2\n", "1 attempt, no retries"]);
    service.run(&["policies", "delete", "webhook"]).with(0);
    service.run(&["send", &target.url, "--policy", "webhook"]).with(0).says(&["policy webhook v3 (built in)"]);
}

//! `redrive policies`.

use std::fs;

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
    assert_eq!(listed["policies"].as_array().unwrap().len(), 3);
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
    service.run(&["policies", "apply", good, bad]).with(1).says(&["cannot use", "bad.toml", "needs a policyId"]);
    service.run(&["policies", "apply", good, "missing"]).with(1).says(&["cannot read missing"]);
    service.run(&["policies", "show", "good"]).with(5).says(&["error: No such policy"]);
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
    service.run(&["policies", "delete", "a"]).with(1).says(&["error: Tasks still keep this policy"]);
    service.run(&["tasks", "cancel", &id]).with(0);
    service.run(&["policies", "delete", "a"]).with(0).says(&["a deleted"]);
    service.run(&["policies", "delete", "a"]).with(5);
    service.run(&["policies", "delete", "default"]).with(1).says(&["error: This policy cannot be deleted"]);
}

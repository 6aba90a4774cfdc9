//! `redrive report`: red while a dependency is dead, and why.

use serde_json::json;

use super::world::{Reply, Service, Target};

#[test]
fn a_dependency_whose_tasks_become_dead_letters_is_red_and_named() {
    let (service, target) = (
        Service::start(),
        Target::replying(|arrival| {
            let status = if arrival.path == "/dead" { 404 } else { 200 };
            Reply { status, body: String::new() }
        }),
    );
    service.run(&["report"]).with(0).says(&["silent: too few tasks ended in the last hour to say"]);
    let send = |path: &str, code| {
        for _ in 0..20 {
            let url = format!("{}{path}", target.url);
            service.run(&["send", &url, "--dependency", &path[1..], "--wait"]).with(code);
        }
    };
    send("/well", 0);
    service.run(&["report"]).with(0).says(&["green: everything is as usual", "0 % of 20 tasks became dead letters"]);
    send("/dead", 3);
    service.run(&["report"]).with(1).says(&[
        "red: something needs attention",
        "50 % of 40 tasks became dead letters; the alert is above 1 %",
        "100.0 %",
    ]);
    let report = service.run(&["report", "--json", "--limit", "1"]).with(1).json();
    assert_eq!((&report["health"], &report["dependencies"][0]["dependency"]), (&json!("red"), &json!("dead")));
    assert_eq!(report["dependencyCount"], 2);
    service.run(&["report", "--limit", "1"]).with(1).says(&["1 more; --limit shows up to 500"]);
}

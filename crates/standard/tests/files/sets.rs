//! Several files as one set: names, and what could not be read.

use std::fs;
use std::path::Path;

use redrive_standard::files::{Source, Verdict, judge};
use redrive_standard::rules::{Gate, Rule};

use super::TODAY;

pub(super) fn judged(files: &[(&str, &str)]) -> Verdict {
    let files = files.iter().map(|(name, text)| Source::try_new(*name, text.as_bytes().to_vec())).collect();
    judge(files, TODAY.parse().unwrap())
}

pub(super) fn problems(verdict: &Verdict) -> Vec<String> {
    verdict.problems.iter().map(ToString::to_string).collect()
}

pub(super) fn findings(verdict: &Verdict) -> Vec<String> {
    verdict.findings.iter().map(|found| format!("{} {}", found.finding.check.id, found.location)).collect()
}

pub(super) const BUDGET: &str = "retryBudget: {ratio: 0.2, opensBreaker: true}";

fn service(policy: &str) -> String {
    format!("services:\n- name: a\n  context: sync\n  dependencies:\n  - name: b\n    {BUDGET}\n    policy: {policy}\n")
}

#[test]
fn the_example_of_the_documentation_passes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/retry-standard.toml");
    let verdict = judged(&[("retry-standard.toml", &fs::read_to_string(path).unwrap())]);
    assert_eq!(problems(&verdict), [""; 0]);
    assert!(!verdict.is_stopped_at(Gate::Advice), "{:?}", findings(&verdict));
    assert_eq!((verdict.policies, verdict.services, verdict.counts().approved), (3, 2, 1));
}

#[test]
fn a_service_may_name_a_policy_of_any_file_a_preset_or_the_default() {
    let policies = ("p.toml", "[policies.mine]\ncontext = \"sync\"");
    for name in ["mine", "sync", "grpc"] {
        let verdict = judged(&[("s.yaml", &service(name)), policies]);
        assert_eq!((problems(&verdict), findings(&verdict)), (vec![], vec![]), "{name}");
    }
    let verdict = judged(&[("s.yaml", &service("default")), policies]);
    assert_eq!(problems(&verdict), [""; 0]);
    assert_eq!(findings(&verdict), ["duration-over-cap s.yaml:7:13"], "a day is too long for a caller who waits");
}

#[test]
fn an_unknown_policy_is_a_problem_with_the_nearest_name() {
    let policies = ("p.toml", "[policies.payments]\ncontext = \"sync\"");
    for (name, expected) in [
        ("payment", "s.yaml:7:13: there is no policy payment in any of the files; did you mean payments?"),
        ("synk", "s.yaml:7:13: there is no policy synk in any of the files; did you mean sync?"),
        ("async", "s.yaml:7:13: there is no policy async in any of the files; did you mean event?"),
        ("other", "s.yaml:7:13: there is no policy other in any of the files, and no preset of that name"),
    ] {
        let verdict = judged(&[policies, ("s.yaml", &service(name))]);
        assert_eq!((problems(&verdict), findings(&verdict)), (vec![expected.into()], vec![]), "{name}");
    }
}

#[test]
fn unknown_names_get_suggestions_up_to_a_number() {
    let policies: String = (0..1_000).map(|at| format!("[policies.{}{at:04}]\n", "p".repeat(40))).collect();
    let mut services = String::from("services:\n- name: a\n  context: sync\n  dependencies:\n");
    for at in 0..1_000 {
        services.push_str(&format!("  - {{name: d{at}, policy: {}x{at:03}, {BUDGET}}}\n", "p".repeat(40)));
    }
    let verdict = judged(&[("p.toml", &policies), ("s.yaml", &services)]);
    let (with, without): (Vec<_>, Vec<_>) =
        problems(&verdict).into_iter().partition(|problem| problem.contains("did you mean pppp"));
    assert_eq!((with.len(), without.len()), (50, 950));
}

#[test]
fn a_file_that_is_given_twice_is_judged_once() {
    let text = "[policies.x]\nbackoff = \"fixed\"";
    let verdict = judged(&[("a.toml", text), ("./a.toml", text), ("b.toml", "{"), ("b.toml", "{")]);
    assert_eq!((verdict.files, verdict.policies, verdict.problems.len()), (2, 1, 1));
    assert_eq!(findings(&verdict), ["fixed-interval a.toml:2:11"]);
}

#[test]
fn services_may_stand_under_their_names() {
    let text =
        "services:\n  shop:\n    context: sync\n    dependencies: [{name: b, x-owner: me}]\n    x-tier: {a: 1}\n";
    let verdict = judged(&[("s.yaml", text)]);
    assert_eq!((problems(&verdict), verdict.services), (vec![], 1));
    assert_eq!(verdict.findings[0].subject.to_string(), "service shop, dependency b");
    let listed = "services:\n- name: shop\n  context: sync\n  dependencies: [{name: b}]\n";
    assert_eq!(judged(&[("s.yaml", listed)]).findings[0].fingerprint, verdict.findings[0].fingerprint);
    let other = text.replace("    context", "    name: till\n    context");
    assert_eq!(problems(&judged(&[("s.yaml", &other)])), ["s.yaml:3:11: the service shop names itself \"till\""]);
}

#[test]
fn two_policies_of_one_name_are_a_problem_and_both_are_judged() {
    let verdict =
        judged(&[("a.toml", "[policies.x]\nbackoff = \"fixed\""), ("b.yaml", "policyId: x\nbackoff: linear\n")]);
    assert_eq!(problems(&verdict), ["b.yaml:1:11: there is a policy x already, at a.toml:1:11"]);
    assert_eq!(findings(&verdict), ["fixed-interval a.toml:2:11", "linear-backoff b.yaml:2:10"]);
}

#[test]
fn a_file_with_nothing_in_it_is_a_problem() {
    for (name, text) in [("a.toml", ""), ("a.yaml", "# nothing\n"), ("a.json", "{}"), ("a.yaml", "policies: []\n")] {
        let verdict = judged(&[(name, text)]);
        assert_eq!(problems(&verdict), [format!("{name}: the file has no policy and no service")], "{text}");
    }
}

#[test]
fn an_approval_holds_up_to_its_last_day() {
    let text =
        "policyId = \"a\"\nmaxAttempts = 16\napproval = { by = \"Board\", until = 2026-11-16, maxAttempts = 16 }";
    let on = |today: &str| judge(vec![Source::try_new("a.toml", text.as_bytes().to_vec())], today.parse().unwrap());
    assert!(!on("2026-11-16").is_stopped_at(Gate::Advice));
    assert!(on("2026-11-17").is_stopped_at(Gate::Approval));
    assert!(!on("2026-11-17").is_stopped_at(Gate::Deploy));
}

#[test]
fn the_right_example_of_every_rule_passes_and_the_wrong_one_breaks_it() {
    for rule in Rule::ALL {
        let right = judged(&[("right.toml", rule.good())]);
        assert_eq!((problems(&right), findings(&right)), (vec![], vec![]), "{rule}");
        let wrong = judged(&[("wrong.toml", rule.bad())]);
        assert_eq!(problems(&wrong), [""; 0], "{rule}");
        let stopped = |gate| gate != Gate::Advice;
        let breaks =
            wrong.findings.iter().any(|found| found.finding.check.rule == rule && stopped(found.finding.check.gate));
        assert!(breaks, "{rule}: {:?}", findings(&wrong));
    }
}

//! Several files as one set: names, and what could not be read.

use std::fs;
use std::path::Path;

use redrive_core::lint::{Gate, Rule};
use redrive_lint::{Source, Verdict, judge};

use super::TODAY;

fn judged(files: &[(&str, &str)]) -> Verdict {
    let files = files.iter().map(|(name, text)| Source::try_new(*name, text.as_bytes().to_vec())).collect();
    judge(files, TODAY.parse().unwrap())
}

fn problems(verdict: &Verdict) -> Vec<String> {
    verdict.problems.iter().map(ToString::to_string).collect()
}

fn findings(verdict: &Verdict) -> Vec<String> {
    verdict.findings.iter().map(|found| format!("{} {}", found.finding.check.id, found.spot)).collect()
}

const BUDGET: &str = "retryBudget: {ratio: 0.2, opensBreaker: true}";

fn service(policy: &str) -> String {
    format!("services:\n- name: a\n  context: sync\n  dependencies:\n  - name: b\n    {BUDGET}\n    policy: {policy}\n")
}

#[test]
fn the_example_of_the_documentation_passes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/retry-standard.toml");
    let verdict = judged(&[("retry-standard.toml", &fs::read_to_string(path).unwrap())]);
    assert_eq!(problems(&verdict), [""; 0]);
    assert!(!verdict.is_stopped_at(Gate::Advice), "{:?}", findings(&verdict));
    assert_eq!((verdict.policies, verdict.services, verdict.tally().approved), (3, 2, 1));
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
        ("other", "s.yaml:7:13: there is no policy other in any of the files, and no preset of that name"),
    ] {
        let verdict = judged(&[policies, ("s.yaml", &service(name))]);
        assert_eq!((problems(&verdict), findings(&verdict)), (vec![expected.into()], vec![]), "{name}");
    }
}

#[test]
fn two_policies_of_one_name_are_a_problem_and_the_first_is_judged() {
    let verdict =
        judged(&[("a.toml", "[policies.x]\nbackoff = \"fixed\""), ("b.yaml", "policyId: x\nbackoff: linear\n")]);
    assert_eq!(problems(&verdict), ["b.yaml:1:11: there is a policy x already, at a.toml:1:11"]);
    assert_eq!(findings(&verdict), ["fixed-interval a.toml:2:11"]);
}

#[test]
fn what_can_be_read_is_judged_beside_what_cannot() {
    let verdict = judged(&[
        ("a.toml", "[policies.x]\nbackoff = \"fixed\"\n[policies.y]\nmaxAttemts = 3\njitterType = \"equal\"\n"),
        ("b.json", "{"),
    ]);
    assert_eq!(
        problems(&verdict),
        [
            "a.toml:4:1: there is no field maxAttemts; did you mean maxAttempts?",
            "a.toml:5:14: \"equal\" is not known here; did you mean EQUAL?",
            "b.json:1:1: this is not JSON: EOF while parsing an object",
        ]
    );
    assert_eq!(findings(&verdict), ["fixed-interval a.toml:2:11"]);
}

#[test]
fn a_service_that_is_misshapen_is_told_everything_at_once() {
    let text = "services:
- nam: a
  context: sink
  dependencies:
  - name: b
    policy: {maxAttempts: x, jitter: none}
    retryOn: [503, {}]
  - policy: 5
    name: c
    retryBudget: {ratio: 0.2, window: 30}
";
    assert_eq!(
        problems(&judged(&[("s.yaml", text)])),
        [
            "s.yaml:2:3: there is no field nam; did you mean name?",
            "s.yaml:2:3: the field name is missing",
            "s.yaml:3:12: \"sink\" is not known here; there is sync, event, webhook, webhook-patient, batch, grpc",
            "s.yaml:6:27: this must be a whole number from 0, not the text \"x\"",
            "s.yaml:6:38: \"none\" is not known here; did you mean NONE?",
            "s.yaml:7:20: this must be a status code from 300 to 599, a gRPC code from 0 to 16, or the name of an error, not a table",
            "s.yaml:8:13: this must be the name of a policy, or a table of its fields",
            "s.yaml:10:39: this must be text, not 30",
        ]
    );
}

#[test]
fn what_no_server_would_take_is_a_problem_unless_a_finding_says_it_better() {
    for (text, expected_problems, expected_findings) in [
        ("policyId = \"a\"\nconnectTimeoutMs = 0", vec!["a.toml:2:20: connectTimeoutMs"], vec![]),
        ("policyId = \"a\"\nmaxAttempts = 200", vec![], vec!["retries-out-of-range a.toml:2:15"]),
        (
            "policyId = \"a\"\nmaxAttempts = 200\napproval = { by = \"x\", until = \"2027-01-31\", maxAttempts = 200 }",
            vec!["a.toml:2:15: maxAttempts"],
            vec!["retries-out-of-range a.toml:2:15"],
        ),
        ("policyId = \"a b\"", vec!["a.toml:1:12: this cannot be a policy's name: "], vec![]),
    ] {
        let verdict = judged(&[("a.toml", text)]);
        let problems = problems(&verdict);
        assert_eq!(problems.len(), expected_problems.len(), "{problems:?}");
        for (problem, expected) in problems.iter().zip(expected_problems) {
            assert!(problem.starts_with(expected), "{problem}");
        }
        assert_eq!(findings(&verdict), expected_findings, "{text}");
    }
}

#[test]
fn a_file_with_nothing_in_it_is_a_problem() {
    for (name, text) in [("a.toml", ""), ("a.yaml", "# nothing\n"), ("a.json", "{}"), ("a.yaml", "policies: []\n")] {
        let verdict = judged(&[(name, text)]);
        assert_eq!(problems(&verdict), [format!("{name}: there is no policy and no service in it")], "{text}");
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

//! What could not be read is said in full, and what is left is judged.

use super::sets::{BUDGET, findings, judged, problems};

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
        ("policyId = \"a b\"", vec!["a.toml:1:12: this is not a valid name of a policy: "], vec![]),
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
fn an_impossible_value_is_said_where_a_finding_would_only_be_its_consequence() {
    for (text, expected) in [
        ("backoff = \"schedule\"", "a.toml:1:12: scheduleMs must be given for the backoff \"schedule\""),
        ("context = \"webhook\"\nscheduleMs = []", "a.toml:3:14: scheduleMs must have 1 to 100 entries, got 0"),
        ("multiplier = 0.5", "a.toml:2:14: multiplier must be 1 to 100, got 0.5"),
        (
            "initialDelayMs = 900\nmaxDelayMs = 9",
            "a.toml:3:14: maxDelayMs must be at least initialDelayMs (900), got 9",
        ),
    ] {
        let verdict = judged(&[("a.toml", &format!("policyId = \"a\"\n{text}"))]);
        assert_eq!(problems(&verdict), [expected], "{text}");
        let at_the_same = findings(&verdict).into_iter().filter(|finding| finding.starts_with("fixed-interval"));
        assert_eq!(at_the_same.count(), 0, "{text}");
    }
    let inline =
        "services:\n- name: a\n  context: sync\n  dependencies:\n  - {name: b, policy: {multiplier: 0.5}, BUDGET}\n";
    let verdict = judged(&[("s.yaml", &inline.replace("BUDGET", BUDGET))]);
    assert_eq!(problems(&verdict), ["s.yaml:5:36: multiplier must be 1 to 100, got 0.5"]);
    assert_eq!(findings(&verdict), [""; 0]);
}

#[test]
fn one_mistake_hides_nothing_else() {
    for (text, expected_problems, expected_findings) in [
        (
            "policies: {x: {backof: fixed, jitterType: NONE, maxAttempts: 50}}",
            vec!["1:16: there is no field backof; did you mean backoff?"],
            vec!["missing-jitter 1:43", "retries-out-of-range 1:62"],
        ),
        (
            "policies: {x: {context: async, backoff: fixed, maxAttempts: 50}}",
            vec!["1:25: \"async\" is not known here; did you mean event?"],
            // What a number of retries is judged by is not known.
            vec!["fixed-interval 1:41"],
        ),
        (
            "services: [{name: a, context: sync, dependencies: [{nam: b, retryOn: [404], retryBudget: {ratio: x}}, 5, {name: c}]}]",
            vec![
                "1:53: there is no field nam; did you mean name?",
                "1:98: this must be a number, not the text \"x\"",
                "1:103: this must be a table, not 5",
            ],
            vec!["retries-non-retryable 1:71", "missing-budget 1:113"],
        ),
        (
            "services: [{name: a, context: http, dependencies: [{name: b, retryOn: [404], policy: {backoff: fixed}}]}]",
            vec!["1:31: \"http\" is not known here; did you mean sync?"],
            vec!["missing-budget 1:59", "retries-non-retryable 1:72", "fixed-interval 1:96"],
        ),
        (
            "services: [{context: sync, dependencies: [{name: b, policy: [1], retryBugdet: {ratio: 0.2}}]}]",
            vec![
                "1:12: the field name is missing",
                "1:61: this must be the name of a policy, or a table of its fields",
                "1:66: there is no field retryBugdet; did you mean retryBudget?",
            ],
            vec![],
        ),
    ] {
        let verdict = judged(&[("a.yaml", text)]);
        let place = |text: String| text.replace("a.yaml:", "");
        assert_eq!(problems(&verdict).into_iter().map(place).collect::<Vec<_>>(), expected_problems, "{text}");
        assert_eq!(findings(&verdict).into_iter().map(place).collect::<Vec<_>>(), expected_findings, "{text}");
    }
}

#[test]
fn what_stands_behind_a_mistake_keeps_its_number() {
    let text = "services: [{name: a, context: sync, dependencies: [5, {name: c, methods: [GTE, POST]}]}]";
    let verdict = judged(&[("a.yaml", text)]);
    let paths: Vec<_> = verdict.findings.iter().map(|found| found.finding.path()).collect();
    assert_eq!(paths, ["dependencies[1].retryBudget", "dependencies[1].methods[1]"]);
    assert_eq!(findings(&verdict), ["missing-budget a.yaml:1:62", "unkeyed-writes a.yaml:1:80"]);
    assert_eq!(verdict.findings[0].subject.to_string(), "service a, dependency c");
}

#[test]
fn a_policy_with_a_mistake_is_judged_where_it_is_used_as_far_as_it_can_be() {
    let service = format!(
        "services:\n- {{name: a, context: sync, dependencies: [{{name: b, policy: x, methods: [GET], {BUDGET}}}]}}\n"
    );
    for (policy, expected) in [
        ("{context: event, maxAttempts: many}", vec!["duration-over-cap a.yaml:2:61"]),
        ("{context: event, totalBudgetMs: long}", vec![]),
        ("{context: queue}", vec![]),
    ] {
        let verdict = judged(&[("a.yaml", &format!("{service}policies: {{x: {policy}}}\n"))]);
        assert_eq!(
            (findings(&verdict), problems(&verdict).len()),
            (expected.iter().map(ToString::to_string).collect(), 1),
            "{policy}"
        );
    }
}

#[test]
fn what_people_write_for_a_context_is_understood() {
    for (written, expected) in [
        ("async", "; did you mean event?"),
        ("Queue", "; did you mean event?"),
        ("rest", "; did you mean sync?"),
        ("job", "; did you mean batch?"),
        ("hook", "; did you mean webhook?"),
        ("unary", "; did you mean grpc?"),
        ("synk", "; did you mean sync?"),
        ("offline", "; there is sync, event, webhook, webhook-patient, batch, grpc"),
    ] {
        let text = format!("[policies.a]\ncontext = \"{written}\"");
        let expected = format!("a.toml:2:11: \"{written}\" is not known here{expected}");
        assert_eq!(problems(&judged(&[("a.toml", &text)])), [expected]);
    }
}

#[test]
fn the_same_is_not_said_twice_of_one_place() {
    let verdict = judged(&[("a.toml", &format!("a = {}\n", "[".repeat(19)))]);
    let mut said = problems(&verdict);
    let all = said.len();
    said.dedup();
    assert_eq!(said.len(), all, "{said:?}");
}

#[test]
fn names_must_be_there_and_tell_apart() {
    let text = "services:
- {name: a, context: sync, dependencies: [{name: b, BUDGET}, {name: b, BUDGET}, {name: '', BUDGET}]}
- {name: '', context: sync}
- {name: a, context: sync}
";
    let verdict = judged(&[("a.yaml", &text.replace("BUDGET", BUDGET))]);
    let problems: Vec<_> = problems(&verdict).iter().map(|text| text.split(": ").nth(1).unwrap().to_owned()).collect();
    assert_eq!(
        problems,
        [
            "the service has a dependency b already, at a.yaml:2:50",
            "a dependency's name must not be empty",
            "a service's name must not be empty",
            "there is a service a already, at a.yaml:2:10",
        ]
    );
}

#[test]
fn a_list_is_no_table() {
    let text = "policyId = \"a\"\nmaxAttempts = 50\napproval = [\"Board\", \"2027-01-31\", 50]";
    let verdict = judged(&[("a.toml", text)]);
    assert_eq!(problems(&verdict), ["a.toml:3:12: this must be a table with by, until and maxAttempts, not a list"]);
    assert!(!verdict.findings.iter().any(|found| found.finding.is_permitted()));
}

//! Policies and services in a file: the first byte selects the file's name, the rest is the file.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use redrive_core::policy::{Limits, Policy, Spec};
use redrive_core::{Date, backoff, timetable};
use redrive_server::wire::{PolicyInput, parse};
use redrive_standard::files::{FilePolicy, Problem, Source, Verdict, judge, policies, report};

use super::json::{self, Field};
use crate::target::Target;
use crate::world::NOW;

pub(crate) const TARGET: Target = Target {
    name: "policy",
    what: "files of policies and services in TOML, YAML and JSON",
    run,
    samples,
    words: &[
        "policies",
        "services",
        "policyId",
        "maxAttempts",
        "backoff",
        "scheduleMs",
        "jitterType",
        "approval",
        "until",
        "dependencies",
        "retryOn",
        "x-",
        "[[policies]]\n",
        "[policies.a]\n",
        "- ",
        ": ",
        " = ",
        "\n",
        "\n  ",
        "\t",
        "&a ",
        "*a",
        "<<: *a",
        "!!str ",
        "|\n",
        ">-\n",
        "---\n",
        "...\n",
        "%YAML 1.2\n",
        "\"\"\"",
        "'''",
        "# ",
        "\u{feff}",
        "~",
        "null",
        "0x10",
        "0o7",
        ".inf",
        ".nan",
        "1e400",
        "2027-01-31",
        "\u{2028}",
        "{",
        "}",
        "\\u0000",
        "FULL",
    ],
    generate,
    max_bytes: 8 * 1024,
};

/// The file names; without an extension the content determines the format.
const NAMES: [&str; 4] = ["f.toml", "f.yaml", "f.json", "-"];

/// One in this many inputs has its reports written.
const REPORTED: usize = 16;

const FIELDS: &[Field] = &[
    ("policyId", &["\"a\"", "\"web.hooks:1\""]),
    ("context", &["\"sync\"", "\"event\"", "\"webhook\"", "\"batch\""]),
    ("maxAttempts", &["1", "100", "101"]),
    ("backoff", &["\"exponential\"", "\"linear\"", "\"fixed\"", "\"schedule\""]),
    ("backoffType", &["\"fixed\""]),
    ("initialDelayMs", &["1", "2592000000", "0"]),
    ("maxDelayMs", &["1", "30000", "2592000001"]),
    ("multiplier", &["1", "2.5", "100", "1e-300", "100.00000000000001"]),
    ("scheduleMs", &["[1,2,3]", "[0]", "[]", "[2592000000]"]),
    ("jitterType", &["\"FULL\"", "\"EQUAL\"", "\"DECORRELATED\"", "\"PROPORTIONAL\"", "\"NONE\""]),
    ("jitterRatio", &["0.2", "1", "5e-324", "0"]),
    ("totalBudgetMs", &["1", "2592000000", "1000"]),
    ("attemptTimeoutMs", &["1", "900000"]),
    ("connectTimeoutMs", &["1", "900000"]),
    ("retryableStatusCodes", &["[503,429]", "[200]", "[]", "[599]"]),
    ("retryAfterMaxMs", &["0", "1000"]),
    ("pauseOnGone", &["true", "false"]),
    (
        "approval",
        &["{\"by\":\"Board\",\"until\":\"2027-01-31\",\"maxAttempts\":16}", "{\"by\":\"\",\"until\":\"2027-02-30\"}"],
    ),
    ("version", &["7"]),
];

fn samples() -> Vec<Vec<u8>> {
    [
        (0, "policyId = \"webhooks\"\nmaxAttempts = 3\n"),
        (0, include_str!("../../../standard/tests/formats/policies.toml")),
        (1, include_str!("../../../standard/tests/formats/shop services.yaml")),
        (1, "a: &a {maxAttempts: 3}\npolicies:\n  - policyId: b\n    <<: *a\n  - &c\n    policyId: d\n    jitterType: FULL\n"),
        (2, r#"{"policies": [{"policyId": "webhooks", "maxAttempts": 3, "version": 1}], "nextCursor": null}"#),
        (3, "policies:\n  webhooks: {maxAttempts: 3, scheduleMs: [1, 2], backoff: schedule}\n"),
        (3, "[policies.\"a:b\"]\nbackoff = 'linear'\ninitialDelayMs = 1_000\n"),
    ]
    .iter()
    .map(|(name, text)| [&[*name], text.as_bytes()].concat())
    .collect()
}

/// A policy as JSON, which is also YAML.
fn generate(random: &mut Rng) -> Vec<u8> {
    let object = json::object(random, FIELDS);
    let text = if random.bool() { object } else { format!("{{\"policies\": {{\"a\": {object}}}}}") };
    [&[random.u8(1..4)], text.as_bytes()].concat()
}

fn run(input: &[u8]) {
    let Some((name, bytes)) = input.split_first() else { return };
    let name = NAMES[usize::from(*name) % NAMES.len()];
    let source = Source::try_new(name, bytes.to_vec());
    let verdict = judge(vec![source.clone()], Date::of(NOW));
    check_verdict(&verdict, bytes.len());
    // The reports contain the whole standard, so writing them takes far longer than everything else.
    if bytes.len().is_multiple_of(REPORTED) {
        check_reports(&verdict);
    }
    let Ok(source) = source.inspect_err(|problem| check_problem(problem, bytes.len())) else { return };
    match policies(&source) {
        Ok(written) => {
            assert!(!written.is_empty(), "no policy and no problem");
            written.iter().for_each(|written| check_written(written, bytes.len()));
        }
        Err(problems) => {
            assert!(!problems.is_empty(), "no policy and no problem");
            problems.iter().for_each(|problem| check_problem(problem, bytes.len()));
        }
    }
}

/// A problem has a message, and its location is in the file.
fn check_problem(problem: &Problem, bytes: usize) {
    assert!(!problem.wrong.is_empty());
    if let Some(place) = problem.location.line_range() {
        let lines = problem.location.source.text().matches('\n').count() + 1;
        assert!((1..=lines).contains(&place.line), "{problem}: line {} of {lines}", place.line);
        let columns = problem.location.source.line(place.line).chars().count() + 1;
        assert!((1..=columns).contains(&place.column), "{problem}: column {} of {columns}", place.column);
        assert!((place.line, place.column) <= (place.end_line, place.end_column), "{problem}: {place:?}");
        assert!(place.end_line <= lines, "{problem}: {place:?}");
    }
    // Names are truncated when they are repeated: a report is not much larger than its file.
    let longest = 4_096 + 4 * bytes;
    assert!(problem.to_string().len() <= longest, "a problem of {} bytes", problem.to_string().len());
}

/// Problems and findings have locations.
fn check_verdict(verdict: &Verdict, bytes: usize) {
    verdict.problems.iter().for_each(|problem| check_problem(problem, bytes));
    for found in &verdict.findings {
        assert!(found.location.line_range().is_some(), "a finding without a place: {:?}", found.finding);
    }
}

/// Every report can be written, and the JSON reports are valid JSON.
fn check_reports(verdict: &Verdict) {
    let (people, github) = (report::people(verdict, false), report::github(verdict));
    let is_obeyed = |letter: char| letter.is_control() && letter != '\n';
    assert!(!people.contains(is_obeyed), "a terminal would obey this: {people:?}");
    assert!(!github.contains(is_obeyed), "a terminal would obey this: {github:?}");
    for text in [report::json(verdict), report::sarif(verdict, "0")] {
        let text = text.expect("a report can be written");
        serde_json::from_str::<serde_json::Value>(&text).expect("a report is JSON");
    }
}

fn check_written(written: &FilePolicy, bytes: usize) {
    let document = written.document();
    check_as_json(written, &document);
    check_on_server(written, &document);
    match written.resolve() {
        Ok(policy) => check_policy(&policy),
        Err(problems) => {
            assert!(!problems.is_empty(), "invalid for no reason");
            problems.iter().for_each(|problem| check_problem(problem, bytes));
        }
    }
}

/// The same policy written as JSON is read as the same policy.
fn check_as_json(written: &FilePolicy, document: &serde_json::Value) {
    let source: Arc<Source> = Source::try_new("again.json", document.to_string().into_bytes()).expect("JSON is text");
    let again = policies(&source).unwrap_or_else(|problems| panic!("{}", problems[0]));
    assert_eq!((again.len(), &again[0].name), (1, &written.name));
    assert_eq!(again[0].spec, written.spec, "{document}");
}

/// A server reads a policy the same way as the linter.
fn check_on_server(written: &FilePolicy, document: &serde_json::Value) {
    let text = document.to_string();
    let input: PolicyInput<'_> = parse(text.as_bytes()).unwrap_or_else(|refused| panic!("{refused}: {text}"));
    assert_eq!((&*input.policy_id, &input.spec), (written.name.as_str(), &written.spec), "{text}");
}

/// A resolved policy is within its limits, and is unchanged when it is written and read again.
fn check_policy(policy: &Policy) {
    assert!(Limits::MAX_ATTEMPTS.contains(&policy.max_attempts), "{policy:?}");
    assert!(Limits::TOTAL_BUDGET.contains(&policy.total_budget), "{policy:?}");
    assert!(Limits::ATTEMPT_TIMEOUT.contains(&policy.attempt_timeout), "{policy:?}");
    assert!(policy.connect_timeout <= policy.attempt_timeout && policy.attempt_timeout <= policy.total_budget);
    let shown = serde_json::to_string(&policy.to_spec()).expect("a policy can be shown");
    let spec: Spec = serde_json::from_str(&shown).expect("what is shown can be read");
    assert_eq!(Policy::resolve(&spec).as_ref(), Ok(policy), "{shown}");
    assert_eq!(timetable::of(policy).len(), policy.max_attempts as usize);
    let longest = policy.backoff.longest() * 2 + Duration::from_millis(1);
    let mut previous = None;
    for (retry, unit) in (1..policy.max_attempts).zip([0.0, 0.5, 1.0 - f64::EPSILON].into_iter().cycle()) {
        let wait = backoff::delay(policy, retry, previous, unit);
        assert!(wait <= longest, "retry {retry} waits {wait:?}, which is longer than {longest:?}");
        previous = Some(wait);
    }
}

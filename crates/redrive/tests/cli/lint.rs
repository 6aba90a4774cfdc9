//! `redrive lint`.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::world::{Ended, Program, redrive};

const BAD: &str = "[policies.slow]\nbackoff = \"fixed\"\n";
const MANY: &str =
    "policies:\n  import:\n    maxAttempts: 16\n    approval: {by: Board, until: 2027-01-31, maxAttempts: 16}\n";
const SERVICE: &str = r#"{"services": [{"name": "shop", "context": "batch", "dependencies": [
  {"name": "billing", "policy": "slow", "retryBudget": {"ratio": 0.2}}]}]}"#;

struct Files(tempfile::TempDir);

impl Files {
    fn new(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(directory.path().join(name), text).unwrap();
        }
        Files(directory)
    }

    fn lint(&self, words: &[&str]) -> Ended {
        lint_in(self.0.path(), words)
    }
}

fn lint_in(directory: &Path, words: &[&str]) -> Ended {
    Program::start(redrive(directory, &[&["lint"], words].concat())).end()
}

#[test]
fn the_exit_code_says_whether_there_are_findings_or_something_could_not_be_read() {
    let files = Files::new(&[
        ("good.toml", "policyId = \"a\""),
        ("bad.toml", BAD),
        ("many.yaml", MANY),
        ("service.json", SERVICE),
        ("broken.json", "{"),
    ]);
    for (words, expected) in [
        (&["good.toml"][..], 0),
        (&["bad.toml"], 1),
        (&["good.toml", "bad.toml"], 1),
        (&["bad.toml", "missing.toml"], 2),
        (&["bad.toml", "broken.json"], 2),
        (&["."], 2),
        (&["service.json"], 2),
        (&["service.json", "bad.toml"], 1),
        (&["many.yaml", "--today", "2027-01-31"], 0),
        (&["many.yaml", "--today", "2027-02-01"], 1),
        (&["many.yaml", "--today", "2027-02-01", "--fail-on", "deploy"], 0),
        (&["bad.toml", "--fail-on", "merge"], 1),
        (&["many.yaml", "--today", "tomorrow"], 2),
        (&["bad.toml", "--fail-on", "friday"], 2),
        (&[], 2),
    ] {
        assert_eq!(files.lint(words).code, Some(expected), "{words:?}");
    }
}

#[test]
fn advice_fails_only_where_it_is_asked_to() {
    let service = SERVICE.replace(", \"policy\": \"slow\"", "");
    let files = Files::new(&[("service.json", &service)]);
    files.lint(&["service.json"]).with(0).says(&["advice R-7 budget-without-breaker", "1 finding: 1 is advice"]);
    files.lint(&["service.json", "--fail-on", "advice"]).with(1);
}

#[test]
fn findings_are_shown_with_their_lines_also_beside_what_could_not_be_read() {
    let files = Files::new(&[("bad.toml", BAD)]);
    files.lint(&["bad.toml", "missing.toml"]).with(2).says(&[
        "could not read: the file cannot be read: No such file",
        "--> missing.toml\n",
        "blocks merge R-1 fixed-interval: the wait does not grow: 1s before every retry, jitter aside",
        "  --> bad.toml:2:11 in policy slow\n   |\n 2 | backoff = \"fixed\"\n   |           ^^^^^^^\n   = why: ",
        "1 problem: what could not be read was not checked; 1 finding: 1 blocks merge",
    ]);
}

#[test]
fn standard_input_is_read_in_whichever_language_it_is() {
    let directory = tempfile::tempdir().unwrap();
    for text in [
        BAD,
        "policies: {slow: {backoff: fixed}}\n",
        r#"{"policyId": "slow", "backoff": "fixed"}"#,
        "{policyId: slow, backoff: fixed}",
    ] {
        let command = redrive(directory.path(), &["lint", "-"]);
        let ended = Program::start_with_input(command, text.as_bytes()).end().with(1);
        ended.says(&["R-1 fixed-interval", "--> -:"]);
    }
}

#[test]
fn a_file_that_is_named_twice_is_read_once() {
    let files = Files::new(&[("bad.toml", BAD)]);
    files.lint(&["bad.toml", "./bad.toml"]).with(1).says(&["1 finding: 1 blocks merge (1 policy in 1 file)"]);
    let command = redrive(files.0.path(), &["lint", "-", "-"]);
    Program::start_with_input(command, BAD.as_bytes()).end().with(1).says(&["(1 policy in 1 file)"]);
}

#[test]
#[cfg(target_os = "linux")]
fn a_verdict_that_cannot_be_written_is_no_finding() {
    let files = Files::new(&[("bad.toml", BAD)]);
    for words in [&["lint", "bad.toml"][..], &["lint", "--explain", "R-1"]] {
        let mut command = redrive(files.0.path(), words);
        command.stdout(fs::File::options().write(true).open("/dev/full").unwrap());
        let ended = command.output().unwrap();
        assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    }
}

#[test]
fn an_expired_approval_is_said_and_a_good_one_takes_a_line() {
    let files = Files::new(&[("many.yaml", MANY)]);
    let ended = files.lint(&["many.yaml", "--today", "2027-01-31"]).with(0);
    assert!(ended.stdout.starts_with("approved by Board until 2027-01-31: R-2 retries-out-of-range: "), "{ended:?}");
    ended.says(&["no findings; 1 approved until 2027-01-31 (1 policy in 1 file)"]);
    files
        .lint(&["many.yaml", "--today", "2027-02-01"])
        .with(1)
        .says(&["needs approval R-2 retries-out-of-range", "Board's approval ended on 2027-01-31"]);
}

#[test]
fn every_format_has_the_same_findings() {
    let files = Files::new(&[("bad.toml", BAD), ("service.json", SERVICE)]);
    let lint = |format: &str| files.lint(&["bad.toml", "service.json", "--format", format]).with(1);
    let document = lint("json").json();
    assert_eq!(document["summary"]["byGate"], json!({"merge": 1, "deploy": 0, "approval": 0, "advice": 1}));
    assert_eq!((&document["findings"][0]["file"], &document["findings"][0]["line"]), (&json!("bad.toml"), &json!(2)));
    let log = lint("sarif").json();
    let rules: Vec<_> = log["runs"][0]["results"].as_array().unwrap().iter().map(|result| &result["ruleId"]).collect();
    assert_eq!(rules, ["fixed-interval", "budget-without-breaker"]);
    lint("github").says(&[
        "::error file=bad.toml,line=2,col=11,endLine=2,endColumn=18,title=R-1 fixed-interval (blocks merge)::",
        "::notice file=service.json,",
    ]);
    lint("people").says(&["R-1 fixed-interval", "R-7 budget-without-breaker"]);
    files.lint(&["bad.toml", "--format", "xml"]).with(2);
}

#[test]
fn a_rule_or_a_check_is_explained_on_a_page() {
    let directory = tempfile::tempdir().unwrap();
    let explain = |name: &str| lint_in(directory.path(), &["--explain", name]);
    for name in ["R-7", "r7", "7"] {
        explain(name).with(0).says(&["R-7 ", "What the standard asks", "Why", "Right", "Wrong", "budget-over-limit"]);
    }
    explain("Fixed-Interval").with(0).says(&["fixed-interval (blocks merge)"]);
    explain("fixed-interval").with(0).says(&["R-1 ", "fixed-interval (blocks merge)", "Looks for "]);
    explain("R-11").with(2).says(&["error: there is no rule or check \"R-11\"; there are:", "R-10", "missing-metrics"]);
    lint_in(directory.path(), &["--explain", "R-7", "a.toml"]).with(2);
}

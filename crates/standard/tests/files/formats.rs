//! Two files with findings, approvals and problems, in every form.

use std::fs;
use std::path::{Path, PathBuf};

use redrive_standard::files::{Source, Verdict, judge, report};
use serde_json::{Value, json};

use super::TODAY;
use super::snapshot::is_as_blessed;

const FILES: [&str; 2] = ["policies.toml", "shop services.yaml"];

fn formats() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats")
}

pub(crate) fn verdict() -> Verdict {
    let files = FILES.map(|name| Source::try_new(name, fs::read(formats().join(name)).unwrap()));
    judge(files.into(), TODAY.parse().unwrap())
}

#[test]
fn people_read_each_line_with_what_is_wrong_in_it() {
    is_as_blessed(&formats().join("people.txt"), &report::people(&verdict(), false));
}

#[test]
fn colours_change_nothing_but_colours() {
    let (plain, coloured) = (report::people(&verdict(), false), report::people(&verdict(), true));
    let mut stripped = String::new();
    for (at, part) in coloured.split("\x1b[").enumerate() {
        let code = if at == 0 { 0 } else { part.find('m').unwrap() + 1 };
        stripped.push_str(&part[code..]);
    }
    assert_eq!(stripped, plain);
    assert!(coloured.contains("\x1b[1;31mblocks merge\x1b[0m"), "{coloured}");
}

#[test]
fn programs_read_one_document() {
    let text = report::json(&verdict()).unwrap();
    is_as_blessed(&formats().join("report.json"), &text);
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        document["summary"],
        json!({
            "files": 2, "policies": 4, "services": 1, "findings": 7, "approved": 1, "problems": 2,
            "byGate": {"merge": 4, "deploy": 0, "approval": 1, "advice": 2},
        })
    );
}

#[test]
fn github_reads_a_command_for_each_finding_without_an_approval() {
    let text = report::github(&verdict());
    is_as_blessed(&formats().join("github.txt"), &text);
    assert_eq!(text.lines().count(), 9, "{text}");
    assert!(text.lines().all(|line| line.starts_with("::")), "{text}");
}

#[test]
fn names_are_printed_without_control_characters() {
    let text =
        r#"services: [{name: ünï, context: sync, dependencies: [{name: "a\u202Eb\e[2J\u2028", policy: "\e]0;x"}]}]"#;
    let verdict = judge(vec![Source::try_new("a.yaml", text.into())], TODAY.parse().unwrap());
    assert_eq!((verdict.problems.len(), verdict.findings.len()), (1, 1));
    for printed in [
        report::people(&verdict, false),
        report::github(&verdict),
        report::json(&verdict).unwrap(),
        report::sarif(&verdict, "1.2.3").unwrap(),
    ] {
        assert!(printed.contains("ünï") && !printed.contains(['\u{1b}', '\u{202e}', '\u{2028}']), "{printed:?}");
    }
    let text = "services: [{name: shop, context: sync, dependencies: [{name: ünï}]}]";
    let verdict = judge(vec![Source::try_new("a.yaml", text.into())], TODAY.parse().unwrap());
    for printed in [report::github(&verdict), report::sarif(&verdict, "1.2.3").unwrap()] {
        assert!(printed.contains("service shop, dependency ünï: ünï has no retry budget. "), "{printed}");
    }
}

#[test]
fn a_fingerprint_survives_lines_that_move_and_elements_that_are_put_before() {
    let text = |before: &str| {
        format!("{before}services:\n  - {{name: a, context: sync, dependencies: [{{name: x}}, {{name: y}}]}}\n")
    };
    let fingerprints = |text: String| {
        let verdict = judge(vec![Source::try_new("a.yaml", text.into_bytes())], TODAY.parse().unwrap());
        verdict.findings.into_iter().map(|found| found.fingerprint).collect::<Vec<_>>()
    };
    let first = fingerprints(text(""));
    assert_eq!(first.len(), 2);
    assert_ne!(first[0], first[1]);
    assert_eq!(fingerprints(text("# one\n\n# two\n")), first);
    let with_one_more = text("").replace("[{name: x}", "[{name: w}, {name: x}");
    assert_eq!(fingerprints(with_one_more)[1..], first);
}

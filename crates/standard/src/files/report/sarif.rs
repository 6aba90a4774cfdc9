//! For code scanning: SARIF 2.1.0, with what its schema requires and what GitHub shows.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Value, json};

use super::{Level, capital, in_short};
use crate::files::problem::Problem;
use crate::files::source::Location;
use crate::files::verdict::{Fingerprints, LocatedFinding, Verdict};
use crate::printable::printable_json;
use crate::rules::{Check, Permission};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// What a path must not have in a URI; the slashes stay.
const NOT_IN_A_PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// The name under which a result's fingerprint is kept; the number changes if the way of making it does.
const FINGERPRINT: &str = "redriveLint/v1";

/// The verdict as a SARIF log, made by `version` of this program.
pub fn sarif(verdict: &Verdict, version: &str) -> serde_json::Result<String> {
    let mut fingerprints = Fingerprints::default();
    let problems = verdict.problems.iter().map(|problem| {
        let fingerprint = fingerprints.of(UNREAD, &problem.location.source.path(), &problem.wrong);
        problem_result(problem, &fingerprint)
    });
    let log = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "redrive lint",
                "semanticVersion": version,
                "version": version,
                "rules": Check::ALL.iter().map(|check| rule(check)).chain([unread()]).collect::<Vec<_>>(),
                "notifications": [{"id": UNREAD, "shortDescription": {"text": UNREAD_MEANS}}],
            }},
            "columnKind": "unicodeCodePoints",
            "invocations": [{
                "executionSuccessful": verdict.problems.is_empty(),
                "toolExecutionNotifications": verdict.problems.iter().map(notification).collect::<Vec<_>>(),
            }],
            "results": problems.chain(verdict.findings.iter().map(result)).collect::<Vec<_>>(),
        }],
    });
    serde_json::to_string_pretty(&log).map(|text| printable_json(&text) + "\n")
}

/// What is said of a file that could not be read. It is a rule of its own as well as a notification: a file whose other
/// results are gone must not look as if it had been mended.
const UNREAD: &str = "could-not-read";
const UNREAD_MEANS: &str = "A file or a part of it could not be read, and was not checked.";

fn unread() -> Value {
    let help = "What is wrong is said at its place. Until it is mended, what stands there is not judged by any rule.";
    json!({
        "id": UNREAD,
        "name": pascal(UNREAD),
        "shortDescription": {"text": UNREAD_MEANS},
        "fullDescription": {"text": UNREAD_MEANS},
        "help": {"text": help, "markdown": help},
        "defaultConfiguration": {"level": level(Level::Error)},
        "properties": {"tags": ["reliability"], "problem.severity": "error", "precision": "very-high"},
    })
}

fn rule(check: &Check) -> Value {
    let asks = check.rule.asks();
    let list: String = asks.iter().map(|line| format!("- {line}\n")).collect();
    let severity = match Level::of(check.gate) {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Note => "recommendation",
    };
    json!({
        "id": check.id,
        "name": pascal(check.id),
        "shortDescription": {"text": format!("{}: {}", check.rule, capital(check.title))},
        "fullDescription": {"text": check.why},
        "help": {
            "text": format!("{} {}\n\n{list}\n{}", check.rule, check.rule.title(), check.rule.why()),
            "markdown": format!(
                "## {} {}\n\n{list}\n{}\n\nRight:\n\n```toml\n{}\n```\n\nWrong:\n\n```toml\n{}\n```\n",
                check.rule,
                check.rule.title(),
                check.rule.why(),
                check.rule.good(),
                check.rule.bad(),
            ),
        },
        "defaultConfiguration": {"level": level(Level::of(check.gate))},
        "properties": {
            "tags": ["reliability", check.rule.id()],
            "gate": check.gate.as_str(),
            "problem.severity": severity,
            "precision": "very-high",
        },
    })
}

fn result(found: &LocatedFinding) -> Value {
    let (finding, check) = (&found.finding, found.finding.check);
    let mut text = format!("{}: {}", found.subject, in_short(finding));
    let mut suppressions = Vec::new();
    match &finding.permission {
        Some(Permission { by, until, .. }) if finding.is_permitted() => suppressions.push(json!({
            "kind": "inSource",
            "status": "accepted",
            "justification": format!("approved by {by} until {until}"),
        })),
        Some(other) => text.extend(other.why_not().map(|why_not| format!(" {why_not}."))),
        None => {}
    }
    json!({
        "ruleId": check.id,
        "ruleIndex": Check::ALL.iter().position(|other| other.id == check.id),
        "level": level(Level::of(check.gate)),
        "message": {"text": text},
        "locations": [location(&found.location)],
        "partialFingerprints": {FINGERPRINT: found.fingerprint},
        "suppressions": suppressions,
    })
}

fn problem_result(problem: &Problem, fingerprint: &str) -> Value {
    json!({
        "ruleId": UNREAD,
        "ruleIndex": Check::ALL.len(),
        "level": level(Level::Error),
        "message": {"text": problem.wrong},
        "locations": [location(&problem.location)],
        "partialFingerprints": {FINGERPRINT: fingerprint},
        "suppressions": [],
    })
}

fn notification(problem: &Problem) -> Value {
    json!({
        "descriptor": {"id": UNREAD, "index": 0},
        "level": "error",
        "message": {"text": problem.wrong},
        "locations": [location(&problem.location)],
    })
}

fn location(location: &Location) -> Value {
    let artifact = json!({"uri": uri(&location.source.path())});
    let physical = match location.line_range() {
        None => json!({"artifactLocation": artifact}),
        Some(place) => json!({
            "artifactLocation": artifact,
            "region": {
                "startLine": place.line,
                "startColumn": place.column,
                "endLine": place.end_line,
                "endColumn": place.end_column,
            },
        }),
    };
    json!({"physicalLocation": physical})
}

/// A path with slashes as a URI: relative as it was given.
fn uri(path: &str) -> String {
    let encoded = utf8_percent_encode(path, NOT_IN_A_PATH).to_string();
    // A colon in the first part of a relative reference would read as a scheme.
    let (first, rest) = encoded.split_at(encoded.find('/').unwrap_or(encoded.len()));
    match encoded.starts_with('/') {
        true => format!("file://{encoded}"),
        false => format!("{}{rest}", first.replace(':', "%3A")),
    }
}

fn level(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Note => "note",
    }
}

/// `FixedInterval`: how SARIF likes the names of rules.
fn pascal(id: &str) -> String {
    id.split('-').map(capital).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_becomes_a_uri() {
        for (name, expected) in [
            ("policies.toml", "policies.toml"),
            ("a b/ü#1%.toml", "a%20b/%C3%BC%231%25.toml"),
            ("c:d/e:f.toml", "c%3Ad/e:f.toml"),
            ("/etc/a.toml", "file:///etc/a.toml"),
            ("../a.toml", "../a.toml"),
            ("-", "-"),
        ] {
            assert_eq!(uri(name), expected, "{name}");
        }
    }
}

//! For programs: one document, whose names stay as they are.

use redrive_core::Date;
use serde::Serialize;

use crate::files::source::Location;
use crate::files::verdict::{LocatedFinding, Subject, Verdict};
use crate::printable::printable_json;

/// The verdict as a JSON document.
pub fn json(verdict: &Verdict) -> serde_json::Result<String> {
    let counts = verdict.counts();
    let report = Report {
        findings: verdict.findings.iter().map(finding).collect(),
        problems: verdict
            .problems
            .iter()
            .map(|problem| Unread { at: at(&problem.location), wrong: &problem.wrong })
            .collect(),
        summary: Summary {
            files: verdict.files,
            policies: verdict.policies,
            services: verdict.services,
            findings: counts.open(),
            by_gate: ByGate {
                merge: counts.merge,
                deploy: counts.deploy,
                approval: counts.approval,
                advice: counts.advice,
            },
            approved: counts.approved,
            problems: verdict.problems.len(),
        },
    };
    serde_json::to_string_pretty(&report).map(|text| printable_json(&text) + "\n")
}

fn finding(found: &LocatedFinding) -> Broken<'_> {
    let (finding, check) = (&found.finding, found.finding.check);
    Broken {
        rule: check.rule.id(),
        check: check.id,
        gate: check.gate.as_str(),
        subject: Named {
            kind: found.subject.kind(),
            name: found.subject.name(),
            dependency: match &found.subject {
                Subject::Service { dependency, .. } => dependency.as_deref(),
                Subject::Policy(_) => None,
            },
        },
        path: finding.path(),
        at: at(&found.location),
        wrong: &finding.wrong,
        why: check.why,
        fix: &finding.fix,
        approval: finding.permission.as_ref().map(|permission| Approval {
            state: permission.state.as_str(),
            by: &permission.by,
            until: permission.until,
            max_attempts: permission.max_attempts,
        }),
        fingerprint: &found.fingerprint,
    }
}

fn at(location: &Location) -> At<'_> {
    let place = location.line_range();
    At {
        file: location.source.name(),
        line: place.map(|place| place.line),
        column: place.map(|place| place.column),
        end_line: place.map(|place| place.end_line),
        end_column: place.map(|place| place.end_column),
    }
}

#[derive(Serialize)]
struct Report<'a> {
    findings: Vec<Broken<'a>>,
    problems: Vec<Unread<'a>>,
    summary: Summary,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Broken<'a> {
    rule: &'a str,
    check: &'a str,
    gate: &'a str,
    subject: Named<'a>,
    /// From the subject on.
    path: String,
    #[serde(flatten)]
    at: At<'a>,
    wrong: &'a str,
    why: &'a str,
    fix: &'a str,
    approval: Option<Approval<'a>>,
    fingerprint: &'a str,
}

#[derive(Serialize)]
struct Named<'a> {
    kind: &'a str,
    name: &'a str,
    dependency: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Approval<'a> {
    state: &'a str,
    by: &'a str,
    until: Date,
    max_attempts: u32,
}

#[derive(Serialize)]
struct Unread<'a> {
    #[serde(flatten)]
    at: At<'a>,
    wrong: &'a str,
}

/// Lines and columns from 1, in Unicode characters; all null for a file as a whole.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct At<'a> {
    file: &'a str,
    line: Option<usize>,
    column: Option<usize>,
    end_line: Option<usize>,
    end_column: Option<usize>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    files: usize,
    policies: usize,
    services: usize,
    /// Without the approved ones.
    findings: usize,
    by_gate: ByGate,
    approved: usize,
    problems: usize,
}

#[derive(Serialize)]
struct ByGate {
    merge: usize,
    deploy: usize,
    approval: usize,
    advice: usize,
}

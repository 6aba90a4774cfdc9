//! For programs: one document, whose names stay as they are.

use redrive_core::Date;
use serde::Serialize;

use crate::files::source::Spot;
use crate::files::verdict::{Found, Subject, Verdict};
use crate::printable::printable_json;

/// The verdict as a JSON document.
pub fn json(verdict: &Verdict) -> serde_json::Result<String> {
    let tally = verdict.tally();
    let report = Report {
        findings: verdict.findings.iter().map(finding).collect(),
        problems: verdict
            .problems
            .iter()
            .map(|problem| Unread { at: at(&problem.spot), wrong: &problem.wrong })
            .collect(),
        summary: Summary {
            files: verdict.files,
            policies: verdict.policies,
            services: verdict.services,
            findings: tally.open(),
            by_gate: ByGate {
                merge: tally.merge,
                deploy: tally.deploy,
                approval: tally.approval,
                advice: tally.advice,
            },
            approved: tally.approved,
            problems: verdict.problems.len(),
        },
    };
    serde_json::to_string_pretty(&report).map(|text| printable_json(&text) + "\n")
}

fn finding(found: &Found) -> Broken<'_> {
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
        at: at(&found.spot),
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

fn at(spot: &Spot) -> At<'_> {
    let place = spot.place();
    At {
        file: spot.source.name(),
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
    /// Without those that somebody has approved.
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

//! The last line: how many findings there are, and what they stop.

use super::paint::{Colour, Paint};
use crate::files::verdict::Verdict;

pub(super) fn summary(verdict: &Verdict, paint: Paint) -> String {
    let counts = verdict.counts();
    let mut parts = Vec::new();
    if !verdict.problems.is_empty() {
        let problems = count(verdict.problems.len(), "problem", "problems");
        parts.push(format!("{problems}: what could not be read was not checked"));
    }
    if counts.open() > 0 {
        let gates = [
            (counts.merge, "blocks merge", "block merge"),
            (counts.deploy, "blocks deploy", "block deploy"),
            (counts.approval, "needs approval", "need approval"),
            (counts.advice, "is advice", "are advice"),
        ];
        let gates: Vec<_> = gates.iter().filter(|gate| gate.0 > 0).map(|gate| count(gate.0, gate.1, gate.2)).collect();
        parts.push(format!("{}: {}", count(counts.open(), "finding", "findings"), gates.join(", ")));
    } else if verdict.problems.is_empty() {
        parts.push("no findings".into());
    }
    parts.extend(approved(verdict));
    let judged = [(verdict.policies, "policy", "policies"), (verdict.services, "service", "services")];
    let judged: Vec<_> = judged.iter().filter(|kind| kind.0 > 0).map(|kind| count(kind.0, kind.1, kind.2)).collect();
    let judged = if judged.is_empty() { "nothing".into() } else { judged.join(" and ") };
    let files = count(verdict.files, "file", "files");
    let colour = if counts.open() == 0 && verdict.problems.is_empty() { Colour::Good } else { Colour::Strong };
    format!("{} ({judged} in {files})\n", paint.over(&parts.join("; "), colour))
}

fn approved(verdict: &Verdict) -> Option<String> {
    let ends = verdict.findings.iter().filter_map(|found| match &found.finding.permission {
        Some(permission) if found.finding.is_permitted() => Some(permission.until),
        _ => None,
    });
    let ends: Vec<_> = ends.collect();
    match ends.iter().min() {
        None => None,
        Some(until) if ends.len() == 1 => Some(format!("1 approved until {until}")),
        Some(first) => Some(format!("{} approved, the first until {first}", ends.len())),
    }
}

fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

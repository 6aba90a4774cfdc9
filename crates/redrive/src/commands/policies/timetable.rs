//! A policy's timetable, for people and for programs.

use redrive_core::Policy;
use redrive_core::policy::{SHOWN_BESIDE, Spec};
use redrive_core::timetable::{self, FitsBudget, Range, Row};
use serde_json::{Map, Value, json};

use crate::output::{Cell, Colour, Output, Table, duration};

/// Prints when each attempt comes.
pub(super) fn print(output: Output, policy: &Policy) -> std::io::Result<()> {
    let rows = timetable::of(policy);
    let most = duration(policy.attempt_timeout);
    output.line("")?;
    output.prose(&format!(
        "if every attempt fails immediately (each may take up to {most}; a Retry-After can make any wait longer):"
    ))?;
    let mut table =
        Table::new(&["ATTEMPT", "WAIT: EARLIEST", "TYPICAL", "LATEST", "IN ALL: EARLIEST", "TYPICAL", "LATEST"]);
    rows.iter().for_each(|row| table.row(cells(row)));
    output.table(&table)?;
    let (end, total) = ("a dead letter, with an alert", duration(policy.total_budget));
    match rows.iter().find(|row| row.fits != FitsBudget::Always) {
        None => output.prose(&format!("after attempt {}, or after {total}: {end}", policy.max_attempts)),
        Some(row) => output.prose(&format!(
            "after {total}: {end}; attempt {} {}",
            row.attempt,
            if row.fits == FitsBudget::Never {
                "would be too late and is not made"
            } else {
                "is only made if the waits are short"
            }
        )),
    }
}

fn cells(row: &Row) -> [Cell; 7] {
    let faint = row.fits == FitsBudget::Never;
    let cell = |text: String| if faint { Cell::coloured(text, Colour::Faint) } else { text.into() };
    let wait = |of: fn(&Range) -> std::time::Duration| match row.attempt {
        1 => cell("-".into()),
        _ => cell(duration(of(&row.wait))),
    };
    [
        cell(row.attempt.to_string()),
        wait(|range| range.earliest),
        wait(|range| range.typical),
        wait(|range| range.latest),
        cell(duration(row.at.earliest)),
        cell(duration(row.at.typical)),
        cell(duration(row.at.latest)),
    ]
}

/// The timetable as a program reads it.
pub(super) fn json(policy: &Policy) -> Value {
    let range = |range: Range| {
        json!({
            "earliest": millis(range.earliest),
            "typical": millis(range.typical),
            "latest": millis(range.latest),
        })
    };
    let row = |row: &Row| {
        let fits = match row.fits {
            FitsBudget::Always => "always",
            FitsBudget::Sometimes => "sometimes",
            FitsBudget::Never => "never",
        };
        json!({ "attempt": row.attempt, "waitMs": range(row.wait), "cumulativeMs": range(row.at), "fits": fits })
    };
    timetable::of(policy).iter().map(row).collect()
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The policy that a document shows; nothing if a newer server says more than is understood here.
pub(super) fn spec_of(document: &Value) -> Option<(Spec, Policy)> {
    let is_field = |name: &str| name != "policyId" && !SHOWN_BESIDE.contains(&name);
    let fields = document.as_object()?.iter().filter(|(name, _)| is_field(name));
    let fields: Map<String, Value> = fields.map(|(name, value)| (name.clone(), value.clone())).collect();
    let spec: Spec = serde_json::from_value(Value::Object(fields)).ok()?;
    let policy = Policy::resolve(&spec).ok()?;
    Some((spec, policy))
}

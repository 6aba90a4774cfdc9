//! For people: each finding with its line, what is wrong in it underlined, then all of them counted.

mod paint;
mod snippet;
mod summary;

use crate::files::problem::Problem;
use crate::files::verdict::{LocatedFinding, Verdict};
use crate::printable::printable;
use crate::rules::{Gate, Permission};
use paint::{Colour, Paint};
use snippet::snippet;

/// The verdict as text; with a terminal's colours if it may have them.
pub fn people(verdict: &Verdict, coloured: bool) -> String {
    let paint = Paint { coloured };
    let mut text = String::new();
    for problem in &verdict.problems {
        text.push_str(&unread(problem, paint));
        text.push('\n');
    }
    let (approved, open): (Vec<_>, Vec<_>) = verdict.findings.iter().partition(|found| found.finding.is_permitted());
    for found in open {
        text.push_str(&finding(found, paint));
        text.push('\n');
    }
    for found in &approved {
        text.push_str(&permitted(found, paint));
    }
    if !approved.is_empty() {
        text.push('\n');
    }
    text + &summary::summary(verdict, paint)
}

fn finding(found: &LocatedFinding, paint: Paint) -> String {
    let (finding, check) = (&found.finding, found.finding.check);
    let colour = match check.gate {
        Gate::Merge | Gate::Deploy => Colour::Bad,
        Gate::Approval => Colour::Careful,
        Gate::Advice => Colour::Mild,
    };
    let gate = paint.over(check.gate.action(), colour);
    let what = paint.over(&format!("{} {}: {}", check.rule, check.id, printable(&finding.wrong)), Colour::Strong);
    let whose = format!(" in {}", printable(&found.subject.to_string()));
    let why_not = finding.permission.as_ref().and_then(Permission::why_not);
    let expired = why_not.map(|why_not| ("but", printable(&why_not)));
    let notes = [("why", check.why.to_owned()), ("fix", printable(&finding.fix))].into_iter().chain(expired);
    format!("{gate} {what}\n{}", snippet(&found.location, &whose, colour, paint, notes))
}

fn unread(problem: &Problem, paint: Paint) -> String {
    let what = paint.over(&printable(&problem.wrong), Colour::Strong);
    let heading = format!("{} {what}\n", paint.over("could not read:", Colour::Bad));
    heading + &snippet(&problem.location, "", Colour::Bad, paint, std::iter::empty())
}

/// An approved finding takes one line.
fn permitted(found: &LocatedFinding, paint: Paint) -> String {
    let (finding, check) = (&found.finding, found.finding.check);
    let by = match &finding.permission {
        Some(Permission { by, until, .. }) => format!("by {} until {until}", printable(by)),
        _ => String::new(),
    };
    let approved = paint.over("approved", Colour::Good);
    let place = printable(&found.location.to_string());
    format!("{approved} {by}: {} {}: {} ({place})\n", check.rule, check.id, printable(&finding.wrong))
}

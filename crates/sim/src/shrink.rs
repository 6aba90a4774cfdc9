//! Makes a failure smaller: leaves out errands, follow-ups and faults as long as the same invariant is still broken.
//!
//! What is left out shifts what chance does to the rest: a call that was late is not any more. So each smaller plan is
//! tried with a few values of `luck`, which are other courses of the same events.

use crate::model::Violation;
use crate::plan::{Keep, Part, Plan};
use crate::world;

/// A plan that is as small as it could be made, and how it fails.
#[derive(Debug)]
pub struct Shrunk {
    /// The parts that are left.
    pub keep: Keep,
    /// The luck that they need.
    pub luck: u64,
    /// What they break.
    pub violation: Violation,
    /// How many runs it took.
    pub runs: usize,
}

/// How many courses of the same events are tried.
const COURSES: u64 = 6;

/// Leaves out of `plan`, which breaks `violation`, whatever is not needed for that; gives up after `most_runs`.
pub fn shrink(plan: &Plan, violation: Violation, most_runs: usize) -> Shrunk {
    let mut shrunk = Shrunk { keep: Keep::all_of(plan), luck: plan.luck, violation, runs: 0 };
    // What happened after the violation did not cause it.
    let until = shrunk.violation.at;
    let later = |part: &Part| match *part {
        Part::Fault(number) => plan.faults.iter().any(|fault| fault.number == number && fault.at > until),
        Part::Errand(number) => plan.errands.iter().any(|errand| errand.number == number && errand.at > until),
        Part::FollowUp(..) => false,
    };
    let after: Vec<Part> = shrunk.keep.0.iter().copied().filter(later).collect();
    shrunk.without(plan, &after, most_runs);
    // The item that failed is kept for last.
    let culprit = shrunk.violation.item.as_deref().and_then(|item| item[1..].split('.').next()?.parse::<usize>().ok());
    let others: Vec<Part> = (shrunk.keep.0.iter().copied())
        .filter(|part| matches!(part, Part::Errand(errand) | Part::FollowUp(errand, _) if Some(*errand) != culprit))
        .collect();
    shrunk.without(plan, &others, most_runs);
    loop {
        let before = shrunk.keep.0.len();
        // Halves first, then ever smaller pieces, down to single parts.
        let mut size = before.div_ceil(2);
        while size > 0 && shrunk.runs < most_runs {
            let parts: Vec<Part> = shrunk.keep.0.iter().copied().collect();
            for piece in parts.chunks(size) {
                shrunk.without(plan, piece, most_runs);
            }
            size = if size == 1 { 0 } else { size.div_ceil(2) };
        }
        if shrunk.keep.0.len() == before || shrunk.runs >= most_runs {
            return shrunk;
        }
    }
}

impl Shrunk {
    /// Leaves these parts out if the same invariant is broken without them.
    fn without(&mut self, plan: &Plan, parts: &[Part], most_runs: usize) {
        let mut fewer = self.keep.clone();
        parts.iter().for_each(|part| {
            fewer.0.remove(part);
        });
        if fewer == self.keep {
            return;
        }
        for luck in [self.luck].into_iter().chain((1..COURSES).map(|course| self.luck + course)) {
            if self.runs >= most_runs {
                return;
            }
            self.runs += 1;
            let smaller = Plan { luck, ..fewer.of(plan) };
            if let Some(violation) = world::run(&smaller, false).violation
                && violation.invariant == self.violation.invariant
            {
                (self.keep, self.luck, self.violation) = (fewer, luck, violation);
                return;
            }
        }
    }
}

//! Shrinks a failure: leaves out errands, follow-ups and faults as long as the same invariant is still broken.
//!
//! Leaving a part out shifts the random choices for the others: a call that was slow is not slow any more. So each
//! smaller plan is tried with a few values of `luck`, which give other courses of the same events.

use crate::model::Violation;
use crate::plan::{Keep, Part, Plan};

/// A plan that is as small as possible, and its violation.
#[derive(Debug)]
pub struct Shrunk {
    /// The parts that are left.
    pub keep: Keep,
    /// The value of `luck` with which they fail.
    pub luck: u64,
    /// The invariant that they break.
    pub violation: Violation,
    /// How many runs it took.
    pub runs: usize,
}

/// How many courses of the same events are tried.
const COURSES: u64 = 6;

/// Leaves out of `plan`, which breaks `violation`, what is not needed for that; gives up after `most_runs`. `run`
/// returns what a plan breaks.
pub fn shrink(plan: &Plan, violation: Violation, most_runs: usize, run: impl Fn(&Plan) -> Option<Violation>) -> Shrunk {
    let mut shrunk = Shrunk { keep: Keep::all_of(plan), luck: plan.luck, violation, runs: 0 };
    // What happened after the violation did not cause it.
    let until = shrunk.violation.at;
    let later = |part: &Part| match *part {
        Part::Fault(number) => plan.faults.iter().any(|fault| fault.number == number && fault.at > until),
        Part::Errand(number) => plan.errands.iter().any(|errand| errand.number == number && errand.at > until),
        Part::Record(number) => plan.records.iter().any(|errand| errand.number == number && errand.at > until),
        Part::FollowUp(..) => false,
    };
    let after: Vec<Part> = shrunk.keep.0.iter().copied().filter(later).collect();
    shrunk.without(plan, &after, most_runs, &run);
    // The item that failed is kept for last.
    let culprit = shrunk.violation.item.as_deref().and_then(|item| item[1..].split('.').next()?.parse::<usize>().ok());
    let others: Vec<Part> = (shrunk.keep.0.iter().copied())
        .filter(|part| matches!(part, Part::Errand(errand) | Part::FollowUp(errand, _) if Some(*errand) != culprit))
        .collect();
    shrunk.without(plan, &others, most_runs, &run);
    loop {
        let before = shrunk.keep.0.len();
        // Halves first, then smaller and smaller pieces, down to single parts.
        let mut size = before.div_ceil(2);
        while size > 0 && shrunk.runs < most_runs {
            let parts: Vec<Part> = shrunk.keep.0.iter().copied().collect();
            for piece in parts.chunks(size) {
                shrunk.without(plan, piece, most_runs, &run);
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
    fn without(&mut self, plan: &Plan, parts: &[Part], most_runs: usize, run: &impl Fn(&Plan) -> Option<Violation>) {
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
            if let Some(violation) = run(&smaller)
                && violation.invariant == self.violation.invariant
            {
                (self.keep, self.luck, self.violation) = (fewer, luck, violation);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment::Moment;
    use crate::plan::{self, Ask};

    #[test]
    fn a_failure_keeps_only_the_parts_that_it_needs() {
        let is_large = |plan: &Plan| plan.errands.len() >= 10 && plan.faults.len() >= 5;
        let plan = (1..).map(|seed| plan::draw(seed, &Ask::default())).find(is_large).expect("a large plan");
        let (errand, fault) = (plan.errands[2].number, plan.faults[1].number);
        // Fails only with both parts, and only on a course of events that is not the first one tried.
        let run = |plan: &Plan| {
            let has_errand = plan.errands.iter().any(|part| part.number == errand);
            let has_fault = plan.faults.iter().any(|part| part.number == fault);
            (has_errand && has_fault && plan.luck.is_multiple_of(2)).then(|| Violation {
                invariant: 3,
                at: Moment::default().after(std::time::Duration::from_secs(1_000_000)),
                task: None,
                item: None,
                what: format!("{} errands", plan.errands.len()),
            })
        };
        let violation = run(&plan).expect("the whole plan fails");
        let shrunk = shrink(&plan, violation, 2_000, run);
        assert_eq!(shrunk.keep.to_string(), Keep([Part::Errand(errand), Part::Fault(fault)].into()).to_string());
        assert_eq!(shrunk.violation.what, "1 errands");
        let again = Plan { luck: shrunk.luck, ..shrunk.keep.of(&plan) };
        assert_eq!(run(&again).map(|violation| violation.what), Some(shrunk.violation.what));
    }
}

//! Replaying one seed exactly.

use redrive_sim::plan::{self, Ask, Keep, Plan};
use redrive_sim::trace;
use redrive_sim::world;

use super::Arguments;
use super::say::say;

pub(super) fn run(seed: u64, ask: &Ask, arguments: &Arguments) -> anyhow::Result<bool> {
    let plan = Plan { luck: arguments.luck, ..plan::draw(seed, ask) };
    let all = Keep::all_of(&plan);
    let keep = arguments.keep.clone().unwrap_or_else(|| all.clone());
    if let Some(unknown) = keep.0.difference(&all.0).next() {
        anyhow::bail!(
            "the plan of seed {seed} has no part {unknown}: it was drawn for other arguments, or by other code"
        );
    }
    anyhow::ensure!(!keep.0.is_empty(), "--keep names no part of the plan");
    Ok(explain(&plan, &keep, arguments.whole))
}

/// Runs these parts of a plan and prints what happened. Returns whether every invariant held.
pub(super) fn explain(plan: &Plan, keep: &Keep, is_whole: bool) -> bool {
    let (shape, kept) = (&plan.shape, keep.of(plan));
    say!(
        "seed {}: {} {}, {} store, families {}, {:.2} hours of trouble; errands: {}, faults: {}",
        plan.seed,
        shape.nodes,
        if shape.nodes == 1 { "node" } else { "nodes" },
        if shape.exclusive { "embedded" } else { "shared" },
        shape.families,
        shape.trouble.as_secs_f64() / 3_600.0,
        kept.errands.len() + kept.records.len(),
        kept.faults.len(),
    );
    let run = world::run(&kept, true);
    let item = run.violation.as_ref().and_then(|violation| violation.item.as_deref());
    if is_whole || run.violation.is_some() {
        say!("{}", trace::render(&run.lines, item.filter(|_| !is_whole)).trim_end());
    }
    match &run.violation {
        Some(violation) => say!("broken: {violation}"),
        None => {
            say!("every invariant held{}", if is_whole { "" } else { " (--whole prints every event)" });
            say!("{}", run.tally.to_string().trim_end());
        }
    }
    say!("trace hash {:016x}", run.hash);
    run.violation.is_none()
}

//! Replaying one seed exactly.

use redrive_sim::plan::{self, Ask, Keep, Plan};
use redrive_sim::trace;
use redrive_sim::world;

use super::Arguments;

pub(super) fn run(seed: u64, ask: &Ask, arguments: &Arguments) -> anyhow::Result<bool> {
    let plan = Plan { luck: arguments.luck, ..plan::draw(seed, ask) };
    let keep = arguments.keep.clone().unwrap_or_else(|| Keep::all_of(&plan));
    Ok(explain(&plan, &keep, arguments.whole))
}

/// Runs these parts of a plan and prints what happened; says whether every invariant held.
pub(super) fn explain(plan: &Plan, keep: &Keep, is_whole: bool) -> bool {
    let shape = &plan.shape;
    println!(
        "seed {}: {} {}, {} store, faults {}, {:.2} hours of trouble, {} errands, {} faults",
        plan.seed,
        shape.nodes,
        if shape.nodes == 1 { "node" } else { "nodes" },
        if shape.exclusive { "embedded" } else { "shared" },
        shape.families,
        shape.trouble.as_secs_f64() / 3_600.0,
        plan.errands.len(),
        plan.faults.len(),
    );
    let run = world::run(&keep.of(plan), true);
    let item = run.violation.as_ref().and_then(|violation| violation.item.as_deref());
    if is_whole || run.violation.is_some() {
        print!("{}", trace::render(&run.lines, item.filter(|_| !is_whole)));
    }
    match &run.violation {
        Some(violation) => println!("broken: {violation}"),
        None => {
            println!("every invariant held");
            print!("{}", run.tally);
        }
    }
    println!("trace hash {:016x}", run.hash);
    run.violation.is_none()
}

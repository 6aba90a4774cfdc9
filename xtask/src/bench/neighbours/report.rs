//! Prints the results for people.

use super::super::report::{millis, print_goals, print_machine, ratio};
use super::Neighbours;
use super::comparison::Comparison;
use crate::stats::Spread;
use crate::table::Table;

/// Prints everything that was measured.
pub fn print(results: &Neighbours) {
    print_machine(&results.machine);
    if !results.comparisons.is_empty() {
        println!(
            "\n{}: {} healthy lanes alone and beside bad dependencies with {} tasks in all (medians of {} rounds)",
            results.store, results.lanes, results.backlog, results.rounds
        );
        println!("  deliveries/s with always work to do");
        let mut table = Table::new(&[
            "bad dependencies",
            "alone",
            "beside",
            "beside/alone",
            "background: service",
            "targets",
            "unfinished",
        ]);
        results.comparisons.iter().for_each(|case| table.row(deliveries(case)));
        table.print();
        println!("  submit → wire at half of the deliveries/s that were measured alone");
        let mut table = Table::new(&[
            "bad dependencies",
            "tasks/s",
            "p50 alone",
            "p50 beside",
            "p99 alone",
            "p99 beside",
            "p99 beside/alone",
            "did not arrive",
        ]);
        results.comparisons.iter().for_each(|case| table.row(latencies(case)));
        table.print();
        let compared = results.comparisons.iter().filter_map(|case| Some((case, case.guards?)));
        let mut table = Table::new(&["beside", "deliveries/s, guards on/off", "p99 submit → wire, guards on/off"]);
        let rows: Vec<_> = compared.map(|(case, of)| vec![name(case), ratio(&of.deliveries), ratio(&of.p99)]).collect();
        if !rows.is_empty() {
            println!("  all guards on against all of them off, both beside the bad dependencies");
            rows.into_iter().for_each(|row| table.row(row));
            table.print();
        }
        println!("  background: cores that the bad dependencies' own work took, of {}", results.machine.cores);
        println!("  unfinished: tasks that had not ended after a round; with none, the backlog ran out");
    }
    for (kind, dependencies) in &results.skipped {
        println!("  {dependencies} {}: skipped, this redrive has no `serve --dns-server`", kind.name());
    }
    if let Some(burst) = &results.burst {
        println!("\n{} healthy tasks due at one moment, until the last is delivered", burst.tasks);
        let mut table = Table::new(&["lanes", "seconds", "min–max", "tasks/s", "early"]);
        for of in &burst.lanes {
            let took = Spread::of(of.seconds.iter().copied());
            table.row(vec![
                of.lanes.to_string(),
                format!("{:.2}", took.median),
                format!("{:.2}–{:.2}", took.min, took.max),
                format!("{:.0}", burst.tasks as f64 / took.median),
                of.early.to_string(),
            ]);
        }
        table.print();
    }
    print_goals(&results.goals);
}

fn name(case: &Comparison) -> String {
    format!("{} {}", case.dependencies, case.kind.name())
}

fn deliveries(case: &Comparison) -> Vec<String> {
    vec![
        name(case),
        format!("{:.0}", case.median(|round| round.alone.deliveries_per_second)),
        format!("{:.0}", case.median(|round| round.beside.deliveries_per_second)),
        format!("{:.3} ({:.3}–{:.3})", case.deliveries.median, case.deliveries.min, case.deliveries.max),
        format!("{:.2}", case.median(|round| round.background.service_cores)),
        format!("{:.2}", case.median(|round| round.background.target_cores)),
        format!("{:.0}", case.median(|round| round.unfinished as f64)),
    ]
}

fn latencies(case: &Comparison) -> Vec<String> {
    vec![
        name(case),
        format!("{:.0}", case.median(|round| round.alone.open_loop_rate)),
        millis(case.median(|round| round.alone.submit_to_wire.p50_us as f64) as i64),
        millis(case.median(|round| round.beside.submit_to_wire.p50_us as f64) as i64),
        millis(case.median(|round| round.alone.submit_to_wire.p99_us as f64) as i64),
        millis(case.median(|round| round.beside.submit_to_wire.p99_us as f64) as i64),
        ratio(&case.p99),
        format!("{:.0}", case.median(|round| round.beside.missing as f64)),
    ]
}

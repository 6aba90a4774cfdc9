//! Prints the results for people: a table per measurement, and the goals at the end.

use super::goals::Goal;
use super::machine::Machine;
use super::results::{Measured, Results};
use crate::stats::{Latency, Spread};
use crate::table::Table;

const MIB: f64 = 1024.0 * 1024.0;

/// Prints everything that was measured.
pub fn print(results: &Results) {
    print_machine(&results.machine);
    print_pipeline(results);
    if let Some(cost) = &results.feature_cost {
        let [on, off] = [&cost.on, &cost.off].map(|rates| Spread::of(rates.iter().copied()));
        println!(
            "\npipeline on {}, tasks/s: {} on {:.0}, off {:.0} (medians)",
            cost.store,
            cost.feature.name(),
            on.median,
            off.median
        );
        println!("  on/off {}; CPU per task, on/off {}", ratio(&cost.ratio), ratio(&cost.cpu_ratio));
    }
    if let Some(scrapes) = &results.scrapes {
        println!(
            "\na scrape after deliveries to {} dependencies: {:.2} MB, {} samples, {:.1} ms ({:.1}–{:.1}), {:.1} ms of CPU",
            scrapes.dependencies,
            scrapes.bytes as f64 / 1e6,
            scrapes.samples,
            scrapes.millis.median,
            scrapes.millis.min,
            scrapes.millis.max,
            scrapes.cpu_millis
        );
    }
    if let Some(latency) = &results.due_to_wire {
        let schedule = if results.has_redis { " with the schedule in Redis" } else { "" };
        let top = latency.top_rate.map(|top| format!(", top rate of delayed tasks {top:.0}/s")).unwrap_or_default();
        println!("\ndue → on the wire, {}{schedule}, at {:.0} tasks/s{top}", latency.store, latency.rate);
        let mut table = Table::new(&["", "p50", "p99", "worst", "earliest", "tasks"]);
        table.row(latency_row("with a delay: from its due time", &latency.delayed));
        table.row(latency_row("due at once: from the submission", &latency.at_once));
        table.row(latency_row("acknowledged: from the submission", &latency.submit));
        table.print();
        println!("  {} of the delayed tasks arrived before they were due", latency.early);
    }
    print_preloads(results);
    if let Some(lane) = &results.dead_lane {
        println!(
            "\na dead lane with {} due tasks ({} sends hang; filled in {:.1} s): the other lanes deliver",
            lane.tasks, lane.hanging, lane.fill_seconds
        );
        println!(
            "  without {:.0}/s, with {:.0}/s, ratio {}",
            lane.without.median,
            lane.with.median,
            ratio(&lane.ratio)
        );
    }
    if let Some(idle) = &results.idle {
        println!(
            "\nidle with {} waiting lanes: {:.2} % of a core, {:.1} wake-ups/s, {:.0} MiB resident",
            idle.lanes,
            idle.core * 100.0,
            idle.wakeups_per_second,
            idle.rss_bytes as f64 / MIB
        );
        if let Some(rate) = idle.transactions_per_second {
            let core = idle.database_core.unwrap_or_default() * 100.0;
            println!("  {rate:.2} transactions/s on the database, {core:.2} % of a core");
        }
    }
    print_goals(&results.goals);
}

/// Prints the figures of the machine.
pub fn print_machine(machine: &Machine) {
    println!(
        "\nmachine: {} cores, load average {:.2}, fdatasync of 4 KiB p50 {} p99 {}",
        machine.cores,
        machine.load_average,
        millis(machine.sync.p50_us),
        millis(machine.sync.p99_us)
    );
    if machine.load_average > machine.cores as f64 / 2.0 {
        println!("  others were at work on it: the ratios are noisy and the absolute figures low");
    }
}

fn print_pipeline(results: &Results) {
    if results.variants.is_empty() {
        return;
    }
    let schedule = if results.has_redis { "; postgres with its schedule in Redis" } else { "" };
    println!("\npipeline: submit → deliver → settle (median of rounds{schedule})");
    let mut table = Table::new(&[
        "",
        "tasks/s",
        "min–max",
        "accepted/s",
        "backlog",
        "CPU µs/task",
        "database's",
        "machine µs/task",
        "submit p50",
        "submit p99",
        "peak MiB",
    ]);
    for variant in &results.variants {
        let median = |of: fn(&super::pipeline::Round) -> f64| Spread::of(variant.rounds.iter().map(of)).median;
        let Measured { name, tasks_per_second: rate, .. } = variant;
        table.row(vec![
            name.clone(),
            format!("{:.0}", rate.median),
            format!("{:.0}–{:.0}", rate.min, rate.max),
            format!("{:.0}", median(|round| round.accepted_per_second)),
            format!("{:.0}", median(|round| round.backlog as f64)),
            format!("{:.1}", median(|round| round.cpu_us_per_task)),
            format!("{:.1}", median(|round| round.database_cpu_us_per_task)),
            format!("{:.1}", median(|round| round.machine_cpu_us_per_task)),
            millis(median(|round| round.submit.p50_us as f64) as i64),
            millis(median(|round| round.submit.p99_us as f64) as i64),
            format!("{:.0}", median(|round| round.peak_rss_bytes as f64 / MIB)),
        ]);
    }
    table.print();
    if let Some(ratios) = &results.ratios {
        println!(
            "  sqlite/memory {}   sqlite/ceiling {}   memory/ceiling {}",
            ratio(&ratios.sqlite_to_memory),
            ratio(&ratios.sqlite_to_ceiling),
            ratio(&ratios.memory_to_ceiling)
        );
        for (name, spread) in &ratios.postgres_to_memory {
            println!("  {name}/memory {}", ratio(spread));
        }
    }
}

fn print_preloads(results: &Results) {
    if let Some(ended) = &results.ended {
        println!("\n{} ended tasks in the store ({:.0} MiB on disk)", ended.tasks, ended.disk_bytes as f64 / MIB);
        let mut table = Table::new(&["", "empty", "full", "full/empty"]);
        for (what, empty, full, of) in [
            ("store: life cycles/s", &ended.store_empty, &ended.store_full, &ended.store_ratio),
            ("pipeline: tasks/s", &ended.pipeline_empty, &ended.pipeline_full, &ended.pipeline_ratio),
        ] {
            let [empty, full] = [empty, full].map(|rate| format!("{:.0}", rate.median));
            table.row(vec![what.to_owned(), empty, full, ratio(of)]);
        }
        table.print();
    }
    if let Some(pending) = &results.pending {
        println!(
            "\n{} pending tasks in {} lanes ({:.0} MiB on disk): listens after {:.2} s, first send after {:.2} s, \
             {:.0} MiB resident (peak {:.0})",
            pending.tasks,
            pending.lanes,
            pending.disk_bytes as f64 / MIB,
            pending.listen_seconds,
            pending.first_send_seconds,
            pending.rss_bytes as f64 / MIB,
            pending.peak_rss_bytes as f64 / MIB
        );
    }
}

/// Prints which goals were reached.
pub fn print_goals(goals: &[Goal]) {
    println!("\ngoals");
    let mut table = Table::new(&["", "goal", "measured", ""]);
    for goal in goals {
        let verdict = match goal.reached {
            Some(true) => "reached",
            Some(false) => "NOT REACHED",
            None => "",
        };
        let measured = goal.measured.clone().unwrap_or_else(|| "not measured".to_owned());
        table.row(vec![goal.what.clone(), goal.goal.to_owned(), measured, verdict.to_owned()]);
    }
    table.print();
}

fn latency_row(what: &str, latency: &Latency) -> Vec<String> {
    let [p50, p99, max, min] = [latency.p50_us, latency.p99_us, latency.max_us, latency.min_us].map(millis);
    vec![what.to_owned(), p50, p99, max, min, latency.samples.to_string()]
}

/// Milliseconds, from microseconds.
pub fn millis(micros: i64) -> String {
    format!("{:.2} ms", micros as f64 / 1e3)
}

/// A ratio, with the smallest and the largest.
pub fn ratio(spread: &Spread) -> String {
    format!("{:.2} ({:.2}–{:.2})", spread.median, spread.min, spread.max)
}

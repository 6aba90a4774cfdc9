//! The history of one task, to find out what went wrong.

use super::history::{Deed, History, Said};

/// The most lines of a history.
const LONGEST: usize = 80;

/// Everything that is known of a task, in the order of time, with the faults and the nodes' log lines in between.
pub fn of_task(history: &History, id: &str, logs: &[(String, String)]) -> Vec<String> {
    let mut facts = facts(history, id);
    let span = facts.iter().map(|(at, _)| *at).fold((u64::MAX, 0), |(from, to), at| (from.min(at), to.max(at)));
    let faults = history.faults.iter().filter(|fault| (span.0..=span.1).contains(&fault.at));
    facts.extend(faults.map(|fault| (fault.at, format!("    {}", fault.what))));
    let pauses = history.pauses.iter().filter(|pause| (span.0..=span.1).contains(&pause.until));
    facts.extend(pauses.map(|pause| (pause.until, format!("    {} goes on", pause.node))));
    facts.sort();
    let begin = history.faults.first().map_or(span.0, |fault| fault.at.min(span.0));
    let mut lines: Vec<String> =
        facts.into_iter().map(|(at, what)| format!("{:>10.3} s  {what}", (at - begin) as f64 / 1e6)).collect();
    if let Some(kept) = history.end.kept.get(id) {
        let task = &kept.task;
        lines.push(format!("       end:  {} in run {} at attempt {}", task.status, task.run, task.attempt_number));
        for attempt in &kept.attempts {
            let began = (attempt.started_at * 1_000).saturating_sub(begin) as f64 / 1e6;
            let (number, outcome, answer) = (attempt.attempt_number, &attempt.outcome, attempt.response_status);
            lines.push(format!("       log:  attempt {number} claimed at {began:.3} s: {outcome}, {answer:?}"));
        }
        lines.push(format!("    tokens:  {:?}", history.end.tokens.get(id)));
    }
    for (file, text) in logs {
        let said = text.lines().filter(|line| line.contains(id)).map(|line| format!("{file}: {line}"));
        lines.extend(said);
    }
    let left_out = lines.len().saturating_sub(LONGEST);
    lines.truncate(LONGEST);
    if left_out > 0 {
        lines.push(format!("… and {left_out} lines more"));
    }
    lines
}

fn facts(history: &History, id: &str) -> Vec<(u64, String)> {
    let mut facts = Vec::new();
    for answer in history.answers.iter().filter(|answer| answer.said.task() == id) {
        let said = match answer.said {
            Said::Created(_) => "created",
            Said::Known(_) => "known",
            Said::Reused(_) => "refused, another request has its key",
        };
        facts.push((answer.at, format!("{} (request {}): {said}", answer.key, answer.variant)));
    }
    for seen in history.sightings.iter().filter(|seen| seen.id == id) {
        let asked = match seen.by {
            Deed::Look => "seen",
            Deed::Cancel => "cancelled",
            Deed::RetryNow => "brought forward",
            Deed::Replay => "replayed",
        };
        let what = seen.task.as_ref().map_or_else(
            || "not found".to_owned(),
            |task| format!("{asked}: {}, run {}, attempt {}", task.status, task.run, task.attempt_number),
        );
        facts.push((seen.at, what));
    }
    for at in history.replays_asked.get(id).into_iter().flatten() {
        facts.push((*at, "a replay is asked for".to_owned()));
    }
    for arrival in history.arrivals.iter().filter(|arrival| arrival.task == id) {
        facts.push((arrival.at, format!("attempt {} arrives, answered {:?}", arrival.attempt, arrival.answered)));
    }
    facts
}

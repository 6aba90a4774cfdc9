//! The command line that repeats a run, for the report.
//!
//! It is put together from what was understood, not from what was typed, and names the seed even if it was not given.
//! It leaves out where the result goes (`--out`, `--json`): who repeats a run should not write over a file by that.

use redrive_core::duration::duration_text;
use redrive_scenario::{Latencies, Outage};

use super::{Args, Scenario};

/// The command, quoted for a shell.
pub(super) fn command(args: &Args) -> String {
    let mut words = vec!["redrive".to_owned(), "simulate".to_owned()];
    // A contender that looks like an option has to stand behind all options.
    let dashed = args.contenders.iter().any(|contender| contender.starts_with('-'));
    if !dashed {
        words.extend(args.contenders.iter().cloned());
    }
    words.extend(options(args));
    if dashed {
        words.push("--".to_owned());
        words.extend(args.contenders.iter().cloned());
    }
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

fn options(args: &Args) -> Vec<String> {
    let mut words = Vec::new();
    let mut option = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            words.extend([format!("--{name}"), value]);
        }
    };
    option("scenario", (args.scenario == Scenario::Occ).then(|| "occ".to_owned()));
    option("clients", args.clients.map(|clients| clients.to_string()));
    option("over", args.over.map(duration_text));
    option("capacity", args.capacity.map(|capacity| capacity.to_string()));
    option("queue", args.queue.map(|queue| queue.to_string()));
    option("latency", args.latency.map(latency));
    for one in &args.outages {
        option("outage", Some(one.as_ref().map_or_else(|| "none".to_owned(), outage)));
    }
    option("retry-after", args.retry_after.map(duration_text));
    option("concurrency", args.concurrency.map(|limit| limit.to_string()));
    option("runs", args.runs.map(|runs| runs.to_string()));
    option("until", args.until.map(duration_text));
    option("file", args.file.as_ref().map(|file| file.display().to_string()));
    option("seed", Some(args.seed.to_string()));
    let flags = [("--budget", args.budget), ("--breaker", args.breaker)];
    words.extend(flags.into_iter().filter(|(_, given)| *given).map(|(flag, _)| flag.to_owned()));
    words
}

fn latency(latency: Latencies) -> String {
    match latency {
        Latencies::Constant(latency) => duration_text(latency),
        Latencies::LogNormal { median, p99 } => format!("{},{}", duration_text(median), duration_text(p99)),
    }
}

fn outage(outage: &Outage) -> String {
    format!("{}..{}:{}", duration_text(outage.from), duration_text(outage.to), outage.manner.as_str())
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.,:=+/@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn repeated(words: &[&str]) -> String {
        command(&Line::try_parse_from([&["simulate"], words].concat()).unwrap().args)
    }

    #[test]
    fn the_command_repeats_what_was_understood_and_names_the_seed() {
        for (words, expected) in [
            (&[][..], "redrive simulate --seed 1"),
            (&["--out", "page.html", "--json", "--seed=7"], "redrive simulate --seed 7"),
            (
                &["it's:sync,maxAttempts=2+budget", "--clients", "20", "--over", "90s", "--budget", "default"],
                r"redrive simulate 'it'\''s:sync,maxAttempts=2+budget' default --clients 20 --over 90s --seed 1 --budget",
            ),
            (
                &[
                    "--capacity",
                    "400/s",
                    "--queue=0",
                    "--latency",
                    "20ms,1s",
                    "--outage",
                    "1s..2s",
                    "--retry-after",
                    "3s",
                ],
                "redrive simulate --capacity 400 --queue 0 --latency 20ms,1s --outage 1s..2s:refuse --retry-after 3s --seed 1",
            ),
            (
                &["--outage", "none", "--breaker", "--concurrency", "9", "--until", "1m"],
                "redrive simulate --outage none \
              --concurrency 9 --until 1m --seed 1 --breaker",
            ),
            (&["--scenario", "occ", "--runs", "5"], "redrive simulate --scenario occ --runs 5 --seed 1"),
            (
                &["--file", "my policies.toml", "--", "-x:default"],
                "redrive simulate --file 'my policies.toml' --seed 1 -- \
              -x:default",
            ),
            (&["[\"$HOME\"]:default"], "redrive simulate '[\"$HOME\"]:default' --seed 1"),
        ] {
            assert_eq!(repeated(words), expected);
        }
    }
}

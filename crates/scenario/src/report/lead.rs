//! The beginning of the page: what was simulated, and how to do it again.

use std::cmp::Reverse;

use super::number::{count, duration, percent, times};
use super::text::{escape, words};
use crate::latency::Latencies;
use crate::story::{Comparison, Story};
use crate::world::{Outage, OutageKind, World};

/// The headline, what was simulated, what came out in a sentence, and the command.
pub(super) fn lead(comparison: &Comparison, command: &str) -> String {
    format!(
        "<header>\n<p class=\"over\">redrive simulate</p>\n<h1>{}</h1>\n<p class=\"lead\">{}</p>\n{}\
         <div class=\"again\"><p>Seed {}. The same seed gives the same numbers again, on any machine:</p>\
         <pre tabindex=\"0\"><code>{}</code></pre></div>\n</header>\n",
        headline(comparison),
        escape(&what(&comparison.world)),
        in_short(comparison).map_or_else(String::new, |short| format!("<p class=\"short\">{}</p>\n", escape(&short))),
        comparison.seed,
        words(command),
    )
}

/// The page's title, and its headline.
pub(super) fn headline(comparison: &Comparison) -> String {
    let who = match comparison.stories.len() {
        1 => "What one retry policy does".to_owned(),
        several => format!("What {} retry policies do", in_words(several)),
    };
    let down = comparison.world.outages.iter().map(|outage| outage.to - outage.from).sum();
    match comparison.world.outages.len() {
        0 => format!("{who} to a dependency under load"),
        1 => format!("{who} in an outage of {}", duration(down)),
        several => format!("{who} in {} outages, {} in all", in_words(several), duration(down)),
    }
}

fn in_words(number: usize) -> String {
    const WORDS: [&str; 9] = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight"];
    WORDS.get(number).map_or_else(|| number.to_string(), |word| (*word).to_owned())
}

/// The world in words.
fn what(world: &World) -> String {
    let clients = if world.clients == 1 {
        "One client makes one request".to_owned()
    } else {
        format!("{} clients make one request each", count(u64::from(world.clients)))
    };
    let when = match duration(world.over) {
        _ if world.over.is_zero() => "all at once".to_owned(),
        over => format!("spread at random over {over}"),
    };
    let latency = match world.latency {
        Latencies::Constant(latency) => format!("takes {} for each", duration(latency)),
        Latencies::LogNormal { median, p99 } => {
            format!("takes {} for half of them and up to {} for 99\u{a0}%", duration(median), duration(p99))
        }
    };
    let mut text = format!(
        "{clients}, {when}, of one dependency that serves {} calls per second and {latency}. Up to {} more may wait in its \
         queue, any beyond that get a 503{}.",
        count(u64::from(world.capacity)),
        count(u64::from(world.queue)),
        world.retry_after.map_or_else(String::new, |after| format!(" with a Retry-After of {}", duration(after))),
    );
    text.push_str(&outages(&world.outages));
    text
}

/// How many outages are named before the rest is summed up.
const NAMED: usize = 3;

fn outages(outages: &[Outage]) -> String {
    let one = |outage: &Outage| {
        let manner = match outage.manner {
            OutageKind::Refuse => "connections are refused",
            OutageKind::Hang => "calls hang until they time out",
            OutageKind::Fail => "every call is answered 503",
        };
        format!("from {} to {} ({manner})", duration(outage.from), duration(outage.to))
    };
    if outages.is_empty() {
        return " It is never down.".to_owned();
    }
    let named: Vec<_> = outages.iter().take(NAMED).map(one).collect();
    let rest = match outages.len().saturating_sub(NAMED) {
        0 => String::new(),
        rest => format!(", and {rest} more times"),
    };
    format!(" It is down {}{rest}.", named.join(", "))
}

/// The result in a sentence or two: the contender with the highest peak after recovery, and the one with the most
/// successful requests, soonest. If that is the same one, the one with the lowest peak.
fn in_short(comparison: &Comparison) -> Option<String> {
    let peak = |story: &Story| story.totals.peak_after_outage.unwrap_or(story.totals.peak).calls;
    // The first of several that are alike.
    let stories = || comparison.stories.iter().rev();
    let hardest = stories().max_by_key(|story| (peak(story), Reverse(story.totals.succeeded)))?;
    let best = stories()
        .max_by_key(|story| (story.totals.succeeded, Reverse(story.completion.p99()), Reverse(peak(story))))?;
    let gentlest = stories().min_by_key(|story| (peak(story), Reverse(story.totals.succeeded)))?;
    let other = if std::ptr::eq(best, hardest) { gentlest } else { best };
    let capacity = f64::from(comparison.world.capacity);
    let when = if comparison.world.outages.is_empty() { "At its peak" } else { "After recovery" };
    let tell = |story: &Story| {
        let calls = peak(story);
        let (name, succeed) = (&story.contender.name, percent(story.totals.succeeded, story.totals.requests));
        let within = story.completion.p99().map(|most| format!(", 99 % of these within {}", duration(most)));
        let made = match calls {
            0 => "no calls any more".to_owned(),
            _ => format!(
                "up to {} calls per second, {} the capacity",
                count(u64::from(calls)),
                times(f64::from(calls) / capacity)
            ),
        };
        format!("“{name}” makes {made}, and {succeed} of its requests succeed{}.", within.unwrap_or_default())
    };
    match comparison.stories.len() {
        1 => Some(format!("{when}, {}", tell(hardest))),
        _ if peak(hardest) == peak(other) => None,
        _ => Some(format!("{when}, {} {}", tell(hardest), tell(other))),
    }
}

#[cfg(test)]
mod tests {
    use redrive_core::policy::Policy;

    use super::*;
    use crate::story::{Bucket, Completion, Peak, Totals};
    use crate::{Contender, World};

    #[test]
    fn in_short_it_names_who_hits_the_hardest_for_the_least_and_who_sees_the_most_through_most_gently() {
        let story = |(name, calls, succeeded): (&str, u32, u64)| Story {
            contender: Contender::new(name, Policy::default()),
            buckets: Vec::new(),
            later: Bucket::default(),
            totals: Totals {
                requests: 100,
                succeeded,
                peak_after_outage: Some(Peak { calls, ..Peak::default() }),
                ..Totals::default()
            },
            completion: Completion::default(),
        };
        // Name, peak and successes of each; who is named.
        for (stories, expected) in [
            (vec![("a", 900, 5), ("b", 900, 15), ("c", 300, 100), ("d", 20, 100)], Some(("a", "d"))),
            (vec![("a", 900, 100), ("b", 300, 50), ("c", 20, 10)], Some(("a", "c"))),
            (vec![("a", 900, 20), ("b", 0, 0)], Some(("a", "b"))),
            (vec![("a", 900, 20), ("b", 300, 90), ("c", 0, 0)], Some(("a", "b"))),
            (vec![("a", 300, 20), ("b", 300, 90)], None),
        ] {
            let stories: Vec<_> = stories.into_iter().map(story).collect();
            let comparison =
                Comparison { seed: 1, world: World::default(), bucket: std::time::Duration::from_secs(1), stories };
            let short = in_short(&comparison);
            let named = short.as_ref().map(|short| {
                let mut names = short.split('“').skip(1).map(|part| &part[..1]);
                (names.next().unwrap(), names.next().unwrap())
            });
            assert_eq!(named, expected, "{short:?}");
        }
    }
}

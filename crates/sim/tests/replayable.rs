//! Replays are exact: a seed runs the same way every time, and nothing in the simulated code draws from another source.

#![allow(clippy::unwrap_used, reason = "a file that cannot be read is a failed test")]

use std::fs;
use std::path::{Path, PathBuf};

use redrive_sim::plan::{self, Ask, Families, Family, Keep};
use redrive_sim::world;

#[test]
fn the_same_seed_has_the_same_trace_hash_twice() {
    let mut hashes = Vec::new();
    for seed in 1..=12 {
        let plan = plan::draw(seed, &Ask { hours: Some(0.5), ..Ask::default() });
        let (first, second) = (world::run(&plan, false), world::run(&plan, true));
        assert_eq!(first.violation.map(|violation| violation.to_string()), None, "seed {seed}");
        assert_eq!((first.hash, first.tally), (second.hash, second.tally), "seed {seed}");
        assert!(!second.lines.is_empty(), "seed {seed}");
        hashes.push(first.hash);
    }
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 12, "another seed is another world");
}

#[test]
fn the_same_seed_has_the_same_trace_hash_on_another_thread() {
    let hash = || world::run(&plan::draw(3, &Ask { hours: Some(0.5), ..Ask::default() }), false).hash;
    let here = hash();
    let there = std::thread::scope(|scope| scope.spawn(hash).join().unwrap());
    assert_eq!(here, there);
}

#[test]
fn a_part_that_is_left_out_leaves_the_others_as_they_were() {
    let families = Some(Families::of([Family::Crash, Family::Dependency]));
    let ask = Ask { families, ..Ask::default() };
    let plan = plan::draw(5, &ask);
    let all = Keep::all_of(&plan);
    let kept: Keep = all.to_string().parse().unwrap();
    assert_eq!(kept, all);
    let mut fewer = all.clone();
    let gone = fewer.0.pop_first().unwrap();
    let smaller = fewer.of(&plan);
    assert!(!Keep::all_of(&smaller).0.contains(&gone));
    assert_eq!(format!("{:?}", all.of(&plan)), format!("{plan:?}"));
}

/// `select!` polls its branches in random order unless it is `biased`. Clippy cannot detect that.
#[test]
fn every_select_in_simulated_code_is_biased() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let simulated =
        ["engine/src", "store/src", "server/src/alerts", "server/src/operations", "server/src/intake", "sim/src"];
    let mut selects = 0;
    for file in simulated.iter().flat_map(|directory| sources(&crates.join(directory))) {
        let text = fs::read_to_string(&file).unwrap();
        for (at, _) in text.match_indices("select!") {
            selects += 1;
            let first = text[at..].lines().nth(1).unwrap_or_default().trim();
            assert_eq!(first, "biased;", "{}: {}", file.display(), text[at..].lines().next().unwrap_or_default());
        }
    }
    assert!(selects >= 10, "only {selects} were found: are they written differently now?");
}

fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

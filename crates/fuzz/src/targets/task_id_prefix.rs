//! The beginning of a task's id, which people type instead of the whole id.

use fastrand::Rng;
use redrive_core::{TaskId, TaskIdPrefix};

use crate::target::Target;

pub(crate) const TARGET: Target = Target {
    name: "task-id-prefix",
    what: "the beginning of a task's id, and a whole id beside it",
    run,
    samples,
    words: &["-", " ", "7", "8", "b", "c", "F", "0000", "ffff", "01a1e0fa-0fc2-7", "{", "urn:uuid:", "ä", "٣"],
    generate,
    max_bytes: 100,
};

/// The lowest and the highest id.
const ENDS: [&str; 2] = ["00000000-0000-7000-8000-000000000000", "ffffffff-ffff-7fff-bfff-ffffffffffff"];

fn samples() -> Vec<Vec<u8>> {
    let id = "01a1e0fa-0fc2-7012-b400-9fbd5c39023f";
    ["0", "01a1e0fa-0fc2", "01A1E0FA-0fc2-", "01a1e0fa-0fc2-7012-b", id]
        .map(|prefix| format!("{prefix} {id}").into_bytes())
        .to_vec()
}

/// The beginning of an id, with an id that begins as the first one does for a while.
fn generate(random: &mut Rng) -> Vec<u8> {
    let [one, other] = [0, 1].map(|_| TaskId::from_parts(random.u64(..), random.u64(..)).to_string());
    let (length, common) = (random.usize(..=one.len()), random.usize(..=one.len()));
    let beginning = if random.bool() { one[..length].to_uppercase() } else { one[..length].to_owned() };
    // Both have their dashes, version and variant at the same places, so that this is an id again.
    format!("{beginning} {}{}", &one[..common], &other[common..]).into_bytes()
}

fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let (beginning, id) = text.split_once(' ').unwrap_or((text, ""));
    let id = id.parse::<TaskId>().ok();
    if let Some(id) = id {
        every_beginning_includes(id);
    }
    let Ok(prefix) = beginning.parse::<TaskIdPrefix>() else {
        let begins = |id: &TaskId| !beginning.is_empty() && begins_with(*id, beginning);
        assert!(!id.as_ref().is_some_and(begins), "{beginning:?} was refused, and an id begins so");
        return;
    };
    let (first, last) = (prefix.first(), prefix.last());
    assert!(first <= last && prefix.includes(first) && prefix.includes(last), "{first} to {last}");
    assert!(begins_with(first, beginning) && begins_with(last, beginning), "{first} to {last} for {beginning:?}");
    let ends = ENDS.map(|end| end.parse().ok());
    for id in id.into_iter().chain(ends.into_iter().flatten()) {
        assert_eq!(prefix.includes(id), begins_with(id, beginning), "{id} and {beginning:?}");
    }
}

fn every_beginning_includes(id: TaskId) {
    let text = id.to_string();
    for length in 1..=text.len() {
        for beginning in [text[..length].to_owned(), text[..length].to_uppercase()] {
            let prefix: Result<TaskIdPrefix, _> = beginning.parse();
            assert!(prefix.is_ok_and(|prefix| prefix.includes(id)), "{beginning} for {id}");
        }
    }
}

fn begins_with(id: TaskId, beginning: &str) -> bool {
    id.to_string().starts_with(&beginning.to_ascii_lowercase())
}

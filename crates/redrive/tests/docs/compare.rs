//! What a document shows against what was printed, line by line.
//!
//! `…` on a line of its own stands for any number of lines, within a line for any characters. What differs from run to run
//! is made equal on both sides before: ids, measured times, and the number of attempts that a task needed.

/// What is compared literally, and what may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exactness {
    /// Every character: for commands that print the same every time.
    Exact,
    /// Ids, measured times and numbers of attempts may differ.
    Varying,
}

/// Compares; an error says what was expected and what was printed.
pub(crate) fn compare(expected: &[&str], printed: &str, exactness: Exactness) -> Result<(), String> {
    let comparable = |line: &str| match exactness {
        Exactness::Exact => line.trim_end().to_owned(),
        Exactness::Varying => without_what_varies(line.trim_end()),
    };
    let pattern: Vec<String> = expected.iter().map(|line| comparable(line)).collect();
    let lines: Vec<String> = printed.trim_end().lines().map(comparable).collect();
    let is_any = |line: &String| line == "…";
    if matches(&pattern, &lines, is_any, |expected, line| line_matches(expected, line)) {
        return Ok(());
    }
    let prefixes = (0..=pattern.len()).map(|count| [&pattern[..count], &["…".to_owned()]].concat());
    let fitting =
        prefixes.take_while(|start| matches(start, &lines, is_any, |expected, line| line_matches(expected, line)));
    let wrong = expected.get(fitting.count() - 1).unwrap_or(&"the end");
    Err(format!("the document shows, where it was not printed:\n{wrong}\n\nthis was printed:\n{printed}"))
}

fn line_matches(expected: &str, line: &str) -> bool {
    let (expected, line): (Vec<char>, Vec<char>) = (expected.chars().collect(), line.chars().collect());
    matches(&expected, &line, |&character| character == '…', |expected, character| expected == character)
}

/// Whether `items` are what `pattern` says, where a part of the pattern that `is_any` stands for any number of items.
fn matches<T>(pattern: &[T], items: &[T], is_any: impl Fn(&T) -> bool, is_same: impl Fn(&T, &T) -> bool) -> bool {
    let (mut at, mut item) = (0, 0);
    // Where to go on if what follows the last "any" does not match: it takes one item more.
    let mut retry: Option<(usize, usize)> = None;
    while item < items.len() {
        match pattern.get(at) {
            Some(any) if is_any(any) => {
                retry = Some((at, item));
                at += 1;
            }
            Some(part) if is_same(part, &items[item]) => {
                at += 1;
                item += 1;
            }
            _ => match retry {
                Some((any, from)) => {
                    retry = Some((any, from + 1));
                    (at, item) = (any + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(is_any)
}

/// The line with placeholders in place of ids, measured times and numbers of attempts.
fn without_what_varies(line: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in line.split(' ') {
        let bare = word.trim_end_matches([':', ';', ',', ')']);
        let before = words.last().map_or("", String::as_str);
        let replacement = if is_uuid(bare) {
            Some("UUID")
        } else if is_measured_time(bare) {
            Some("TIME")
        } else if before == "attempt" && bare.split_once('/').is_some_and(|(n, of)| is_number(n) && is_number(of)) {
            Some("N/MAX")
        } else {
            None
        };
        words.push(replacement.map_or_else(|| word.to_owned(), |name| format!("{name}{}", &word[bare.len()..])));
    }
    for at in 1..words.len() {
        if words[at] == "attempts"
            && words[at - 1] != "1"
            && is_number(&words[at - 1])
            && at > 1
            && words[at - 2] == "after"
        {
            words[at - 1] = "N".into();
        }
    }
    words.join(" ")
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_uuid(word: &str) -> bool {
    let groups: Vec<usize> = word.split('-').map(str::len).collect();
    groups == [8, 4, 4, 4, 12] && word.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// Milliseconds and seconds are measured; minutes and more are settings.
fn is_measured_time(word: &str) -> bool {
    let number = word.strip_suffix("ms").or_else(|| word.strip_suffix('s'));
    number.is_some_and(|number| number.split_once('.').map_or(is_number(number), |(a, b)| is_number(a) && is_number(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_run_to_run_is_the_same_and_nothing_else_is() {
        use Exactness::{Exact, Varying};
        let id = "accepted 01a1e0fa-0fc2-7000-8400-9fbd5c39023f";
        for (expected, printed, exactness, is_same) in [
            (&[id][..], "accepted 01a1ebeb-30b9-7000-870c-03a0ec50e34c", Varying, true),
            (&[id], "accepted 01a1ebeb-30b9-7000-870c-03a0ec50e34c", Exact, false),
            (&[id], "accepted 01a1ebeb", Varying, false),
            (&["attempt 5/6: 200 OK after 1ms"], "attempt 3/6: 200 OK after 1.2s", Varying, true),
            (&["attempt 5/6: 200 OK after 1ms"], "attempt 3/6: 201 Created after 1ms", Varying, false),
            (&["SUCCEEDED after 5 attempts in 11s"], "SUCCEEDED after 3 attempts in 900ms", Varying, true),
            (&["FAILED after 1 attempt in 5ms"], "FAILED after 2 attempts in 5ms", Varying, false),
            (&["at most 6 attempts within 1d"], "at most 5 attempts within 1d", Varying, false),
            (&["at most 6 attempts within 1d"], "at most 6 attempts within 2d", Varying, false),
            (&["a", "…", "c"], "a\nb\nb\nc", Exact, true),
            (&["a", "…"], "a\nb\nb\nc", Exact, true),
            (&["a", "…", "b", "c"], "a\nb\nb\nc", Exact, true),
            (&["a", "…", "d"], "a\nb\nb\nc", Exact, false),
            (&["a"], "a\nb", Exact, false),
            (&["a", "b"], "a", Exact, false),
            (&["a …, c…"], "a b, cd", Exact, true),
            (&["a …, c"], "a b, cd", Exact, false),
        ] {
            assert_eq!(compare(expected, printed, exactness).is_ok(), is_same, "{expected:?} {printed:?}");
        }
    }
}

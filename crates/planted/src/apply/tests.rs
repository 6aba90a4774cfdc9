//! Tests of applying bugs to source text.

use super::*;
use crate::read;

const SOURCE: &str = "fn f(a: u32) -> u32 {\n    let b = a + 1;\n    b * 2\n}\n";

fn bugs(edits: &[(&str, &str, &str)]) -> Vec<Bug> {
    let bug = |(number, (name, find, replace)): (usize, &(&str, &str, &str))| Bug {
        number,
        name: (*name).to_owned(),
        about: String::new(),
        breaks: vec![1],
        found: None,
        edits: vec![Edit { file: "f.rs".to_owned(), find: (*find).to_owned(), replace: (*replace).to_owned() }],
    };
    edits.iter().enumerate().map(bug).collect()
}

fn applied(edits: &[(&str, &str, &str)]) -> Result<String, Vec<Mismatch>> {
    let files = apply(&bugs(edits), |file| (file == "f.rs").then(|| SOURCE.to_owned()))?;
    Ok(files["f.rs"].clone())
}

#[test]
fn what_is_wrong_takes_the_place_of_what_is_right_while_its_bug_is_switched_on() {
    let source = applied(&[("off-by-one", "a + 1", "a + 2"), ("doubled", "b * 2", "b")]);
    let expected = "fn f(a: u32) -> u32 {\n    let b = if ::redrive_planted::is(0) { a + 2 } else { a + 1 };\n    \
                    if ::redrive_planted::is(1) { b } else { b * 2 }\n}\n";
    assert_eq!(source.as_deref(), Ok(expected));
}

#[test]
fn a_replacement_may_place_its_switch_itself() {
    let source = applied(&[("off-by-one", "let b = a + 1;", "let b = a + 1 + u32::from(BUG);")]);
    let expected = SOURCE.replace("a + 1", "a + 1 + u32::from(::redrive_planted::is(0))");
    assert_eq!(source, Ok(expected));
}

#[test]
fn a_text_must_be_there_exactly_once() {
    let mismatch = |find: &str, times| Mismatch::Matches {
        bug: "it".to_owned(),
        file: "f.rs".to_owned(),
        find: find.to_owned(),
        times,
    };
    assert_eq!(applied(&[("it", "a + 2", "0")]), Err(vec![mismatch("a + 2", 0)]));
    assert_eq!(applied(&[("it", "u32", "u64")]), Err(vec![mismatch("u32", 2)]));
}

#[test]
fn two_bugs_cannot_change_the_same_text() {
    let overlap = Mismatch::Overlap { file: "f.rs".into(), first: "one".into(), second: "two".into() };
    assert_eq!(applied(&[("two", "+ 1;", ";"), ("one", "a + 1", "a")]), Err(vec![overlap]));
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let found = apply(&bugs(&[("it", "a", "b")]), |_| None);
    assert_eq!(found, Err(vec![Mismatch::NoFile { bug: "it".into(), file: "f.rs".into() }]));
}

const RECORD: &str = "[[bug]]\nname = 'a'\nabout = ''\nbreaks = [1]\n\
                      [[bug.edit]]\nfile = 'f.rs'\nfind = 'x'\nreplace = 'y'\n";

#[test]
fn invalid_records_are_refused_with_what_is_wrong() {
    let refused = |content: &str| read(&[("bugs.toml", content)]).expect_err("refused").to_string();
    assert_eq!(read(&[("bugs.toml", RECORD)]).expect("a record").len(), 1);
    assert_eq!(refused(&RECORD.repeat(2)), "two bugs are named a");
    assert_eq!(refused(&RECORD.replace("[1]", "[15]")), "the bug a breaks one or more of the invariants 1 to 14");
    assert_eq!(refused(&RECORD.replace("[1]", "[]")), "the bug a breaks one or more of the invariants 1 to 14");
    assert!(refused(&RECORD.replace("find", "fnid")).contains("bugs.toml"));
    let without_edit = RECORD.split("[[bug.edit]]").next().unwrap_or_default();
    assert_eq!(refused(&format!("{without_edit}edit = []\n")), "the bug a has no edit");
}

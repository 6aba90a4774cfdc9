//! `docs/standard.md` against the code: what it names is there, and every check is named.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use redrive_standard::rules::{Check, Gate, Rule};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    fs::read_to_string(root().join("docs/standard.md")).unwrap()
}

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The text of every Rust file below `crates`.
fn sources() -> String {
    fn read(directory: &Path, all: &mut String) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
                read(&path, all);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                all.push_str(&fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut all = String::new();
    read(&root().join("crates"), &mut all);
    all
}

#[test]
fn every_file_that_it_names_is_there() {
    let page = page();
    let files: BTreeSet<&str> = quoted(&page).filter(|text| text.ends_with(".rs")).collect();
    assert!(files.len() > 10, "{files:?}");
    for file in files {
        assert!(root().join("crates").join(file).is_file(), "there is no crates/{file}");
    }
}

#[test]
fn every_test_that_it_names_is_there() {
    let (page, sources) = (page(), sources());
    let is_name =
        |text: &&str| text.matches('_').count() >= 3 && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let metrics = ["retry_attempts_total", "retry_backoff_duration_seconds", "retry_budget_utilization_ratio"];
    let tests: BTreeSet<&str> = quoted(&page).filter(is_name).filter(|name| !metrics.contains(name)).collect();
    assert!(tests.len() > 40, "{tests:?}");
    for test in tests {
        assert!(sources.contains(&format!("fn {test}(")), "there is no test {test}");
    }
}

#[test]
fn every_check_stands_under_its_rule_and_advice_is_called_so() {
    let page = page();
    for rule in Rule::ALL {
        let heading = format!("## {}:", rule.id());
        let section = page.split("\n## ").find(|section| format!("## {section}").starts_with(&heading));
        let section = section.unwrap_or_else(|| panic!("no section {heading}"));
        for check in Check::ALL.iter().filter(|check| check.rule == rule) {
            let name = format!("`{}`", check.id);
            assert!(section.contains(&name), "{name} is not named under {rule}");
            let advice = section.contains(&format!("{name} (advice)"));
            assert_eq!(advice, check.gate == Gate::Advice, "{name}");
        }
    }
}

#[test]
fn every_gap_that_a_row_names_is_listed() {
    let page = page();
    let (rules, gaps) = page.split_once("\n## Gaps").unwrap();
    let named: BTreeSet<&str> =
        rules.split("gap: ").skip(1).map(|rest| rest.split([' ', ';', '|']).next().unwrap()).collect();
    let listed: BTreeSet<&str> = gaps
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(" | ").next())
        .filter(|gap| *gap != "gap" && *gap != "---")
        .collect();
    assert_eq!(named, listed);
}

//! For every check a file that passes, one that fails, and what people are told about the one that fails.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use redrive_standard::files::{Source, Verdict, judge, report};
use redrive_standard::rules::Check;

use super::TODAY;
use super::snapshot::is_as_blessed;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// The one file of a check that is called `stem`, whichever language it is in.
fn file(check: &str, stem: &str) -> PathBuf {
    let files = ["toml", "yaml", "json"].map(|extension| fixtures().join(check).join(format!("{stem}.{extension}")));
    let mut there = files.into_iter().filter(|file| file.exists());
    let file = there.next().unwrap_or_else(|| panic!("{check} has no {stem}.toml, .yaml or .json in its fixtures"));
    assert_eq!(there.next(), None, "{check} has more than one {stem}");
    file
}

fn verdict(file: &Path) -> Verdict {
    let name = file.file_name().unwrap().to_str().unwrap();
    judge(vec![Source::try_new(name, fs::read(file).unwrap())], TODAY.parse().unwrap())
}

fn checks(verdict: &Verdict) -> BTreeSet<&'static str> {
    verdict.findings.iter().map(|found| found.finding.check.id).collect()
}

#[test]
fn what_passes_has_no_findings_at_all() {
    for check in Check::ALL {
        let verdict = verdict(&file(check.id, "pass"));
        let printed = report::people(&verdict, false);
        assert!(verdict.findings.is_empty() && verdict.problems.is_empty(), "{}:\n{printed}", check.id);
        assert!(verdict.policies + verdict.services > 0, "{}", check.id);
    }
}

#[test]
fn what_fails_fails_this_check_and_no_other() {
    for check in Check::ALL {
        let verdict = verdict(&file(check.id, "fail"));
        let printed = report::people(&verdict, false);
        assert_eq!(checks(&verdict), BTreeSet::from([check.id]), "{}:\n{printed}", check.id);
        assert!(verdict.problems.is_empty(), "{}:\n{printed}", check.id);
    }
}

#[test]
fn people_are_told_what_the_snapshots_say() {
    for check in Check::ALL {
        let printed = report::people(&verdict(&file(check.id, "fail")), false);
        is_as_blessed(&fixtures().join(check.id).join("fail.txt"), &printed);
    }
}

#[test]
fn no_fixture_is_left_over_and_no_language_is_left_out() {
    let known: BTreeSet<_> = Check::ALL.iter().map(|check| check.id.to_owned()).collect();
    let there = fs::read_dir(fixtures()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(there.collect::<BTreeSet<_>>(), known);
    for extension in ["toml", "yaml", "json"] {
        let with = Check::ALL.iter().filter(|check| file(check.id, "fail").extension().unwrap() == extension).count();
        assert!(with * 4 >= Check::ALL.len(), "only {with} fixtures in {extension}");
    }
}

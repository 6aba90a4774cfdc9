//! The records fit the source of this tree.

use std::fs;
use std::path::Path;

use redrive_planted::{all, write_copy};

/// The root of the tree.
fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

#[test]
fn every_record_fits_and_the_copy_has_every_bug_behind_its_switch() {
    let copy = tempfile::tempdir().expect("a directory");
    write_copy(root(), copy.path()).unwrap_or_else(|error| panic!("{error}"));
    let read = |file: &str| fs::read_to_string(copy.path().join(file)).expect("a file of the copy");
    for bug in all() {
        for edit in &bug.edits {
            let switch = format!("::redrive_planted::is({})", bug.number);
            assert!(read(&edit.file).contains(&switch), "{} in {}", bug.name, edit.file);
        }
    }
    assert!(read("crates/planted/src/lib.rs").contains("IS_PLANTED: bool = true"));
    assert!(read("crates/engine/Cargo.toml").contains("redrive-planted"));

    // A file that is no longer in the tree is removed from the copy, an equal one stays, and a changed one is restored.
    let (stale, same, changed) = ("crates/core/src/stale.rs", "crates/core/src/lib.rs", "crates/core/src/decide.rs");
    let written = fs::metadata(copy.path().join(same)).and_then(|file| file.modified()).expect("a time");
    let decide = read(changed);
    fs::write(copy.path().join(stale), "").expect("a write");
    fs::write(copy.path().join(changed), "").expect("a write");
    write_copy(root(), copy.path()).unwrap_or_else(|error| panic!("{error}"));
    assert!(!copy.path().join(stale).exists());
    assert_eq!(fs::metadata(copy.path().join(same)).and_then(|file| file.modified()).expect("a time"), written);
    assert_eq!(read(changed), decide);
}

#[test]
fn the_product_does_not_know_of_the_planted_bugs() {
    for name in fs::read_dir(root().join("crates")).expect("the crates") {
        let name = name.expect("a crate").file_name();
        let manifest = fs::read_to_string(root().join("crates").join(&name).join("Cargo.toml")).expect("a manifest");
        let may_know = name == "planted" || name == "sim";
        assert!(may_know || !manifest.contains("redrive-planted"), "{}", name.display());
    }
}

//! `redrive completions`.

use super::world::{Program, redrive};

#[test]
fn every_shell_has_completions_that_know_the_commands() {
    let directory = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        Program::start(redrive(directory.path(), &["completions", shell])).end().with(0).says(&[
            "retry-now",
            "replay",
            "lane-concurrency",
        ]);
    }
    Program::start(redrive(directory.path(), &["completions", "csh"])).end().with(2).says(&["possible values: bash"]);
}

#[test]
fn bash_accepts_its_completions() {
    let directory = tempfile::tempdir().unwrap();
    let script = Program::start(redrive(directory.path(), &["completions", "bash"])).end().with(0).stdout;
    // From a file: it is longer than an argument may be.
    let file = directory.path().join("completions.bash");
    std::fs::write(&file, script).unwrap();
    let checked = std::process::Command::new("bash").arg("-n").arg(&file).status().unwrap();
    assert!(checked.success());
}

//! The recorded runs, and what they must contain.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use redrive_sim::disk::{self, Event, Fate, FileChange, Image, Recording, Report};

use crate::long_life::{ORDINARY, Which};
use crate::reopened::{DATA, directory};

/// A life in a directory that already exists.
pub(crate) fn long_life(which: Which) -> Recording {
    run(Command::new(this()).envs(which.environment()), "long_life::child", &empty_data_directory())
}

/// The life that most tests check, recorded once.
pub(crate) fn ordinary_life() -> &'static Recording {
    static RECORDED: LazyLock<Recording> = LazyLock::new(|| long_life(ORDINARY));
    &RECORDED
}

/// A life whose store makes its own directory.
pub(crate) fn life_in_a_new_directory(which: Which) -> Recording {
    run(Command::new(this()).envs(which.environment()), "long_life::child", &Image::default())
}

pub(crate) fn crowd() -> Recording {
    run(&mut Command::new(this()), "crowd::child", &empty_data_directory())
}

/// The simulated world of this seed.
pub(crate) fn simulated(seed: u64) -> Recording {
    let mut command = Command::new(this());
    run(command.env(crate::simulated::SEED, seed.to_string()), "simulated::child", &empty_data_directory())
}

/// How many marks have this prefix.
pub(crate) fn marks(recording: &Recording, beginning: &str) -> usize {
    let is_one = |event: &&Event| matches!(event, Event::Mark(mark) if mark.starts_with(beginning.as_bytes()));
    recording.events().iter().filter(is_one).count()
}

/// A store that is opened on what a crash left, and closed.
pub(crate) fn opened_again(image: &Image) -> Recording {
    run(&mut Command::new(this()), "long_life::child_that_opens", image)
}

fn this() -> PathBuf {
    std::env::current_exe().unwrap()
}

fn empty_data_directory() -> Image {
    Image { directories: [PathBuf::from(DATA)].into(), ..Image::default() }
}

/// Records a test of this executable, in a directory with this content.
fn run(child: &mut Command, role: &str, before: &Image) -> Recording {
    let directory = directory();
    before.write_to(directory.path()).unwrap();
    child.args(["--exact", role, "--ignored", "--nocapture", "--test-threads", "1"]);
    let recording = disk::record(child, directory.path()).unwrap();
    only_shared_memory_is_mapped(&recording);
    recording
}

/// Changes of a mapped file are not recorded: only a file that SQLite creates anew after a crash may be mapped.
fn only_shared_memory_is_mapped(recording: &Recording) {
    for event in recording.events() {
        if let Event::Map(node) = event {
            assert!(recording.name(*node).ends_with("-shm"), "{} is mapped", recording.name(*node));
        }
    }
}

/// How often pages were moved from the log to the database and synced there.
pub(crate) fn checkpoints(recording: &Recording) -> usize {
    let is_sync = |event: &&Event| matches!(event, Event::Sync(node) if is_database(recording.name(*node)));
    recording.events().iter().filter(is_sync).count()
}

/// How often the log was begun from its start.
pub(crate) fn log_starts(recording: &Recording) -> usize {
    let is_start = |event: &&Event| match event {
        Event::File(node, FileChange::Write { offset: 0, .. }) => recording.name(*node).ends_with("-wal"),
        _ => false,
    };
    recording.events().iter().filter(is_start).count()
}

/// How often a commit was made durable, beside the log's own starts.
pub(crate) fn log_syncs(recording: &Recording) -> usize {
    let is_sync = |event: &&Event| matches!(event, Event::Sync(node) if recording.name(*node).ends_with("-wal"));
    recording.events().iter().filter(is_sync).count()
}

/// The answer of the `sqlite3` shell to a query of the database at the end of a run.
pub(crate) fn ask_at_the_end(recording: &Recording, question: &str) -> String {
    let points = recording.crash_points();
    let directory = directory();
    recording.crash(points[points.len() - 1], Fate::Kept).image.write_to(directory.path()).unwrap();
    let mut shell = Command::new("sqlite3");
    shell.arg("-batch").arg(directory.path().join(DATA).join("redrive.db")).arg(question);
    String::from_utf8(shell.output().unwrap().stdout).unwrap().trim().to_owned()
}

/// Whether this is the database, which is created under another name.
fn is_database(name: &str) -> bool {
    name.ends_with("redrive.db") || name.ends_with("redrive.db.new")
}

pub(crate) fn describe(recording: &Recording) -> String {
    let count = |of: fn(&Event) -> bool| recording.events().iter().filter(|event| of(event)).count();
    format!(
        "{} events: {} changes of files, {} of names, {} syncs, {} marks; {} checkpoints, {} starts of the log",
        recording.events().len(),
        count(|event| matches!(event, Event::File(..))),
        count(|event| matches!(event, Event::Name(..))),
        count(|event| matches!(event, Event::Sync(_))),
        count(|event| matches!(event, Event::Mark(_))),
        checkpoints(recording),
        log_starts(recording),
    )
}

/// Panics if a crash was not survived, and leaves the first such disk to be examined.
pub(crate) fn assert_survived(what: &str, recording: &Recording, report: &Report) {
    println!("{what}: {report} ({})", describe(recording));
    let Some(first) = report.failures.first() else { return };
    let left = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("crash-{:x}", first.image.digest()));
    first.image.write_to(&left).unwrap();
    let all: Vec<_> = report.failures.iter().take(20).map(|failure| short(&failure.to_string())).collect();
    panic!("{what} was not survived; the first disk is in {}:\n{}", left.display(), all.join("\n"));
}

fn short(text: &str) -> String {
    text.chars().take(600).collect()
}

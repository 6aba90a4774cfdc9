//! Runs a child process with the recorder in front of its file operations.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use super::crash::{CrashPoint, Moment};
use super::durable::Found;
use super::fate::Fate;
use super::image::Image;
use super::log;
use super::recording::{Event, Recording};

const RECORDER: &str = include_str!("recorder.c");
const DIRECTORY: &str = "RECORDED_DIRECTORY";
const LOG: &str = "RECORDED_LOG";

/// The file for marks. It is no part of the child's work, and is in no image.
const MARKS: &str = "marks";

/// Runs `command` to its end and records its changes to the files below `directory`, which must exist; its content
/// before the run counts as durable. The child finds the directory with [`recorded_directory`].
pub fn record(command: &mut Command, directory: &Path) -> anyhow::Result<Recording> {
    let found = Found::read(directory)?;
    let tools = tempfile::tempdir().context("a place for the recorder")?;
    let library = compile(tools.path())?;
    let log = tools.path().join("log");
    File::create(&log).context("making the log")?;
    command.env("LD_PRELOAD", &library).env(DIRECTORY, directory).env(LOG, &log);
    let output = command.output().context("running the child")?;
    ensure!(
        output.status.success(),
        "the child failed ({}):\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    let recording = log::parse(&fs::read(&log).context("reading the log")?, found)?;
    nothing_was_missed(&recording, directory)?;
    Ok(recording)
}

/// Checks the recording: all changes together must make the directory that exists now. Only mapped files change
/// unrecorded.
fn nothing_was_missed(recording: &Recording, directory: &Path) -> anyhow::Result<()> {
    let mapped: BTreeSet<&Path> = recording
        .events()
        .iter()
        .filter_map(|event| match event {
            Event::Map(node) => Some(Path::new(recording.name(*node))),
            _ => None,
        })
        .collect();
    let visible = |mut image: Image| {
        image.files.retain(|path, _| path != Path::new(MARKS) && !mapped.contains(path.as_path()));
        image
    };
    let end = CrashPoint { at: recording.events().len(), moment: Moment::BetweenSyncs };
    let recorded = visible(recording.crash(end, Fate::Kept).image);
    let real = visible(Found::read(directory)?.disk.image(Fate::Kept));
    ensure!(recorded.directories == real.directories, "the recorder missed a directory");
    for path in recorded.files.keys().chain(real.files.keys()) {
        ensure!(recorded.files.get(path) == real.files.get(path), "the recorder missed a change of {}", path.display());
    }
    Ok(())
}

/// In the child: the directory that is recorded, if there is one.
pub fn recorded_directory() -> Option<PathBuf> {
    std::env::var_os(DIRECTORY).map(PathBuf::from)
}

/// Compiles the recorder. SQLite is compiled from C as well, so there is a compiler.
fn compile(directory: &Path) -> anyhow::Result<PathBuf> {
    let (source, library) = (directory.join("recorder.c"), directory.join("recorder.so"));
    fs::write(&source, RECORDER).context("writing the recorder's source")?;
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source).arg("-ldl");
    let output = compiler.output().context("running the C compiler")?;
    ensure!(output.status.success(), "compiling the recorder:\n{}", String::from_utf8_lossy(&output.stderr));
    Ok(library)
}

/// In the child: writes marks between its changes.
#[derive(Debug)]
pub struct Marks {
    file: File,
}

impl Marks {
    /// Opens the marks of the recorded directory.
    pub fn open(directory: &Path) -> io::Result<Marks> {
        let file = OpenOptions::new().create(true).append(true).open(directory.join(MARKS))?;
        Ok(Marks { file })
    }

    /// Writes a mark. In the recording, everything that the child did before comes before it.
    pub fn mark(&self, said: &[u8]) -> io::Result<()> {
        // One call, otherwise it would be two marks.
        match (&self.file).write(said)? {
            written if written == said.len() => Ok(()),
            _ => Err(io::ErrorKind::WriteZero.into()),
        }
    }
}

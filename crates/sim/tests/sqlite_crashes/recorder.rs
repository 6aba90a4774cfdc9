//! Tests of the recorder: the operations of a child are recorded, in order.

use std::fs::{self, File, OpenOptions};
use std::io::{IoSlice, Write};
use std::os::unix::fs::FileExt;
use std::process::Command;

use redrive_sim::disk::{Event, FileChange, Marks, NameChange, Node, record, recorded_directory};

#[test]
#[ignore = "the child of another test"]
fn child() {
    let directory = recorded_directory().expect("this is run by another test");
    let marks = Marks::open(&directory).unwrap();
    fs::create_dir(directory.join("below")).unwrap();
    let path = directory.join("below/file");
    let mut file = File::create(&path).unwrap();
    file.write_all(b"one").unwrap();
    assert_eq!(file.write_vectored(&[IoSlice::new(b"tw"), IoSlice::new(b"o")]).unwrap(), 3);
    marks.mark(b"written").unwrap();
    file.write_all_at(b"three", 10).unwrap();
    file.set_len(12).unwrap();
    file.sync_data().unwrap();
    let mut appending = OpenOptions::new().append(true).open(&path).unwrap();
    appending.write_all(b"end").unwrap();
    fs::rename(&path, directory.join("below/other")).unwrap();
    File::open(directory.join("below")).unwrap().sync_all().unwrap();
    // The same file under another name.
    file.sync_all().unwrap();
    File::create(directory.join("below/other")).unwrap();
    fs::remove_file(directory.join("below/other")).unwrap();
    marks.mark(b"removed").unwrap();
}

#[test]
fn what_a_child_does_is_written_down_in_order() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("before"), "here already").unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "recorder::child", "--ignored", "--test-threads", "1"]);
    let recording = record(&mut child, directory.path()).unwrap();

    let node = |name: &str| {
        let made = recording.events().iter().find_map(|event| match event {
            Event::Name(_, NameChange::Made(_, node)) => Some(*node).filter(|node| recording.name(*node) == name),
            _ => None,
        });
        made.unwrap()
    };
    let (below, file) = (node("below"), node("below/file"));
    let write = |offset, bytes: &[u8]| Event::File(file, FileChange::Write { offset, bytes: bytes.to_vec() });
    let renamed = NameChange::Renamed { from: "file".to_owned(), to: "other".to_owned(), node: file };
    let expected = [
        Event::Name(Node::ROOT, NameChange::Made("below".to_owned(), below)),
        Event::Name(below, NameChange::Made("file".to_owned(), file)),
        write(0, b"one"),
        write(3, b"two"),
        Event::Mark(b"written".to_vec()),
        write(10, b"three"),
        Event::File(file, FileChange::Resize(12)),
        Event::Sync(file),
        write(12, b"end"),
        Event::Name(below, renamed),
        Event::Sync(below),
        Event::Sync(file),
        Event::File(file, FileChange::Resize(0)),
        Event::Name(below, NameChange::Removed("other".to_owned())),
        Event::Mark(b"removed".to_vec()),
    ];
    assert_eq!(recording.events(), expected);
}

#[test]
#[ignore = "the child of another test"]
fn child_that_links() {
    let directory = recorded_directory().expect("this is run by another test");
    fs::write(directory.join("file"), "").unwrap();
    assert!(fs::hard_link(directory.join("file"), directory.join("link")).is_err());
}

#[test]
fn what_cannot_be_written_down_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "recorder::child_that_links", "--ignored", "--test-threads", "1"]);
    let refused = record(&mut child, directory.path()).unwrap_err();
    assert!(format!("{refused:#}").contains("does not understand this call: link"), "{refused:#}");
}

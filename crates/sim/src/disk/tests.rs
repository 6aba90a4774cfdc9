//! The disk's guarantees, tested on runs that were written by hand.

use std::collections::BTreeSet;
use std::path::Path;

use super::durable::{Content, Directory, Disk, File};
use super::*;

const SECTOR: usize = 512;
const FILE: Node = Node(1);

/// A run in an empty directory; node 1 is a file that has no name yet.
fn recording(events: Vec<Event>) -> Recording {
    let mut start = Disk::default();
    start.add(Content::Directory(Directory::default()));
    start.add(Content::File(File::default()));
    Recording { start, events, names: vec![String::new(), "file".to_owned()] }
}

fn made() -> [Event; 2] {
    [Event::Name(Node::ROOT, NameChange::Made("file".to_owned(), FILE)), Event::Sync(Node::ROOT)]
}

fn write(offset: usize, byte: u8, count: usize) -> Event {
    Event::File(FILE, FileChange::Write { offset, bytes: vec![byte; count] })
}

fn resize(length: usize) -> Event {
    Event::File(FILE, FileChange::Resize(length))
}

/// The images that a crash at the end of a run may leave.
fn images(events: impl IntoIterator<Item = Event>) -> Vec<Image> {
    let recording = recording(events.into_iter().collect());
    let end = CrashPoint { at: recording.events().len(), moment: Moment::BetweenSyncs };
    let fates = [Fate::Lost, Fate::Kept].into_iter().chain((0..500).map(Fate::Mixed));
    fates.map(|fate| recording.crash(end, fate).image).collect()
}

/// What the file may hold after a crash at the end of a run that makes its name durable.
fn contents(events: impl IntoIterator<Item = Event>) -> BTreeSet<Vec<u8>> {
    let all = images(made().into_iter().chain(events));
    all.into_iter().map(|mut image| image.files.remove(Path::new("file")).unwrap()).collect()
}

#[test]
fn what_was_synced_is_there_whatever_the_fate() {
    let content = [vec![1; 1_000], vec![2; 1_000]].concat();
    assert_eq!(contents([write(0, 1, 1_000), write(1_000, 2, 1_000), Event::Sync(FILE)]), [content].into());
}

#[test]
fn what_was_not_synced_is_there_in_any_combination_of_sectors() {
    let found = contents([write(0, 1, 4 * SECTOR), Event::Sync(FILE), write(0, 2, 4 * SECTOR)]);
    let sectors = |content: &Vec<u8>| -> Vec<u8> {
        assert!(content.chunks(SECTOR).all(|sector| sector.iter().all(|byte| *byte == sector[0])), "a torn sector");
        content.chunks(SECTOR).map(|sector| sector[0]).collect()
    };
    assert_eq!(found.iter().map(sectors).collect::<BTreeSet<_>>().len(), 16);
}

#[test]
fn a_sector_has_no_later_write_without_the_earlier_one() {
    let zeros = [write(0, 0, SECTOR), Event::Sync(FILE)];
    let found = contents(zeros.into_iter().chain([write(0, 1, 10), write(10, 2, 10)]));
    let begin = |first: u8, second: u8| [vec![first; 10], vec![second; 10], vec![0; SECTOR - 20]].concat();
    assert_eq!(found, [begin(0, 0), begin(1, 0), begin(1, 2)].into());
}

#[test]
fn bytes_beside_a_write_do_not_change() {
    let found = contents([write(0, 1, 3 * SECTOR), Event::Sync(FILE), write(700, 2, 100)]);
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|content| content[..700].iter().chain(&content[800..]).all(|byte| *byte == 1)));
}

#[test]
fn a_file_that_grew_has_its_new_length_or_its_old_one_and_holds_anything_there() {
    let found = contents([write(0, 1, SECTOR), Event::Sync(FILE), write(SECTOR, 2, SECTOR)]);
    let lengths: BTreeSet<_> = found.iter().map(Vec::len).collect();
    assert_eq!(lengths, [SECTOR, 2 * SECTOR].into());
    assert!(found.iter().all(|content| content[..SECTOR] == [1; SECTOR]));
    let grown: BTreeSet<_> = found.iter().filter_map(|content| content.get(SECTOR..)).collect();
    assert!(grown.contains(&[2; SECTOR][..]) && grown.contains(&[0; SECTOR][..]));
    assert!(grown.len() > 10, "something that was never written");
}

#[test]
fn a_file_that_was_cut_off_has_its_new_length_or_its_old_one() {
    let found = contents([write(0, 1, 2 * SECTOR), Event::Sync(FILE), resize(SECTOR)]);
    assert_eq!(found.iter().map(Vec::len).collect::<BTreeSet<_>>(), [SECTOR, 2 * SECTOR].into());
    assert_eq!(contents([write(0, 1, 2 * SECTOR), resize(SECTOR), Event::Sync(FILE)]), [vec![1; SECTOR]].into());
}

#[test]
fn a_name_is_durable_once_its_directory_was_synced_and_not_before() {
    let [name, sync_directory] = made();
    let with_content = |image: &Image| image.files.get(Path::new("file")).is_some_and(|content| content == &[1; 10]);
    let before = images([name.clone(), write(0, 1, 10), Event::Sync(FILE)]);
    let there = before.iter().filter(|image| with_content(image)).count();
    assert!(there > 0 && there < before.len());
    assert!(before.iter().all(|image| image.files.is_empty() || with_content(image)));
    let after = images([name, write(0, 1, 10), Event::Sync(FILE), sync_directory]);
    assert!(after.iter().all(with_content));
}

#[test]
fn a_rename_is_whole() {
    let rename = NameChange::Renamed { from: "file".to_owned(), to: "other".to_owned(), node: FILE };
    let found = images(made().into_iter().chain([Event::Name(Node::ROOT, rename)]));
    let names: BTreeSet<Vec<_>> = found.iter().map(|image| image.files.keys().cloned().collect()).collect();
    assert_eq!(names, [vec!["file".into()], vec!["other".into()]].into());
}

#[test]
fn a_mapped_file_holds_anything() {
    let found = contents([write(0, 1, 100), Event::Map(FILE), Event::Sync(FILE)]);
    assert!(found.len() > 100);
}

#[test]
fn a_run_may_be_cut_off_before_each_change_and_after_what_a_sync_allowed_to_be_said() {
    let said = || Event::Mark(b"said".to_vec());
    let recording = recording(vec![write(0, 1, 1), write(1, 1, 1), Event::Sync(FILE), said(), write(2, 1, 1), said()]);
    let points: Vec<_> = recording.crash_points().iter().map(|point| (point.at, point.moment)).collect();
    let expected = [
        (0, Moment::BetweenSyncs),
        (1, Moment::BetweenSyncs),
        (2, Moment::BeforeSync),
        (4, Moment::AfterSync),
        (6, Moment::BetweenSyncs),
    ];
    assert_eq!(points, expected);
    let marks = recording.crash_points().into_iter().map(|point| recording.crash(point, Fate::Lost).marks.len());
    assert_eq!(marks.collect::<Vec<_>>(), [0, 0, 0, 1, 2]);
}

#[test]
fn a_check_asks_about_each_image_once_and_tells_where_it_failed() {
    let events = made().into_iter().chain([write(0, 1, 4 * SECTOR), Event::Sync(FILE), write(0, 2, 4 * SECTOR)]);
    let recording = recording(events.collect());
    let plan = Plan { seed: 1, mixes: 3, between_every: 1 };
    let report = check(&recording, &plan, |crash| {
        let content = crash.image.files.get(Path::new("file"));
        anyhow::ensure!(content.is_none_or(|content| content.first() != Some(&2)), "a two");
        Ok(())
    });
    assert_eq!((report.sync_points, report.points_between), (4, 2));
    assert!(!report.failures.is_empty());
    assert!(report.failures.iter().all(|failure| failure.point.at == 5 && failure.what == "a two"));
    assert!(report.failures.iter().any(|failure| failure.fate == Fate::Kept));
}

//! Simulated power loss: a disk that loses and tears what was not synced, at every moment of a real run.
//!
//! A child process runs a workload on real files. A recorder in front of libc (`recorder.c`) writes down every change
//! that it makes below one directory, in order, with the child's own [marks](Marks) in between. From such a
//! [`Recording`] follows, for every [crash point](CrashPoint), what the directory may hold when the machine is up
//! again: an [`Image`] for each [`Fate`] of what was not synced. [`check`] makes the images and calls a test with each
//! of them:
//!
//! ```ignore
//! // In the child, run as a process of its own:
//! let directory = disk::recorded_directory().unwrap();
//! let marks = Marks::open(&directory)?;
//! store.tasks().submit(tasks).await?;
//! marks.mark(b"kept 17")?;
//!
//! // In the parent:
//! let recording = disk::record(&mut command, directory)?;
//! let report = disk::check(&recording, &Plan { mixes: 4, ..Plan::default() }, |crash| {
//!     crash.image.write_to(somewhere)?;
//!     // open it, and hold it against `crash.marks`
//! });
//! ```
//!
//! # The disk's guarantees
//!
//! They are as weak as those that file systems document, so that nothing relies on more:
//!
//! - A sync (`fsync` or `fdatasync`) that returned makes all earlier changes of that file durable, its length included.
//!   A sync of a directory does so for the names in it, and only for them: syncing a file does not make its name
//!   durable.
//! - Nothing else has an order. Each sector of 512 bytes holds what it held at some moment between the last sync and
//!   the crash, independently of its neighbours; so does the file's length; and each change of a name (created,
//!   removed, renamed) happened or did not. A rename is atomic.
//! - A sector is never torn, and bytes beside those that were written do not change.
//! - Where a file grew, a sector whose data was lost may hold anything.
//! - A file that is mapped for writing holds anything, at any time.
//!
//! Not here: what the child does and what must hold afterwards, which is up to the caller; disks that report syncs that
//! they did not do, or lose durable data; permissions, owners and times of files; several processes in one directory;
//! any system but Linux. A C compiler is needed. The consistency of SQLite and of Redrive's tables is in
//! [`consistency`].

mod check;
mod consistency;
mod crash;
mod durable;
mod fate;
mod image;
mod log;
mod record;
mod recording;

pub use check::{CrashFailure, Plan, Report, check};
pub use consistency::consistency;
pub use crash::{Crash, CrashPoint, Moment};
pub use fate::Fate;
pub use image::Image;
pub use record::{Marks, record, recorded_directory};
pub use recording::{Event, FileChange, NameChange, Node, Recording};

#[cfg(test)]
mod tests;

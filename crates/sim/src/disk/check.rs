//! Checks every image of every crash point.

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::crash::{Crash, CrashPoint, Moment};
use super::fate::Fate;
use super::image::Image;
use super::recording::{Recording, mark};
use crate::random::Random;

/// The most failures before a check ends.
const MOST_FAILURES: usize = 8;

/// Which crashes to check. Every sync point is among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// The seed of all mixes.
    pub seed: u64,
    /// How many mixed images are made of each crash point, beside all lost and all kept.
    pub mixes: usize,
    /// Of the points between two syncs, every n-th is checked; 0 for none.
    pub between_every: usize,
}

impl Default for Plan {
    fn default() -> Self {
        Plan { seed: 1, mixes: 2, between_every: 10 }
    }
}

impl Plan {
    /// The points of a recording that are checked.
    pub fn points(&self, recording: &Recording) -> Vec<CrashPoint> {
        let mut between = 0;
        let mut points = recording.crash_points();
        points.retain(|point| {
            if point.moment != Moment::BetweenSyncs {
                return true;
            }
            between += 1;
            self.between_every > 0 && between % self.between_every == 0
        });
        points
    }

    /// The fates of what was not synced at a point.
    pub fn fates(&self, point: CrashPoint) -> impl Iterator<Item = Fate> {
        let (seed, at) = (self.seed, point.at as u64);
        let mixes = (0..self.mixes).map(move |mix| Fate::Mixed(Random::seed_of(&[seed, at, mix as u64])));
        [Fate::Lost, Fate::Kept].into_iter().chain(mixes)
    }
}

/// The result of a check.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The points at a sync, before or after it.
    pub sync_points: usize,
    /// The points between two syncs.
    pub points_between: usize,
    /// The number of images that were checked. Equal images after the same marks are checked once.
    pub images: usize,
    /// The crashes that were not survived, in order. A check ends after a few of them.
    pub failures: Vec<CrashFailure>,
}

/// A crash that was not survived.
#[derive(Debug, Clone)]
pub struct CrashFailure {
    /// The crash point.
    pub point: CrashPoint,
    /// What happened to the changes that were not synced.
    pub fate: Fate,
    /// How many marks were before the crash.
    pub marks: usize,
    /// What is wrong.
    pub what: String,
    /// The disk that the crash left.
    pub image: Image,
}

impl fmt::Display for CrashFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}, {} marks: {}", self.point, self.fate, self.marks, self.what)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { sync_points, points_between, images, failures } = self;
        let failures = failures.len();
        write!(f, "{sync_points} sync points, {points_between} points between, {images} images, {failures} failures")
    }
}

/// Calls `survives` for the crashes of a plan, on as many threads as the machine has processors. A panic counts as a
/// failure.
pub fn check(recording: &Recording, plan: &Plan, survives: impl Fn(&Crash<'_>) -> anyhow::Result<()> + Sync) -> Report {
    let points = plan.points(recording);
    let sync_points = points.iter().filter(|point| point.moment != Moment::BetweenSyncs).count();
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let work = Work { recording, plan, survives: &survives, seen: Mutex::default(), failures: Mutex::default() };
    thread::scope(|scope| {
        for first in 0..threads {
            let (work, points) = (&work, &points);
            scope.spawn(move || work.visit(points.iter().skip(first).step_by(threads)));
        }
    });
    let mut failures = work.failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    failures.sort_by_key(|failure| failure.point.at);
    let images = work.seen.into_inner().unwrap_or_else(PoisonError::into_inner).len();
    Report { sync_points, points_between: points.len() - sync_points, images, failures }
}

struct Work<'a, S> {
    recording: &'a Recording,
    plan: &'a Plan,
    survives: &'a S,
    /// Digests of images, each with the number of marks before it.
    seen: Mutex<BTreeSet<(u64, usize)>>,
    failures: Mutex<Vec<CrashFailure>>,
}

impl<S: Fn(&Crash<'_>) -> anyhow::Result<()> + Sync> Work<'_, S> {
    /// Replays the recording once and stops at each of these points, which are in order.
    fn visit<'p>(&self, points: impl Iterator<Item = &'p CrashPoint>) {
        let mut disk = self.recording.start.clone();
        let mut marks = Vec::new();
        let mut passed = 0;
        for point in points {
            for event in &self.recording.events[passed..point.at] {
                disk.apply(event);
                marks.extend(mark(event));
            }
            passed = point.at;
            for fate in self.plan.fates(*point) {
                if self.failures.lock().unwrap_or_else(PoisonError::into_inner).len() >= MOST_FAILURES {
                    return;
                }
                let image = disk.image(fate);
                let is_new = {
                    let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                    seen.insert((image.digest(), marks.len()))
                };
                if is_new {
                    self.ask(Crash { point: *point, fate, marks: marks.clone(), image });
                }
            }
        }
    }

    fn ask(&self, crash: Crash<'_>) {
        let what = match catch_unwind(AssertUnwindSafe(|| (self.survives)(&crash))) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => format!("{error:#}"),
            Err(panic) => format!("panicked: {}", message(panic.as_ref())),
        };
        let failure =
            CrashFailure { point: crash.point, fate: crash.fate, marks: crash.marks.len(), what, image: crash.image };
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).push(failure);
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}

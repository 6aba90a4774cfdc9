//! Trace: what happened, as a hash that must be the same for two runs of one seed, and as lines for people.

use std::fmt::Write as _;
use std::hash::{Hash, Hasher};

use crate::moment::Moment;

/// What happened in one run.
#[derive(Debug, Default)]
pub struct Trace {
    hash: Fnv,
    lines: Option<Vec<Line>>,
}

/// One line of a trace.
#[derive(Debug, Clone)]
pub struct Line {
    /// When.
    pub at: Moment,
    /// The item that it is about, if it is about one.
    pub item: Option<String>,
    /// What happened.
    pub text: String,
}

impl Trace {
    /// A trace that keeps its lines, or only their hash.
    pub fn new(keeps_lines: bool) -> Self {
        Trace { lines: keeps_lines.then(Vec::new), ..Trace::default() }
    }

    /// Records an event: `facts` go into the hash, `text` is written only if lines are kept.
    pub fn note(&mut self, at: Moment, facts: impl Hash, item: Option<&str>, text: impl FnOnce(&mut String)) {
        at.hash(&mut self.hash);
        facts.hash(&mut self.hash);
        if let Some(lines) = &mut self.lines {
            let mut line = Line { at, item: item.map(str::to_owned), text: String::new() };
            text(&mut line.text);
            lines.push(line);
        }
    }

    /// Adds facts to the hash that belong to no event, such as the state of the executor's randomness.
    pub fn seal(&mut self, facts: impl Hash) {
        facts.hash(&mut self.hash);
    }

    /// The hash of everything that was noted.
    pub fn hash(&self) -> u64 {
        self.hash.finish()
    }

    /// The lines, if they were kept.
    pub fn into_lines(self) -> Vec<Line> {
        self.lines.unwrap_or_default()
    }
}

/// The lines as text; with `item`, only those about it and those about no item at all.
pub fn render(lines: &[Line], item: Option<&str>) -> String {
    let mut text = String::new();
    for line in lines {
        let is_about_another = matches!((item, line.item.as_deref()), (Some(item), Some(other)) if item != other);
        if !is_about_another {
            // Writing to a string cannot fail.
            writeln!(text, "  {} {}", line.at, line.text).ok();
        }
    }
    text
}

/// FNV-1a: a hash that is the same on every machine and in every version of Rust.
#[derive(Debug)]
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xCBF2_9CE4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
    }
}

//! The parts of a plan to keep: how a shrunk failure is written down and run again.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use super::Plan;

/// A part of a plan that can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// An errand with all of its follow-ups.
    Errand(usize),
    /// A follow-up: the errand's number and the position in it.
    FollowUp(usize, usize),
    /// What one client does with an idempotency record.
    Record(usize),
    /// A fault.
    Fault(usize),
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Errand(errand) => write!(f, "e{errand}"),
            Part::FollowUp(errand, place) => write!(f, "e{errand}.{place}"),
            Part::Record(record) => write!(f, "r{record}"),
            Part::Fault(fault) => write!(f, "f{fault}"),
        }
    }
}

/// A text that names no part of a plan.
#[derive(Debug)]
pub struct UnknownPart(String);

impl fmt::Display for UnknownPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} names no part of a plan: e3 is an errand, e3.1 one of its follow-ups, r5 a use of a record, f7 a fault",
            self.0
        )
    }
}

impl std::error::Error for UnknownPart {}

impl FromStr for Part {
    type Err = UnknownPart;

    fn from_str(text: &str) -> Result<Self, UnknownPart> {
        let unknown = || UnknownPart(text.to_owned());
        let number = |text: &str| text.parse().map_err(|_| unknown());
        if let Some(fault) = text.strip_prefix('f') {
            return number(fault).map(Part::Fault);
        }
        if let Some(record) = text.strip_prefix('r') {
            return number(record).map(Part::Record);
        }
        let errand = text.strip_prefix('e').ok_or_else(unknown)?;
        match errand.split_once('.') {
            Some((errand, place)) => Ok(Part::FollowUp(number(errand)?, number(place)?)),
            None => number(errand).map(Part::Errand),
        }
    }
}

/// The parts of a plan that are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep(pub BTreeSet<Part>);

impl Keep {
    /// All parts of a plan.
    pub fn all_of(plan: &Plan) -> Self {
        let errands = plan.errands.iter().flat_map(|errand| {
            let follow_ups = (0..errand.follow_ups.len()).map(|place| Part::FollowUp(errand.number, place));
            follow_ups.chain([Part::Errand(errand.number)])
        });
        let faults = plan.faults.iter().map(|fault| Part::Fault(fault.number));
        let records = plan.records.iter().map(|errand| Part::Record(errand.number));
        Keep(errands.chain(records).chain(faults).collect())
    }

    /// The plan without the parts that are not kept.
    pub fn of(&self, plan: &Plan) -> Plan {
        let mut kept = plan.clone();
        kept.faults.retain(|fault| self.0.contains(&Part::Fault(fault.number)));
        kept.records.retain(|errand| self.0.contains(&Part::Record(errand.number)));
        kept.errands.retain(|errand| self.0.contains(&Part::Errand(errand.number)));
        for errand in &mut kept.errands {
            let mut place = 0;
            errand.follow_ups.retain(|_| {
                place += 1;
                self.0.contains(&Part::FollowUp(errand.number, place - 1))
            });
        }
        kept
    }
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(Part::to_string).collect();
        f.write_str(&parts.join(","))
    }
}

impl FromStr for Keep {
    type Err = UnknownPart;

    fn from_str(text: &str) -> Result<Self, UnknownPart> {
        text.split(',').filter(|part| !part.is_empty()).map(Part::from_str).collect::<Result<_, _>>().map(Keep)
    }
}

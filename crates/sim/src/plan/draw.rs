//! Draws a plan from its seed.

use std::time::Duration;

use redrive_core::{Policy, TenantId};

use super::alerting::Alerting;
use super::document::{Document, Item};
use super::errand::{Errand, FollowUp, Step};
use super::family::Family;
use super::fault::{Fault, Kind, Mood, Trouble};
use super::shape::{Ask, Shape};
use super::{Plan, crowd, guarded, policies, records};
use crate::moment::Moment;
use crate::random::Random;

/// The streams that a plan is drawn from; what the world draws has other numbers (`world::streams`).
const SHAPE: u64 = 1;
const ERRANDS: u64 = 2;
const FAULTS: u64 = 3;
const GUARDS: u64 = 4;
/// With this number, the seeds that have found bugs keep the worlds that they had before there were records.
const RECORDS: u64 = 7;
/// The same for worlds in which sinks are told of dead letters.
const ALERTS: u64 = 8;

/// The share of worlds in which sinks are told of dead letters. Crowds are not among them: there, nothing but lanes may explain
/// a wait.
const ALERTED: f64 = 0.2;

/// The plan of this seed.
pub fn draw(seed: u64, ask: &Ask) -> Plan {
    let of_alerts = &mut Random::stream(seed, ALERTS);
    let is_alerted = of_alerts.chance(ALERTED) && ask.families.is_none();
    let ask = &if is_alerted { Alerting::ask(of_alerts, ask) } else { ask.clone() };
    let of_records = &mut Random::stream(seed, RECORDS);
    let mut shape = Shape::draw(&mut Random::stream(seed, SHAPE), &mut Random::stream(seed, GUARDS), of_records, ask);
    let mut faults = faults(&mut Random::stream(seed, FAULTS), &shape);
    let random = &mut Random::stream(seed, ERRANDS);
    let errands = match () {
        () if shape.families.has(Family::Neighbours) => crowd::errands(random, &shape),
        () if shape.families.has(Family::Guards) => guarded::errands(random, &shape),
        () => errands(random, &shape, &faults),
    };
    let has_records = shape.families.has(Family::Records);
    let records = if has_records { records::errands(of_records, &shape) } else { Vec::new() };
    // Last: nothing else of the plan depends on it.
    if is_alerted && !shape.families.has(Family::Neighbours) {
        shape.families = shape.families.and(Family::Alerts);
    }
    if shape.families.has(Family::Alerts) {
        let alerting = Alerting::draw(of_alerts);
        faults.extend(alerting.faults(of_alerts, &shape, faults.len()));
        shape.alerting = Some(alerting);
    }
    Plan { seed, luck: 0, bug: ask.bug, shape, errands, records, faults }
}

/// The tenant with this number.
pub(super) fn tenant(number: usize) -> TenantId {
    match number {
        0 => TenantId::default_tenant(),
        _ => TenantId::try_new(format!("tenant-{number}")).unwrap_or_else(|_| TenantId::default_tenant()),
    }
}

fn errands(random: &mut Random, shape: &Shape, faults: &[Fault]) -> Vec<Errand> {
    let longest = shape.trouble.as_micros() as u64 * 9 / 10;
    let mut keys = vec![0; shape.tenants];
    let mut at = Moment::default();
    (0..shape.errands)
        .map(|number| {
            at = match random.below(10) {
                // Near a fault, so that it affects something.
                0..=3 if !faults.is_empty() => {
                    let fault = random.pick(faults);
                    let into = Duration::from_secs(60).max(fault.lasts).mul_f64(random.unit() * 1.2);
                    Moment(fault.at.after(into).0.saturating_sub(10_000_000).min(longest))
                }
                // Bursts: some errands begin close to one another.
                4..=6 if number > 0 => at.after(random.duration(Duration::from_micros(10), Duration::from_secs(5))),
                _ => Moment(random.within(0..=longest)),
            };
            errand(random, shape, number, at, &mut keys)
        })
        .collect()
}

fn errand(random: &mut Random, shape: &Shape, number: usize, at: Moment, keys: &mut [usize]) -> Errand {
    let whose = random.below(shape.tenants);
    let size = if random.chance(0.15) { random.within(2..=5) as usize } else { 1 };
    let items: Vec<Item> =
        (0..size).map(|place| item(random, shape, &format!("e{number}.{place}"), whose, keys)).collect();
    let is_hasty = shape.families.has(Family::Client) && random.chance(0.4);
    let patience = if is_hasty { random.duration(Duration::from_micros(100), shape.patience) } else { shape.patience };
    let follow_ups = follow_ups(random, shape, &items);
    Errand { number, at, items, patience, tries: random.within(1..=6) as usize, follow_ups }
}

fn item(random: &mut Random, shape: &Shape, name: &str, whose: usize, keys: &mut [usize]) -> Item {
    let dependency = random.below(shape.dependencies.len());
    // Tenants number their keys alike: the same key of another tenant is another key.
    let key = random.chance(0.9).then(|| {
        keys[whose] += 1;
        format!("key-{}", keys[whose])
    });
    let (policy_id, overrides) = match random.below(10) {
        0 => (None, None),
        1 | 2 => (Some(*random.pick(&policies::NAMED)), None),
        3 => (Some(policies::SHIFTING), Some(policies::spec(random))),
        _ => (None, Some(policies::spec(random))),
    };
    let base = policies::base(policy_id.unwrap_or("default"));
    let spec = base.overridden_by(&overrides.clone().unwrap_or_default());
    // A task that overrides everything does not depend on the named policy.
    let policy = Policy::resolve(&spec).unwrap_or_default();
    let delay = random.chance(0.15).then(|| {
        let longest = policy.total_budget.saturating_sub(policy.attempt_timeout).min(Duration::from_secs(1_800));
        let drawn = random.duration(Duration::from_millis(1), longest.max(Duration::from_millis(1)));
        Duration::from_millis(drawn.as_millis() as u64)
    });
    let document = Document {
        tenant: tenant(whose),
        key,
        target_url: format!("http://dependency-{dependency}.test/{name}"),
        method: random.pick::<&'static str>(&["POST", "PUT", "GET", "DELETE"]),
        body: format!("the body of {name}"),
        policy_id,
        overrides,
        delay,
    };
    Item { name: name.to_owned(), document, policy }
}

pub(super) fn follow_ups(random: &mut Random, shape: &Shape, items: &[Item]) -> Vec<FollowUp> {
    let mild = [Step::Look, Step::LookAtAttempts, Step::Wait, Step::List, Step::Look];
    let wild = [
        Step::Again,
        Step::Again,
        Step::OtherRequest,
        Step::Cancel,
        Step::Cancel,
        Step::BringForward,
        Step::Replay,
        Step::Replay,
        Step::Meddle,
        Step::ShiftPolicy,
    ];
    let is_wild = shape.families.has(Family::Client);
    let count = random.below(5);
    (0..count)
        .map(|_| {
            let step = if is_wild && random.chance(0.6) { *random.pick(&wild) } else { *random.pick(&mild) };
            let item = random.below(items.len());
            let soon = random.chance(0.5);
            let longest = if soon { Duration::from_secs(2) } else { Duration::from_secs(3_600) };
            // A replay is useful only once the task may have ended.
            let longest = if step == Step::Replay { Duration::from_secs(3_600) } else { longest };
            FollowUp { after: random.duration(Duration::from_micros(50), longest), item, step }
        })
        .collect()
}

/// The families from which faults are drawn, each with its number per hour of faults, and its minimum.
const RATES: [(Family, f64, f64); 7] = [
    (Family::Crash, 6.0, 3.0),
    (Family::Stop, 2.0, 1.0),
    (Family::Pause, 5.0, 3.0),
    (Family::Clock, 4.0, 3.0),
    (Family::Store, 6.0, 4.0),
    (Family::Dependency, 8.0, 5.0),
    (Family::Schedule, 4.0, 2.0),
];

/// The most faults of one family: a world of three days does not fail all the time.
const MOST: f64 = 60.0;

fn faults(random: &mut Random, shape: &Shape) -> Vec<Fault> {
    let hours = shape.trouble.as_secs_f64() / 3_600.0;
    let mut faults = Vec::new();
    for (family, per_hour, least) in RATES {
        if !shape.families.has(family) {
            continue;
        }
        let count = (hours * per_hour * (0.3 + 1.4 * random.unit())).max(least).min(MOST) as usize;
        for _ in 0..count {
            let number = faults.len();
            let at = Moment(random.within(0..=shape.trouble.as_micros() as u64));
            let (kind, lasts) = fault(random, shape, family);
            faults.push(Fault { number, at, lasts, kind });
        }
    }
    faults
}

fn fault(random: &mut Random, shape: &Shape, family: Family) -> (Kind, Duration) {
    let node = random.below(shape.nodes);
    let second = Duration::from_secs(1);
    let most_effects = *random.pick(&[0, 3, 10, 40]);
    let effects = random.within(0..=most_effects) as u32;
    match family {
        Family::Crash => (Kind::Crash { node, effects }, random.duration(second / 10, second * 300)),
        Family::Stop => (Kind::Stop { node }, random.duration(second / 10, second * 60)),
        Family::Pause => (Kind::Pause { node, effects }, random.duration(second / 10, second * 300)),
        Family::Clock if random.chance(0.6) => (Kind::Jump { node, to: random.unit() * 2.0 - 1.0 }, Duration::ZERO),
        Family::Clock => {
            let ppm = random.within(0..=20_000) as i64 - 10_000;
            (Kind::Drift { node, ppm }, random.duration(second * 10, second * 1_800))
        }
        Family::Store => {
            let mut troubles = vec![Trouble::Late, Trouble::Late, Trouble::Fails, Trouble::Fails];
            if !shape.exclusive {
                // An embedded store has no connection to lose: its errors mean that nothing happened.
                troubles.extend([Trouble::LosesAnswer, Trouble::LosesAnswer, Trouble::PowerLoss]);
            }
            let trouble = *random.pick(&troubles);
            let node = random.chance(0.4).then_some(node).filter(|_| trouble != Trouble::PowerLoss);
            let chance = *random.pick(&[0.02, 0.1, 0.3, 0.7, 1.0]);
            (Kind::Store { node, trouble, chance }, random.duration(second / 10, second * 240))
        }
        Family::Dependency
        | Family::Client
        | Family::Neighbours
        | Family::Guards
        | Family::Records
        | Family::Alerts => {
            let dependency = random.below(shape.dependencies.len());
            let mood = *random.pick(&Mood::BAD);
            (Kind::Dependency { dependency, mood }, random.duration(second, second * 1_200))
        }
        Family::Schedule => (Kind::LoseSchedule { node }, Duration::ZERO),
    }
}

//! The health of a tenant's deliveries in the last hour.

use std::collections::BTreeMap;
use std::time::Duration;

use redrive_core::health::{Assessment, Figure, Health, Tally, Thresholds, Window};
use redrive_core::{Dependency, Lane, TenantId, Timestamp};

use crate::app::App;
use crate::caller::Caller;

/// Tasks that are retried for longer than this are counted.
const LONG: Duration = Duration::from_secs(24 * 3_600);

/// The most dependencies whose retries are counted.
const MOST_COUNTED: usize = 2_000;

/// How many lanes are read from the engine at once: claims and attempts wait meanwhile.
const AT_ONCE: usize = 64;

/// How many retries of all lanes together are looked at for [`LONG`].
const LOOK_AT_IN_ALL: u32 = 200_000;

/// The most retries of one lane that are looked at: beyond the alert's threshold, more would not change the judgement.
const LOOK_AT_MOST: u32 = 10_000;

/// The fewest retries of one lane that are looked at, however many lanes there are, beyond the alert's threshold: of fewer, no
/// lane could pass it.
const LOOK_BEYOND: u32 = 50;

/// The health of a tenant's deliveries, as this process sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct HealthReport {
    /// The moment of the report.
    pub at: Timestamp,
    /// The tasks that it is about ended at or after this moment: an hour ago, or when the process started.
    pub since: Timestamp,
    /// All dependencies together.
    pub overall: JudgedHealth,
    /// The dependencies that have a figure worth showing, worst first, and then by name.
    pub dependencies: Vec<(Dependency, JudgedHealth)>,
}

/// The figures of one dependency or of all.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedHealth {
    /// The worst of the figures.
    pub health: Health,
    /// Every figure.
    pub figures: Vec<Assessment>,
}

/// Reports the health of a tenant's deliveries.
pub async fn health_report(app: &App, caller: &Caller) -> HealthReport {
    let at = app.engine.now();
    let hour = app.health.hour(&caller.tenant, at);
    let ended: BTreeMap<Dependency, Tally> = hour.dependencies.into_iter().collect();
    let mut dependencies = known_dependencies(app, caller);
    dependencies.extend(ended.keys().cloned());
    dependencies.sort();
    dependencies.dedup();
    dependencies.truncate(MOST_COUNTED);
    let long_in_retry = long_in_retry(app, &caller.tenant, &dependencies, at).await;
    let overall = long_in_retry.as_ref().map(|counts| counts.iter().sum());
    let judge = |(dependency, place): (Dependency, usize)| {
        let tally = ended.get(&dependency).copied().unwrap_or_default();
        let long = long_in_retry.as_ref().and_then(|counts| counts.get(place).copied());
        (dependency, JudgedHealth::new(&app.thresholds, &tally, long))
    };
    let mut judged: Vec<_> = dependencies.into_iter().zip(0..).map(judge).collect();
    // A dependency of which nothing ended and nothing is late has nothing to show.
    judged.retain(|(dependency, judged)| ended.contains_key(dependency) || judged.health > Health::Green);
    judged.sort_by(|(name, one), (other_name, other)| other.health.cmp(&one.health).then(name.cmp(other_name)));
    HealthReport {
        at,
        since: at.before(Window::LONGEST).max(app.started_at),
        overall: JudgedHealth::new(&app.thresholds, &hour.overall, overall),
        dependencies: judged,
    }
}

impl HealthReport {
    /// The worst of all figures, over all dependencies and of each: a red dependency must not hide behind a hundred green ones.
    pub fn overall_health(&self) -> Health {
        let worst = self.dependencies.first().map_or(Health::Silent, |(_, judged)| judged.health);
        self.overall.health.max(worst)
    }
}

impl JudgedHealth {
    fn new(thresholds: &Thresholds, tally: &Tally, long_in_retry: Option<u32>) -> Self {
        let figures = thresholds.judge(tally, long_in_retry);
        let worst = figures.iter().map(|figure| figure.health).max().unwrap_or(Health::Silent);
        // That no task is late does not make a dependency green of which too few tasks ended.
        let has_judged_rate = figures.iter().any(|figure| figure.sample.is_some() && figure.health != Health::Silent);
        let health = if worst == Health::Green && !has_judged_rate { Health::Silent } else { worst };
        JudgedHealth { health, figures }
    }
}

/// The dependencies that the engine knows: those with work that has not ended.
fn known_dependencies(app: &App, caller: &Caller) -> Vec<Dependency> {
    let mut known: Vec<Dependency> = Vec::new();
    while known.len() < MOST_COUNTED {
        let read = app.engine.lane_reports(&caller.tenant, known.last(), AT_ONCE);
        let is_end = read.len() < AT_ONCE;
        known.extend(read.into_iter().map(|report| report.lane.dependency));
        if is_end {
            break;
        }
    }
    known
}

/// How many tasks of each dependency are retried and were accepted long ago; `None` if the store does not answer.
pub(crate) async fn long_in_retry(
    app: &App,
    tenant: &TenantId,
    dependencies: &[Dependency],
    now: Timestamp,
) -> Option<Vec<u32>> {
    let lane = |dependency: &Dependency| Lane { tenant: tenant.clone(), dependency: dependency.clone() };
    let lanes: Vec<Lane> = dependencies.iter().map(lane).collect();
    let count = u32::try_from(lanes.len()).unwrap_or(u32::MAX).max(1);
    let threshold = app.thresholds.of(Figure::LongInRetry).alert.clamp(0.0, f64::from(LOOK_AT_MOST)) as u32;
    let look_at = (LOOK_AT_IN_ALL / count).max(threshold + LOOK_BEYOND).min(LOOK_AT_MOST);
    app.engine.old_retries(lanes, now.before(LONG), look_at).await
}

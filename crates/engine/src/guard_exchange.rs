//! Guard exchange: shares the guards of lanes with the other processes over the store.
//!
//! A lane with retries exchanges a few times per second, all such lanes in one call; a lane without trouble never does.
//! The rows are read, `core::guards::shared` computes what follows, and each row is replaced if no other process has changed
//! it meanwhile; otherwise that lane is computed again. Origins are replaced before their lanes, so that no token is
//! used that the origin's floor does not know of. If an exchange fails, its lanes get no tokens: retries wait, and first
//! attempts go on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redrive_core::guards::shared::{Answer, OriginFloor, SharedLane};
use redrive_core::{Lane, Timestamp};
use redrive_store::{Error, GuardKey, SharedGuards, StateChange, VersionedState};

use crate::engine_state::{EngineState, Phase};
use crate::guard_upkeep;
use crate::lanes::LaneExchange;

/// The longest time for the last exchange before the process ends.
const LAST_EXCHANGE: Duration = Duration::from_secs(2);
/// The most lanes in one exchange.
const BATCH: usize = 256;
/// How often a lane is computed again because another process was quicker.
const ROUNDS: usize = 4;
/// How many lanes are read at a time.
const PAGE: usize = 1_000;

/// What this process knows of the others' guards.
#[derive(Debug, Default)]
pub(crate) struct GuardExchange {
    /// This process, among those that share the guards.
    node: String,
    /// Whether operators may have set something for a lane through another process.
    may_controls_differ: AtomicBool,
}

impl GuardExchange {
    /// `node` is different for every process.
    pub(crate) fn new(node: String) -> Self {
        GuardExchange { node, may_controls_differ: AtomicBool::new(false) }
    }
}

/// Runs until no attempt is left: what they end with is shared, too.
pub(crate) async fn run(shared: Arc<EngineState>) {
    let Some(peers) = shared.store.shared() else { return };
    loop {
        tokio::select! {
            biased;
            () = shared.reached(Phase::Confirming) => break,
            () = wait_for_turn(&shared) => {}
        }
        if shared.guard_exchange.may_controls_differ.swap(false, Ordering::AcqRel) {
            guard_upkeep::reread_controls(&shared).await;
        }
        exchange_due(&shared, peers.guards()).await;
    }
    // The others can use what this process still holds.
    shared.lanes.return_tokens();
    tokio::select! {
        biased;
        () = shared.clock.sleep(LAST_EXCHANGE) => {}
        () = async { while exchange_due(&shared, peers.guards()).await {} } => {}
    }
}

/// Notes that another process changed the guards of a lane, or what operators have set for it.
pub(crate) fn changed_elsewhere(shared: &EngineState, lane: &Lane) {
    shared.guard_exchange.may_controls_differ.store(true, Ordering::Release);
    shared.lanes.look_soon(lane);
}

/// Has every lane exchange whose breaker is not closed elsewhere and is closed here: it may have been opened before this
/// process was started, or its announcement was lost.
pub(crate) async fn find_not_closed(shared: &EngineState) -> Result<(), Error> {
    let Some(peers) = shared.store.shared() else { return Ok(()) };
    let mut after = None;
    loop {
        let page = peers.guards().not_closed(after, PAGE).await?;
        after = page.last().map(|(lane, _)| lane.clone());
        let is_last = page.len() < PAGE;
        for (lane, _) in page {
            if shared.lanes.is_breaker_closed(&lane) {
                shared.lanes.look_soon(&lane);
            }
        }
        if is_last {
            return Ok(());
        }
    }
}

/// Exchanges for lanes that are to do so by now, at most [`BATCH`]. Returns whether there were that many.
pub(crate) async fn exchange_due(shared: &EngineState, guards: &dyn SharedGuards) -> bool {
    let due = shared.lanes.take_exchanges(BATCH);
    if due.is_empty() {
        return false;
    }
    let (answers, error) = exchange(shared, guards, &due).await;
    match error {
        None => shared.store_worked("sharing guards"),
        Some(error) => shared.store_failed("sharing guards", &error),
    }
    for of in &due {
        shared.lanes.end_exchange(of, answers.get(&of.lane), &shared.guard_exchange.node);
    }
    due.len() == BATCH
}

async fn wait_for_turn(shared: &EngineState) {
    shared.clock.certain().await;
    let next = shared.lanes.next_exchange().map(|at| at.saturating_sub(shared.clock.elapsed()));
    match next {
        Some(wait) if wait.is_zero() => {}
        Some(wait) => tokio::select! {
            biased;
            () = shared.lanes.exchanges_changed() => {}
            () = shared.clock.sleep(wait) => {}
        },
        None => shared.lanes.exchanges_changed().await,
    }
}

/// Exchanges for these lanes. Returns the answer of each that succeeded, and what failed.
async fn exchange(
    shared: &EngineState,
    guards: &dyn SharedGuards,
    due: &[LaneExchange],
) -> (BTreeMap<Lane, Answer>, Option<Error>) {
    let mut answers = BTreeMap::new();
    for _ in 0..ROUNDS {
        let open: Vec<&LaneExchange> = due.iter().filter(|due| !answers.contains_key(&due.lane)).collect();
        if open.is_empty() {
            break;
        }
        match exchange_once(shared, guards, &open).await {
            Ok(more) => answers.extend(more),
            // What succeeded before stays so.
            Err(error) => return (answers, Some(error)),
        }
    }
    (answers, None)
}

async fn exchange_once(
    shared: &EngineState,
    guards: &dyn SharedGuards,
    open: &[&LaneExchange],
) -> Result<Vec<(Lane, Answer)>, Error> {
    let mut round = Round::read(guards, open).await?;
    let computed = round.compute(shared, open);
    let unreplaced = round.replace_origins(guards).await?;
    let may_replace = |lane: &&LaneExchange| !origin_key(lane).is_some_and(|key| unreplaced.contains(&key));
    let lanes: Vec<&Lane> = open.iter().copied().filter(may_replace).map(|due| &due.lane).collect();
    let replaced = round.replace_lanes(guards, &lanes).await?;
    Ok(computed.into_iter().filter(|(lane, _)| replaced.contains(lane)).collect())
}

/// The rows of one exchange.
struct Round {
    now: Timestamp,
    lanes: BTreeMap<Lane, Row<SharedLane>>,
    origins: BTreeMap<GuardKey, Row<OriginFloor>>,
    /// The versions and texts as they were read.
    read: BTreeMap<GuardKey, VersionedState>,
}

/// A state as it was read, and what it becomes.
struct Row<S> {
    before: Option<S>,
    state: S,
}

impl Round {
    async fn read(guards: &dyn SharedGuards, due: &[&LaneExchange]) -> Result<Self, Error> {
        let mut keys: Vec<GuardKey> = due.iter().map(|due| GuardKey::Lane(due.lane.clone())).collect();
        keys.extend(due.iter().filter_map(|due| origin_key(due)));
        keys.sort();
        keys.dedup();
        let states = guards.read(keys.clone()).await?;
        let read = keys.into_iter().zip(states).filter_map(|(key, state)| Some((key, state?))).collect();
        Ok(Round { now: Timestamp::default(), lanes: BTreeMap::new(), origins: BTreeMap::new(), read })
    }

    /// What each lane gets, and what the rows become.
    fn compute(&mut self, shared: &EngineState, due: &[&LaneExchange]) -> Vec<(Lane, Answer)> {
        let (settings, now) = (&shared.options.guards, shared.clock.now());
        self.now = now;
        let mut answers = Vec::new();
        for due in due {
            let key = GuardKey::Lane(due.lane.clone());
            let mut row = parse(self.read.get(&key), || SharedLane::unreadable(settings, now));
            let floor = origin_key(due).zip(settings.budget).map(|(key, budget)| {
                let read = self.read.get(&key);
                let row = self.origins.entry(key);
                let row = row.or_insert_with(|| parse(read, || OriginFloor::unreadable(&budget, now)));
                (&mut row.state, due.lane.dependency.as_str())
            });
            let node = &shared.guard_exchange.node;
            answers.push((due.lane.clone(), row.state.exchange(settings, floor, node, &due.exchange, now)));
            self.lanes.insert(due.lane.clone(), row);
        }
        answers
    }

    /// Replaces the origins that changed. Returns those that another process has changed meanwhile.
    async fn replace_origins(&self, guards: &dyn SharedGuards) -> Result<Vec<GuardKey>, Error> {
        let changed = self.origins.iter().filter(|(_, row)| row.has_changed());
        let change = |(key, row): (&GuardKey, &Row<OriginFloor>)| StateChange {
            key: key.clone(),
            expected: self.read.get(key).map(|read| read.version),
            state: text(&row.state),
            is_closed: true,
            is_announced: false,
            expires_at: row.state.expires_at(self.now),
        };
        let changes: Vec<StateChange> = changed.map(change).collect();
        let keys: Vec<GuardKey> = changes.iter().map(|change| change.key.clone()).collect();
        let replaced = replace(guards, changes).await?;
        Ok(keys.into_iter().zip(replaced).filter(|(_, version)| version.is_none()).map(|(key, _)| key).collect())
    }

    /// Replaces those of the lanes that changed. Returns the lanes that are as computed.
    async fn replace_lanes(&self, guards: &dyn SharedGuards, lanes: &[&Lane]) -> Result<Vec<Lane>, Error> {
        let (mut done, mut changes) = (Vec::new(), Vec::new());
        for (lane, row) in lanes.iter().filter_map(|lane| Some((*lane, self.lanes.get(*lane)?))) {
            if !row.has_changed() {
                done.push(lane.clone());
                continue;
            }
            let key = GuardKey::Lane(lane.clone());
            let epoch = row.before.as_ref().map_or(0, |before| before.breaker.epoch);
            changes.push(StateChange {
                expected: self.read.get(&key).map(|read| read.version),
                key,
                state: text(&row.state),
                is_closed: row.state.breaker.is_closed(),
                is_announced: row.state.breaker.epoch != epoch,
                expires_at: row.state.expires_at(self.now),
            });
        }
        let keys: Vec<GuardKey> = changes.iter().map(|change| change.key.clone()).collect();
        let replaced = replace(guards, changes).await?;
        for (key, version) in keys.into_iter().zip(replaced) {
            if let (GuardKey::Lane(lane), Some(_)) = (key, version) {
                done.push(lane);
            }
        }
        Ok(done)
    }
}

impl<S: PartialEq + Default> Row<S> {
    fn has_changed(&self) -> bool {
        match &self.before {
            Some(before) => *before != self.state,
            None => self.state != S::default(),
        }
    }
}

async fn replace(guards: &dyn SharedGuards, changes: Vec<StateChange>) -> Result<Vec<Option<u64>>, Error> {
    if changes.is_empty() { Ok(Vec::new()) } else { guards.replace(changes).await }
}

fn origin_key(due: &LaneExchange) -> Option<GuardKey> {
    due.origin.as_ref().map(|origin| GuardKey::Origin(origin.tenant.clone(), origin.origin.to_string()))
}

/// The state that was read. One that cannot be read, because a newer program wrote it or a person changed it, is replaced
/// by one on the safe side.
fn parse<S: serde::de::DeserializeOwned + Default + Clone>(
    read: Option<&VersionedState>,
    unreadable: impl FnOnce() -> S,
) -> Row<S> {
    match read {
        None => Row { before: None, state: S::default() },
        Some(read) => match serde_json::from_str::<S>(&read.state) {
            Ok(state) => Row { before: Some(state.clone()), state },
            Err(_) => Row { before: None, state: unreadable() },
        },
    }
}

fn text<S: serde::Serialize>(state: &S) -> String {
    // These states have nothing that JSON cannot express.
    serde_json::to_string(state).unwrap_or_default()
}

//! World: nodes with the real engine and the real operations, over one store, with dependencies and clients.
//!
//! | file | content |
//! | --- | --- |
//! | `machine` | a machine's clock, which may be wrong within bounds |
//! | `node` | a process on it: started, killed, paused, stopped |
//! | `database`, `connection` | the store that the nodes share, its faults, and the connection to it |
//! | `records`, `shared_guards` | what goes over that connection for idempotency records and for guards |
//! | `news` | notifications between nodes, some of which are lost |
//! | `network`, `wire` | dependencies, and what happens to a send |
//! | `client` | errands: submitting, retrying, cancelling |
//! | `trouble` | runs the plan's faults |
//! | `closing` | after all faults are over: reads and checks the final state |
//! | `alerts` | captures the alerts in the log |
//! | `notifier` | the server's notifier in each process |
//!
//! Everything that happens is passed to the [`Observer`]: the model checks it, the trace hashes it.

mod alerts;
mod client;
mod closing;
mod connection;
mod database;
mod machine;
mod network;
mod news;
mod node;
mod notifier;
mod observer;
mod records;
mod shared_guards;
mod trouble;
mod wire;

pub use observer::{Observer, Told, Witness};

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use redrive_core::TenantId;
use redrive_store::memory::MemorySharedGuards;
use redrive_store::{MemoryStore, Store};

use crate::executor::{Executor, WORLD};
use crate::model::{Model, Rules, Violation};
use crate::moment::Moment;
use crate::plan::{Plan, Shape};
use crate::random::Random;
use crate::tally::Tally;
use crate::trace::{Line, Trace};
use database::Database;
use network::Network;
use news::Mailboxes;
use node::Node;

/// The streams that a world draws from; those of a plan have lower numbers.
mod streams {
    pub(super) const EXECUTOR: u64 = 10;
    pub(super) const DATABASE: u64 = 11;
    pub(super) const NEWS: u64 = 12;
    pub(super) const SOCKETS: u64 = 13;
    pub(super) const NODES: u64 = 100;
    pub(super) const NETWORK: u64 = 1_000;
    pub(super) const FAULTS: u64 = 10_000;
    pub(super) const ERRANDS: u64 = 1_000_000;
    pub(super) const RECORDS: u64 = 100_000_000;
    pub(super) const SINKS: u64 = 10_000_000_000;
}

/// The result of a plan.
#[derive(Debug)]
pub struct Run {
    /// The invariant that was broken, if one was.
    pub violation: Option<Violation>,
    /// The hash of all events: the same plan has the same one.
    pub hash: u64,
    /// The counts.
    pub tally: Tally,
    /// The events as lines, if requested.
    pub lines: Vec<Line>,
}

/// Runs a plan over a store in memory.
///
/// Must not be called inside a tokio runtime: there, tokio's channels yield after a while, and nothing here would wake
/// them again.
pub fn run(plan: &Plan, keeps_lines: bool) -> Run {
    run_over(plan, Arc::new(MemoryStore::new()), None, keeps_lines)
}

/// Runs a plan over this store, whose calls must complete at once. `witness` is called with what clients were told.
pub fn run_over(plan: &Plan, store: Arc<dyn Store>, witness: Option<Witness>, keeps_lines: bool) -> Run {
    let _planted = plan.bug.map(redrive_planted::plant);
    let world = World::new(plan, store, witness, keeps_lines);
    let outcome = quietly(|| {
        alerts::heard_by(&world, || world.live(plan));
        let end = world.executor.fingerprint();
        world.end();
        end
    });
    let end = outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        world.observer().panicked(text.unwrap_or_else(|| "a panic without a message".to_owned()));
        world.executor.fingerprint()
    });
    let mut observer = world.observer();
    observer.trace.seal(end);
    let tally = observer.tally;
    observer.trace.seal(tally);
    observer.tally.worlds = 1;
    observer.tally.steps = end.0;
    observer.tally.simulated = end.1.since(Moment::default());
    let trace = std::mem::take(&mut observer.trace);
    Run {
        violation: observer.model.violation().cloned(),
        hash: trace.hash(),
        tally: observer.tally,
        lines: trace.into_lines(),
    }
}

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Does `work`. A panic in it is a finding: its message is reported with its seed and not printed.
fn quietly<R>(work: impl FnOnce() -> R) -> std::thread::Result<R> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !IS_QUIET.get() {
                usual(info);
            }
        }));
    });
    IS_QUIET.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    IS_QUIET.set(false);
    outcome
}

/// The state of a world.
struct World {
    seed: u64,
    shape: Shape,
    executor: Executor,
    nodes: Vec<Node>,
    database: Database,
    network: Network,
    mailboxes: Mailboxes,
    /// The guards that the nodes over a shared store share.
    guards: MemorySharedGuards,
    tenants: Vec<TenantId>,
    /// Whether the time of faults is over.
    is_well: AtomicBool,
    observer: Mutex<Observer>,
}

impl World {
    fn new(plan: &Plan, store: Arc<dyn Store>, witness: Option<Witness>, keeps_lines: bool) -> Arc<Self> {
        let shape = &plan.shape;
        let seed = plan.seed ^ plan.luck.rotate_left(40);
        let items = plan.errands.iter().flat_map(|errand| errand.items.clone());
        let mut tenants: Vec<TenantId> = items.clone().map(|item| item.document.tenant).collect();
        tenants.push(TenantId::default_tenant());
        tenants.sort();
        tenants.dedup();
        let model = Model::new(Rules::of(shape), items);
        Arc::new(World {
            seed,
            executor: Executor::new(Random::stream(seed, streams::EXECUTOR)),
            nodes: (0..shape.nodes).map(|number| Node::new(number, seed, shape)).collect(),
            database: Database::new(store, Random::stream(seed, streams::DATABASE), shape.exclusive),
            network: Network::new(seed, shape),
            guards: MemorySharedGuards::default(),
            mailboxes: Mailboxes::new(shape.nodes, Random::stream(seed, streams::NEWS)),
            tenants,
            is_well: AtomicBool::new(false),
            observer: Mutex::new(Observer { model, trace: Trace::new(keeps_lines), tally: Tally::default(), witness }),
            shape: shape.clone(),
        })
    }

    /// Runs the world from its beginning to its end.
    fn live(self: &Arc<Self>, plan: &Plan) {
        for node in &self.nodes {
            self.start(node.number);
        }
        self.executor.spawn(WORLD, client::set_up(self.clone()));
        for errand in &plan.errands {
            self.executor.spawn(WORLD, client::run(self.clone(), errand.clone()));
        }
        for errand in &plan.records {
            self.executor.spawn(WORLD, client::use_record(self.clone(), errand.clone()));
        }
        for fault in &plan.faults {
            self.executor.spawn(WORLD, trouble::happen(self.clone(), fault.clone()));
        }
        let is_over = || self.observer().model.violation().is_some();
        let well_from = Moment::default().after(self.shape.trouble);
        if let Err(livelock) = self.executor.run(well_from, is_over) {
            self.observer().stood_still(livelock.at);
        }
        if is_over() {
            return;
        }
        self.be_well();
        let closed = Arc::new(AtomicBool::new(false));
        self.executor.spawn(WORLD, closing::close(self.clone(), well_from, closed.clone()));
        let last = well_from.after(closing::LONGEST);
        if let Err(livelock) = self.executor.run(last, || closed.load(Ordering::Relaxed) || is_over()) {
            self.observer().stood_still(livelock.at);
        }
        if !closed.load(Ordering::Relaxed) {
            self.observer().never_closed(last);
        }
    }

    /// Ends everything, so that nothing of this world outlives it.
    fn end(&self) {
        for node in &self.nodes {
            self.take_down(node);
        }
        self.executor.kill(WORLD);
    }

    fn is_well(&self) -> bool {
        self.is_well.load(Ordering::Relaxed)
    }

    fn now(&self) -> Moment {
        self.executor.now()
    }

    /// The observer, set to the current time.
    fn observer(&self) -> MutexGuard<'_, Observer> {
        let now = self.now();
        let mut observer = lock(&self.observer);
        observer.model.at(now);
        observer
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

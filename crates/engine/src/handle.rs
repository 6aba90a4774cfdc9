//! Starting the engine, and the handle that the rest of the program holds.

use std::borrow::Cow;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use redrive_core::{TaskId, TenantId, Timestamp};
use redrive_store::{
    BringForwardOutcome, CancelOutcome, Error, Node, ReplayOutcome, Store, Submitted, TaskDetail, Vitals,
};
use tokio::sync::{Notify, oneshot};

use crate::announcer::Alerts;
use crate::bodies::Bodies;
use crate::common_clock::{self, ClockState, CommonClock};
use crate::entropy::Entropy;
use crate::events::{EndedBy, Events, Report, Sink};
use crate::in_flight::InFlight;
use crate::lane_scan::MissedWork;
use crate::lanes::Lanes;
use crate::loops::Loops;
use crate::options::{InvalidOption, Options};
use crate::overdue::{self, Deadlines};
use crate::policies::Policies;
use crate::settle::SlowSettles;
use crate::shared::{Phase, Shared};
use crate::spawner::Spawner;
use crate::store_outage::StoreOutage;
use crate::submit::{self, ValidatedTask};
use crate::task_ids::TaskIds;
use crate::throttled_report::ThrottledReport;
use crate::transport::Transport;
use crate::waiters::Waiters;
use crate::watched::Watched;
use crate::{announcer, claimer, cleaner, collector, lane_scan, peers, rescuer};

/// How often somebody who waits for a task's end looks at a store that others write to.
const LOOK_AFTER: Duration = Duration::from_millis(500);

/// How long a stop waits for the store once the attempts have been given up.
const LAST_CALLS: Duration = Duration::from_secs(5);

/// What is injected into the engine.
#[derive(Clone)]
pub struct Parts {
    /// Time: of the store below.
    pub clock: Arc<CommonClock>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
    /// How things run beside one another.
    pub spawner: Arc<dyn Spawner>,
    /// Where tasks are kept.
    pub store: Arc<dyn Store>,
    /// How they are sent.
    pub transport: Arc<dyn Transport>,
    /// Where bodies are kept that are too large for a task; without it, every body is a part of its task.
    pub bodies: Option<Arc<dyn Bodies>>,
    /// What is told of events, beside the log.
    pub sinks: Vec<Arc<dyn Sink>>,
}

/// Why the engine did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting makes no sense.
    #[error(transparent)]
    Option(#[from] InvalidOption),
    /// The store could not be read.
    #[error("reading the store at the start: {0}")]
    Store(#[from] Error),
}

/// The running engine, for everybody who hands it work. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
    loops: Loops,
    /// The announcer, and what says that this process lives: they end after the last attempt, the others before.
    announcing: Loops,
    vitals: Vitals,
}

/// Starts the engine's loops.
pub async fn start(parts: Parts, options: Options) -> Result<Handle, StartError> {
    options.validate()?;
    let Parts { clock, entropy, spawner, store, transport, bodies, sinks } = parts;
    let events = Events::new(sinks);
    clock.begin(&*store, options.lease_margin).await?;
    let newest = store.upkeep().newest_task().await?;
    let (alerts, unconfirmed) = Alerts::new(options.steps.unconfirmed, events.clone());
    let shared = Arc::new(Shared {
        lanes: Lanes::new(&options, clock.clone(), events.clone()),
        deadlines: Deadlines::default(),
        in_flight: Arc::new(InFlight::default()),
        waiters: Waiters::default(),
        policies: Policies::new(store.clone(), clock.clone()),
        ids: TaskIds::above(newest),
        phase: Watched::new(Phase::Running),
        schedule_lost: Notify::new(),
        missed_work: MissedWork::default(),
        started_at: clock.now(),
        abandoned_leases: Arc::default(),
        alerts,
        unread: ThrottledReport::default(),
        store_outage: StoreOutage::default(),
        slow_settles: SlowSettles::new(),
        events,
        clock,
        entropy,
        spawner,
        store,
        transport,
        bodies,
        options,
    });
    announcer::start(&shared).await;
    let vitals = Vitals::default();
    let (loops, announcing) = (Loops::new(&vitals, &shared.events), Loops::new(&vitals, &shared.events));
    let spawner = shared.spawner.as_ref();
    let stops_at = |phase| {
        let shared = shared.clone();
        move || shared.phase() >= phase
    };
    loops.start(spawner, "claimer", stops_at(Phase::Draining), claimer::run(shared.clone()));
    loops.start(spawner, "rebuilder", stops_at(Phase::Draining), lane_scan::run(shared.clone()));
    loops.start(spawner, "rescuer", stops_at(Phase::Draining), rescuer::run(shared.clone()));
    loops.start(spawner, "overdue", stops_at(Phase::Draining), overdue::run(shared.clone()));
    loops.start(spawner, "cleaner", stops_at(Phase::Draining), cleaner::run(shared.clone()));
    if let Some(bodies) = &shared.bodies {
        let collecting = collector::run(shared.clone(), bodies.clone());
        loops.start(spawner, "collector", stops_at(Phase::Draining), collecting);
    }
    announcing.start(spawner, "announcer", stops_at(Phase::Confirming), announcer::run(shared.clone(), unconfirmed));
    announcing.start(spawner, "clock", stops_at(Phase::Confirming), common_clock::keeper::run(shared.clone()));
    if shared.store.shared().is_some() {
        // Until attempts are given up, a cancel that is heard can stop one: it ends after the loops that claim.
        announcing.start(spawner, "listener", stops_at(Phase::Returning), peers::listen(shared.clone()));
        announcing.start(spawner, "heartbeat", stops_at(Phase::Confirming), peers::keep_beating(shared.clone()));
    }
    Ok(Handle { shared, loops, announcing, vitals })
}

impl Handle {
    /// What time the engine thinks it is.
    pub fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// What there is to say of this process's clocks.
    pub fn clock_state(&self) -> ClockState {
        self.shared.clock.state()
    }

    /// Notes that a call failed because the store did: an outage is logged once, not with every call.
    pub fn store_failed(&self, doing: &'static str, error: &dyn Display) {
        self.shared.store_failed(doing, error);
    }

    /// Notes that a call of this kind worked.
    pub fn store_worked(&self, doing: &'static str) {
        self.shared.store_worked(doing);
    }

    /// 128 random bits, for keys that the caller did not give.
    pub fn random_bits(&self) -> u128 {
        u128::from(self.shared.entropy.bits()) << 64 | u128::from(self.shared.entropy.bits())
    }

    /// Accepts tasks in one commit. They are durable once this answers.
    pub async fn submit(&self, tasks: Vec<ValidatedTask>) -> Result<Vec<Submitted>, Error> {
        let shared = self.shared.clone();
        self.see_through(async move { submit::submit(&shared, tasks).await }).await
    }

    /// Takes a task back. Once this has answered CANCELLED, no byte of it leaves any more. A task in flight is answered as
    /// such, with the cancel requested: what this process has not sent by then it does not send, another process may.
    pub async fn cancel(&self, tenant: TenantId, id: TaskId) -> Result<CancelOutcome, Error> {
        let shared = self.shared.clone();
        self.see_through(async move {
            let cancelled = shared.store.tasks().cancel_one(tenant, id, shared.clock.now()).await?;
            if let CancelOutcome::Done(task) = &cancelled {
                if task.status.is_ended() {
                    shared.task_ended(task, task.status, EndedBy::Cancel, || Cow::Borrowed(&**task));
                } else {
                    shared.in_flight.cancel(id);
                }
            }
            Ok(cancelled)
        })
        .await
    }

    /// Makes a waiting task due now.
    pub async fn bring_forward(&self, tenant: TenantId, id: TaskId) -> Result<BringForwardOutcome, Error> {
        let shared = self.shared.clone();
        self.see_through(async move {
            let brought = shared.store.tasks().bring_one_forward(tenant, id, shared.clock.now()).await?;
            match &brought {
                BringForwardOutcome::Done(task) => shared.note_due(task),
                // It is claimed already, and held until it is due.
                BringForwardOutcome::InFlight(task) if shared.in_flight.release(id) => {
                    return Ok(BringForwardOutcome::Done(task.clone()));
                }
                _ => {}
            }
            Ok(brought)
        })
        .await
    }

    /// Puts a dead letter back to work, on the same task and with the same idempotency key: a new run, due now.
    pub async fn replay(&self, tenant: TenantId, id: TaskId) -> Result<ReplayOutcome, Error> {
        let shared = self.shared.clone();
        self.see_through(async move {
            let replayed = shared.store.tasks().replay_one(tenant, id, shared.clock.now()).await?;
            if let ReplayOutcome::Done(task) = &replayed {
                shared.note_due(task);
            }
            Ok(replayed)
        })
        .await
    }

    /// The task as soon as it has ended, or as it is when `within` has passed or the engine gives attempts up; `None` if
    /// there is no such task.
    pub async fn ended(&self, tenant: TenantId, id: TaskId, within: Duration) -> Result<Option<TaskDetail>, Error> {
        let waiter = self.shared.waiters.wait_for(id);
        let mut time_is_up = self.shared.clock.sleep(within);
        loop {
            let end = waiter.end();
            let task = self.shared.store.reads().task(tenant.clone(), id).await?;
            if task.as_ref().is_none_or(|detail| detail.task.status.is_ended()) {
                return Ok(task);
            }
            tokio::select! {
                biased;
                // It is told of an end that is only likely, too: then the look at the task decides.
                () = end => {}
                () = self.shared.reached(Phase::Returning) => break,
                () = &mut time_is_up => break,
                // Another process may end it, and nobody here is told.
                () = self.shared.clock.sleep(LOOK_AFTER), if !self.shared.store.is_exclusive() => {}
            }
        }
        self.shared.store.reads().task(tenant, id).await
    }

    /// The policies.
    pub fn policies(&self) -> &Policies {
        &self.shared.policies
    }

    /// The store, for reading.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    /// Every process over the store that has been heard of and has not left; on a store of its own, this one.
    pub async fn nodes(&self) -> Result<Vec<Node>, Error> {
        match self.shared.store.shared() {
            Some(peers) => peers.nodes().await,
            None => Ok(vec![peers::alone(&self.shared)]),
        }
    }

    /// Where large bodies are kept, if they are kept apart.
    pub fn bodies(&self) -> Option<&Arc<dyn Bodies>> {
        self.shared.bodies.as_ref()
    }

    /// Whether the engine has begun to stop.
    pub fn is_stopping(&self) -> bool {
        self.shared.phase() != Phase::Running
    }

    /// The loop of the engine that has died, if one has: then the process has to be started again.
    pub fn dead(&self) -> Option<&'static str> {
        self.vitals.dead()
    }

    /// Ends once a loop of the engine, or a part of the store that works by itself, has died; says which.
    pub async fn died(&self) -> String {
        tokio::select! {
            biased;
            name = self.vitals.died() => format!("the engine's {name}"),
            name = self.shared.store.health().died() => format!("the store's {name}"),
        }
    }

    /// How many attempts are under way.
    pub fn in_flight(&self) -> usize {
        self.shared.in_flight.count()
    }

    /// Dead letters that this engine has raised the alert for.
    pub fn dead_letters(&self) -> u64 {
        self.shared.alerts.raised()
    }

    /// Forgets what is due in every lane and has it read from the store again, in the background. The lanes in memory are
    /// an index that may be lost at any moment; this is for whoever has a reason to doubt it.
    pub fn rebuild_schedule(&self) {
        self.shared.lanes.forget_due();
        self.shared.schedule_lost.notify_one();
    }

    /// Stops claiming; attempts under way go on.
    pub fn drain(&self) {
        self.shared.advance(Phase::Draining);
    }

    /// Stops: claims nothing more, lets attempts under way finish within the grace, then gives the rest up and returns
    /// them to the store. When this answers, nothing of this engine runs any more, unless the store does not answer: then
    /// what still waits for it is left behind, and its leases run out.
    pub async fn stop(&self) {
        self.drain();
        let mut grace_is_over = self.shared.clock.sleep(self.shared.options.shutdown_grace);
        // A claim under way may still start attempts: they are waited for only once no loop can start more.
        let nothing_runs = async {
            self.loops.ended().await;
            self.shared.in_flight.empty().await;
        };
        tokio::select! {
            biased;
            () = nothing_runs => {}
            () = &mut grace_is_over => {
                self.shared.events.report(Report::AttemptsGivenUp(self.in_flight()));
                self.shared.advance(Phase::Returning);
                self.in_time("returning attempts", async {
                    self.loops.ended().await;
                    self.shared.in_flight.empty().await;
                })
                .await;
            }
        }
        self.shared.advance(Phase::Confirming);
        self.in_time("confirming alerts", self.announcing.ended()).await;
    }

    /// Waits for the last calls of the store, for a bounded time.
    async fn in_time(&self, doing: &'static str, work: impl Future<Output = ()>) {
        tokio::select! {
            biased;
            () = work => {}
            () = self.shared.clock.sleep(LAST_CALLS) => {
                self.shared.events.report(Report::StoreSilent(doing));
            }
        }
    }

    /// Runs to the end even if the caller goes away: between a commit and what follows from it in memory nobody may drop
    /// out, or a task would lie in the store without anybody knowing.
    async fn see_through<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        let (answer, answered) = oneshot::channel();
        let shared = self.shared.clone();
        self.shared.spawner.spawn(Box::pin(async move {
            let outcome = work.await;
            if outcome.is_err() {
                shared.missed_work.note();
            }
            if answer.send(outcome).is_err() {
                shared.events.report(Report::CallerGone);
            }
        }));
        answered.await.unwrap_or_else(|_| Err(Error::Unavailable("the call broke off".into())))
    }
}

//! Starting the engine, and the handle that the rest of the program holds.

use std::borrow::Cow;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use redrive_core::guards::{self, Controls};
use redrive_core::{Answer, Dependency, Lane, Status, Task, TaskId, TenantId, Timestamp};
use redrive_store::{
    Backlog, BringForwardOutcome, CancelOutcome, Error, Liveness, Node, ReplayOutcome, Store, Submitted, TaskDetail,
};
use tokio::sync::{Notify, oneshot};

use crate::alert_relay::AlertRelay;
use crate::announcer::Alerts;
use crate::bodies::Bodies;
use crate::clock::Sleep;
use crate::common_clock::{self, ClockState, CommonClock};
use crate::engine_state::{EngineState, Phase};
use crate::entropy::Entropy;
use crate::events::{EndedBy, Events, Report, Sink};
use crate::guard_exchange::GuardExchange;
use crate::in_flight::InFlight;
use crate::lane_scan::MissedWork;
use crate::lanes::{LaneReport, Lanes, Waiting};
use crate::loops::Loops;
use crate::options::{InvalidOption, Options};
use crate::overdue::{self, Deadlines};
use crate::policies::Policies;
use crate::settle::SlowSettles;
use crate::spawner::Spawner;
use crate::store_outage::StoreOutage;
use crate::submit::{self, ValidatedTask};
use crate::suppressor::{self, AwaitedRetries};
use crate::task_ids::TaskIds;
use crate::throttled_report::ThrottledReport;
use crate::transport::{Outbound, SendError, Transport};
use crate::waiters::Waiters;
use crate::watch::Watch;
use crate::{announcer, claimer, cleaner, collector, guard_exchange, guard_upkeep, lane_scan, peers, rescuer};

/// How often a caller that waits for a task's end reads a store that other processes write to.
const LOOK_AFTER: Duration = Duration::from_millis(500);

/// How long a report waits for the store's counts.
const COUNT_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a stop waits for the store once the attempts have been given up.
const LAST_CALLS: Duration = Duration::from_secs(5);

/// The dependencies that are injected into the engine.
#[derive(Clone)]
pub struct Parts {
    /// The time of the store below.
    pub clock: Arc<CommonClock>,
    /// The source of random numbers.
    pub entropy: Arc<dyn Entropy>,
    /// Runs the engine's concurrent work.
    pub spawner: Arc<dyn Spawner>,
    /// The store of tasks.
    pub store: Arc<dyn Store>,
    /// The transport that sends them.
    pub transport: Arc<dyn Transport>,
    /// Storage of bodies that are too large for a task. Without it, every body is kept with its task.
    pub bodies: Option<Arc<dyn Bodies>>,
    /// Receivers of events, beside the log.
    pub sinks: Vec<Arc<dyn Sink>>,
    /// Tells people of dead letters. Without it, the event of a dead letter is its alert.
    pub alert_relay: Option<Arc<dyn AlertRelay>>,
}

/// Why the engine did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting is invalid.
    #[error(transparent)]
    Option(#[from] InvalidOption),
    /// The store could not be read.
    #[error("reading the store at the start: {0}")]
    Store(#[from] Error),
}

/// Handle of the running engine, for the parts of the program that give it work. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    shared: Arc<EngineState>,
    loops: Loops,
    /// The announcer, the clock reader, the listener and the heartbeat: they outlive the loops that claim, because
    /// attempts in flight need them.
    announcing: Loops,
    liveness: Liveness,
}

/// Starts the engine's loops.
pub async fn start(parts: Parts, options: Options) -> Result<Handle, StartError> {
    options.validate()?;
    let Parts { clock, entropy, spawner, store, transport, bodies, sinks, alert_relay } = parts;
    let events = Events::new(options.log, sinks);
    clock.begin(&*store, options.lease_margin).await?;
    let newest = store.upkeep().newest_task().await?;
    let (alerts, unconfirmed) = Alerts::new(options.steps.unconfirmed, events.clone());
    let shared = Arc::new(EngineState {
        lanes: Lanes::new(&options, clock.clone(), entropy.clone(), events.clone(), store.shared().is_some()),
        guard_exchange: GuardExchange::new(node_name(&*store, &*entropy)),
        deadlines: Deadlines::default(),
        in_flight: Arc::new(InFlight::default()),
        waiters: Waiters::default(),
        policies: Policies::new(store.clone(), clock.clone()),
        ids: TaskIds::above(newest),
        phase: Watch::new(Phase::Running),
        schedule_lost: Notify::new(),
        missed_work: MissedWork::default(),
        started_at: clock.now(),
        abandoned_leases: Arc::default(),
        alerts,
        alert_relay,
        awaited_retries: AwaitedRetries::default(),
        unread: ThrottledReport::default(),
        changing_controls: tokio::sync::Mutex::new(()),
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
    guard_upkeep::restore(&shared).await?;
    announcer::start(&shared).await;
    let liveness = Liveness::default();
    let (loops, announcing) = (Loops::new(&liveness, &shared.events), Loops::new(&liveness, &shared.events));
    let spawner = shared.spawner.as_ref();
    let stops_at = |phase| {
        let shared = shared.clone();
        move || shared.phase() >= phase
    };
    loops.start(spawner, "claimer", stops_at(Phase::Draining), claimer::run(shared.clone()));
    loops.start(spawner, "rebuilder", stops_at(Phase::Draining), lane_scan::run(shared.clone()));
    loops.start(spawner, "rescuer", stops_at(Phase::Draining), rescuer::run(shared.clone()));
    loops.start(spawner, "overdue", stops_at(Phase::Draining), overdue::run(shared.clone()));
    loops.start(spawner, "suppressor", stops_at(Phase::Draining), suppressor::run(shared.clone()));
    loops.start(spawner, "cleaner", stops_at(Phase::Draining), cleaner::run(shared.clone()));
    if let Some(bodies) = &shared.bodies {
        let collecting = collector::run(shared.clone(), bodies.clone());
        loops.start(spawner, "collector", stops_at(Phase::Draining), collecting);
    }
    announcing.start(spawner, "announcer", stops_at(Phase::Confirming), announcer::run(shared.clone(), unconfirmed));
    announcing.start(spawner, "clock", stops_at(Phase::Confirming), common_clock::clock_reader::run(shared.clone()));
    if shared.store.shared().is_some() {
        // Runs until attempts are given up, longer than the loops that claim: a cancel that it receives can still stop
        // one.
        announcing.start(spawner, "listener", stops_at(Phase::Returning), peers::listen(shared.clone()));
        announcing.start(spawner, "guards", stops_at(Phase::Confirming), guard_exchange::run(shared.clone()));
        announcing.start(spawner, "heartbeat", stops_at(Phase::Confirming), peers::keep_beating(shared.clone()));
    }
    Ok(Handle { shared, loops, announcing, liveness })
}

/// A name for this process among those that share guards, which no other has, not even the one before a restart.
fn node_name(store: &dyn Store, entropy: &dyn Entropy) -> String {
    match store.shared() {
        Some(_) => format!("{:016x}", entropy.bits()),
        None => String::new(),
    }
}

impl Handle {
    /// The engine's current time.
    pub fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// Ends after `wait` by the engine's clock.
    pub fn sleep(&self, wait: Duration) -> Sleep {
        self.shared.clock.sleep(wait)
    }

    /// The state of this process's clocks.
    pub fn clock_state(&self) -> ClockState {
        self.shared.clock.state()
    }

    /// Notes that a call of the store failed. An outage is logged once, not with every call.
    pub fn store_failed(&self, doing: &'static str, error: &dyn Display) {
        self.shared.store_failed(doing, error);
    }

    /// Notes that a call of this kind succeeded.
    pub fn store_worked(&self, doing: &'static str) {
        self.shared.store_worked(doing);
    }

    /// Whether the store fails at the moment, as far as this process has noticed.
    pub fn is_store_out(&self) -> bool {
        self.shared.store_outage.is_going_on()
    }

    /// Whether calls of the store fail now: whether one failed in the last minute and works no more.
    pub fn is_store_failing(&self) -> bool {
        self.shared.store_outage.is_failing(self.shared.clock.elapsed())
    }

    /// 128 random bits, for idempotency keys that the caller did not give.
    pub fn random_bits(&self) -> u128 {
        u128::from(self.shared.entropy.bits()) << 64 | u128::from(self.shared.entropy.bits())
    }

    /// Accepts tasks in one commit. They are durable once this returns.
    pub async fn submit(&self, tasks: Vec<ValidatedTask>) -> Result<Vec<Submitted>, Error> {
        let shared = self.shared.clone();
        self.run_to_completion(async move { submit::submit(&shared, tasks).await }).await
    }

    /// Cancels a task. Once this has returned CANCELLED, no byte of it is sent any more. For a task in flight it
    /// returns the task with the cancel requested: this process does not send what it has not sent by then, another
    /// process may.
    pub async fn cancel(&self, tenant: TenantId, id: TaskId) -> Result<CancelOutcome, Error> {
        let shared = self.shared.clone();
        self.run_to_completion(async move {
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
        self.run_to_completion(async move {
            let brought = shared.store.tasks().bring_one_forward(tenant, id, shared.clock.now()).await?;
            match &brought {
                BringForwardOutcome::Done(task) => shared.note_due(task),
                // It is already claimed, and held until it is due.
                BringForwardOutcome::InFlight(task) if shared.in_flight.release(id) => {
                    return Ok(BringForwardOutcome::Done(task.clone()));
                }
                _ => {}
            }
            Ok(brought)
        })
        .await
    }

    /// Replays a dead letter: a new run of the same task, with the same idempotency key, due now.
    pub async fn replay(&self, tenant: TenantId, id: TaskId) -> Result<ReplayOutcome, Error> {
        let shared = self.shared.clone();
        self.run_to_completion(async move {
            let replayed = shared.store.tasks().replay_one(tenant, id, shared.clock.now()).await?;
            if let ReplayOutcome::Done(task) = &replayed {
                shared.note_due(task);
            }
            Ok(replayed)
        })
        .await
    }

    /// Waits for the task's end. Returns the task once it has ended, or as it is when `within` has passed or the engine
    /// gives attempts up; `None` if there is no such task.
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
                // It is also woken for an end that is only likely: the task is read to decide.
                () = end => {}
                () = self.shared.reached(Phase::Returning) => break,
                () = &mut time_is_up => break,
                // Another process may end it without a notification here.
                () = self.shared.clock.sleep(LOOK_AFTER), if !self.shared.store.is_exclusive() => {}
            }
        }
        self.shared.store.reads().task(tenant, id).await
    }

    /// The states of a tenant's lanes as this process sees them, by dependency after `after`, at most `limit`.
    pub fn lane_reports(&self, tenant: &TenantId, after: Option<&Dependency>, limit: usize) -> Vec<LaneReport> {
        self.shared.lanes.reports(tenant, after, limit)
    }

    /// The state of a lane; `None` if this process knows nothing of it and operators have set nothing for it.
    pub fn lane_report(&self, lane: &Lane) -> Option<LaneReport> {
        self.shared.lanes.report(lane)
    }

    /// How many pending tasks these lanes have in the store, in order, each number counted up to `most`; `None` if the store
    /// does not answer at the moment.
    pub async fn backlogs(&self, lanes: Vec<Lane>, most: u32) -> Option<Vec<Backlog>> {
        let now = self.now();
        self.count(self.shared.store.reads().backlogs(lanes, now, most)).await
    }

    /// How many retries of each of these lanes belong to tasks that were accepted before this moment, in order; of each lane the
    /// `look_at` retries that are due first are looked at. `None` if the store does not answer at the moment.
    pub async fn old_retries(&self, lanes: Vec<Lane>, accepted_before: Timestamp, look_at: u32) -> Option<Vec<u32>> {
        let reads = self.shared.store.reads();
        self.count(reads.old_retries(lanes, accepted_before, look_at)).await
    }

    /// The answer of a count; `None` if it fails or takes too long. Neither is an outage of the store: a count may look at many
    /// rows, and no task depends on it.
    async fn count<T>(&self, count: impl Future<Output = Result<T, Error>>) -> Option<T> {
        let counted = tokio::select! {
            biased;
            counted = count => counted,
            () = self.shared.clock.sleep(COUNT_TIMEOUT) => {
                Err(Error::Unavailable(format!("no answer within {COUNT_TIMEOUT:?}")))
            }
        };
        counted.inspect_err(|error| tracing::debug!(%error, "the store's tasks could not be counted")).ok()
    }

    /// Sends a request once, at once and past the store, the lanes and their guards. Nothing of it is kept.
    pub async fn send_directly(&self, outbound: Outbound) -> Result<Answer, SendError> {
        self.shared.transport.send(outbound).await
    }

    /// What a pending task waits for; `None` if it is about to be sent.
    pub fn waiting_for(&self, task: &Task) -> Option<Waiting> {
        match task.status {
            Status::Pending => self.shared.lanes.waiting_for(task),
            _ => None,
        }
    }

    /// Changes what operators have set for a lane. Durable once this returns. Returns what is set now. If another process
    /// changes it at the same time, `change` is applied again to what that process has set.
    pub async fn change_controls(
        &self,
        lane: Lane,
        change: impl Fn(&mut Controls) + Send + 'static,
    ) -> Result<Controls, Error> {
        let shared = self.shared.clone();
        self.run_to_completion(async move { guard_upkeep::change_controls(&shared, &lane, change).await }).await
    }

    /// How many lanes operators have set something for, of all tenants.
    pub fn controlled_lanes(&self) -> usize {
        self.shared.lanes.controlled()
    }

    /// How long an ended task is kept.
    pub fn retention(&self) -> Duration {
        self.shared.options.retention
    }

    /// The settings of the guards of every lane.
    pub fn guard_settings(&self) -> &guards::Settings {
        &self.shared.options.guards
    }

    /// Closes the breaker of a lane, for all processes within a moment.
    pub fn close_breaker(&self, lane: &Lane) {
        self.shared.lanes.close_breaker(lane);
    }

    /// Forgets what the guards of a lane have counted, and closes its breaker; for all processes within a moment.
    pub fn reset_guards(&self, lane: &Lane) {
        self.shared.lanes.reset_guards(lane);
    }

    /// The policies, through their cache.
    pub fn policies(&self) -> &Policies {
        &self.shared.policies
    }

    /// The store, for reading.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    /// Every process over the store that has registered and has not left; on an exclusive store, this one.
    pub async fn nodes(&self) -> Result<Vec<Node>, Error> {
        match self.shared.store.shared() {
            Some(peers) => peers.nodes().await,
            None => Ok(vec![peers::alone(&self.shared)]),
        }
    }

    /// Storage of large bodies, if there is one.
    pub fn bodies(&self) -> Option<&Arc<dyn Bodies>> {
        self.shared.bodies.as_ref()
    }

    /// Whether the engine has begun to stop.
    pub fn is_stopping(&self) -> bool {
        self.shared.phase() != Phase::Running
    }

    /// The engine's loop that has died, if one has: the process must be restarted.
    pub fn dead(&self) -> Option<&'static str> {
        self.liveness.dead()
    }

    /// Waits until a loop of the engine, or a background thread of the store, has died. Returns which.
    pub async fn died(&self) -> String {
        tokio::select! {
            biased;
            name = self.liveness.died() => format!("the engine's {name}"),
            name = self.shared.store.health().died() => format!("the store's {name}"),
        }
    }

    /// How many attempts are in flight.
    pub fn in_flight(&self) -> usize {
        self.shared.in_flight.count()
    }

    /// How many dead letters this engine has raised the alert for.
    pub fn dead_letters(&self) -> u64 {
        self.shared.alerts.raised()
    }

    /// Discards the due times of every lane and has them read from the store again, in the background. The lanes in
    /// memory are an index over the store; this repairs it if it is in doubt.
    pub fn rebuild_schedule(&self) {
        self.shared.lanes.forget_due();
        self.shared.schedule_lost.notify_one();
    }

    /// Stops claiming; attempts in flight continue.
    pub fn drain(&self) {
        self.shared.advance(Phase::Draining);
    }

    /// Stops the engine: claims nothing more, lets attempts in flight finish within the grace, then gives up the others
    /// and returns them to the store. When this returns, nothing of this engine runs any more. Exception: calls that
    /// the store does not answer are abandoned, and their leases expire.
    pub async fn stop(&self) {
        self.drain();
        let mut grace_is_over = self.shared.clock.sleep(self.shared.options.shutdown_grace);
        // A claim in progress may still start attempts, so wait for them only once no loop can start more.
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

    /// Waits for the last calls of the store, for [`LAST_CALLS`] at most.
    async fn in_time(&self, doing: &'static str, work: impl Future<Output = ()>) {
        tokio::select! {
            biased;
            () = work => {}
            () = self.shared.clock.sleep(LAST_CALLS) => {
                self.shared.events.report(Report::StoreSilent(doing));
            }
        }
    }

    /// Runs `work` to its end even if the caller is dropped. Otherwise the steps in memory that follow a commit could
    /// be skipped, and a task would lie in the store without being scheduled.
    async fn run_to_completion<T: Send + 'static>(
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

//! Clients that use idempotency records: owners that work, stall and come back, duplicates, operators and cleaners.
//!
//! A client repeats a call without an answer: a reservation with the same execution, a change with the same epoch.

use std::sync::Arc;
use std::time::Duration;

use redrive_core::Timestamp;
use redrive_core::idempotency::{
    Change, Completion, Epoch, ExecutionId, Owner, RecordKey, RequestHash, Reserve, Reserved, Response,
};
use redrive_server::{App, OperationError};
use redrive_store::{
    Answers, Error, OperationFilter, RecordChange, RecordChanged, RecordQuery, Reservation, SeenRecord,
};

use super::{Answer, Caller};
use crate::plan::{Execution, RecordAct, RecordErrand, RecordStep, RecordWork};
use crate::random::Random;
use crate::world::{World, streams};

/// How often a call without an answer is made.
const TRIES: usize = 3;
/// How often a patient execution waits for the end of another one's lease.
const WAITS: usize = 4;
/// The longest wait on a node for the very moment at which a lease ends.
const LAST_WAIT: Duration = Duration::from_millis(100);

/// Runs one errand from its beginning.
pub(in crate::world) async fn run(world: Arc<World>, errand: RecordErrand) {
    world.executor.sleep_until(errand.at).await;
    let random = Random::stream(world.seed, streams::RECORDS + errand.number as u64);
    let mut caller = Caller::with(&world, random, errand.patience);
    match errand.work {
        RecordWork::Execute(execution) => execute(caller, &execution, errand.number).await,
        RecordWork::Read(key) => read(&mut caller, key).await,
        RecordWork::Delete { key, is_conditional } => delete(&mut caller, key, is_conditional).await,
        RecordWork::Clean { limit } => clean(&mut caller, limit).await,
    }
}

/// An execution that may own a record.
struct Executor<'a> {
    caller: Caller,
    execution: &'a Execution,
    id: ExecutionId,
    /// The first and the latest epoch that it got.
    epochs: Option<(Epoch, Epoch)>,
    number: usize,
}

async fn execute(mut caller: Caller, execution: &Execution, number: usize) {
    let id = new_id(&mut caller.random);
    let mut executor = Executor { caller, execution, id, epochs: None, number };
    if !executor.reserve().await {
        return;
    }
    for step in &execution.steps {
        executor.caller.world.executor.sleep(step.after).await;
        executor.take(step).await;
    }
}

impl Executor<'_> {
    /// Reserves the record. Returns whether it was granted.
    async fn reserve(&mut self) -> bool {
        let mut not_before = None;
        for _ in 0..WAITS {
            let lease_until = match self.ask(self.id, not_before).await {
                Some(Reserved::Granted { epoch, .. }) => {
                    let (first, _) = self.epochs.unwrap_or((epoch, epoch));
                    self.epochs = Some((first, epoch));
                    return true;
                }
                Some(Reserved::InProgress { lease_until, .. }) if self.execution.is_patient => lease_until,
                _ => return false,
            };
            let world = self.caller.world.clone();
            let wait = lease_until.since(world.now().wall()).saturating_sub(LAST_WAIT / 2);
            world.executor.sleep(wait).await;
            not_before = Some(lease_until);
        }
        false
    }

    /// Asks for the record, again if there is no answer.
    async fn ask(&mut self, id: ExecutionId, not_before: Option<Timestamp>) -> Option<Reserved> {
        let Execution { key, request, lease, retention, is_complete, has_twin, .. } = self.execution;
        let twin = has_twin.then(|| new_id(&mut self.caller.random));
        for _ in 0..TRIES {
            let reservation = |execution| Reservation {
                key: key.clone(),
                ask: Reserve {
                    request_hash: RequestHash([*request; 32]),
                    execution,
                    lease: *lease,
                    retention: *retention,
                    is_complete: *is_complete,
                },
            };
            let reservations: Vec<Reservation> = [id].into_iter().chain(twin).map(reservation).collect();
            let world = self.caller.world.clone();
            let answer = self.caller.call(move |app| async move {
                wait_until(&world, &app, not_before).await;
                let now = app.engine.now();
                first(app.engine.store().records().reserve(reservations, now).await)
            });
            match answer.await {
                Answer::Given(Ok(reserved), _) => return Some(reserved),
                _ => self.pause().await,
            }
        }
        None
    }

    async fn take(&mut self, step: &RecordStep) {
        let Some((first, latest)) = self.epochs else { return };
        let epoch = if step.is_stale { first } else { latest };
        let change = match step.act {
            RecordAct::Complete(result) => Change::Complete(self.result(result)),
            RecordAct::FailFinal(result) => Change::FailFinal(self.result(result)),
            RecordAct::FailRetryable => Change::FailRetryable,
            RecordAct::Renew => Change::Renew(self.execution.lease),
            RecordAct::Release => Change::Release,
            RecordAct::Again => {
                self.reserve().await;
                return;
            }
            RecordAct::Duplicate => {
                let other = new_id(&mut self.caller.random);
                self.ask(other, None).await;
                return;
            }
        };
        self.change(Owner { execution: self.id, epoch }, change).await;
    }

    /// Makes a change, again if there is no answer.
    async fn change(&mut self, owner: Owner, change: Change) {
        for _ in 0..TRIES {
            let item = RecordChange { key: self.execution.key.clone(), owner, change: change.clone() };
            let answer: Answer<RecordChanged> = self
                .caller
                .call(move |app| async move {
                    let now = app.engine.now();
                    first(app.engine.store().records().change(vec![item], now).await)
                })
                .await;
            if let Answer::Given(Ok(_), _) = answer {
                return;
            }
            self.pause().await;
        }
    }

    fn result(&self, which: u8) -> Completion {
        let body = format!("result {which} of r{}", self.number).into_bytes();
        let response = Response { status: 200, headers: Vec::new(), body: bytes::Bytes::from(body).into() };
        Completion { response: Some(response), resource: None }
    }

    async fn pause(&mut self) {
        let pause = self.caller.random.duration(Duration::from_millis(1), Duration::from_secs(5));
        self.caller.world.executor.sleep(pause).await;
    }
}

/// Waits on the node until its clock shows this time, if that is soon.
async fn wait_until(world: &Arc<World>, app: &App, not_before: Option<Timestamp>) {
    let wait = not_before.map(|not_before| not_before.since(app.engine.now()));
    if let Some(wait) = wait.filter(|wait| *wait <= LAST_WAIT) {
        world.executor.sleep(wait).await;
    }
}

fn new_id(random: &mut Random) -> ExecutionId {
    ExecutionId::from_random(u128::from(random.bits()) << 64 | u128::from(random.bits()))
}

/// The answer to the first item of a call.
fn first<T>(answers: Result<Answers<T>, Error>) -> Result<T, OperationError> {
    let first = answers.map_err(OperationError::Store)?.into_iter().next();
    let none = || Err(Error::Corrupt("a call for records has no answer".to_owned()));
    first.unwrap_or_else(none).map_err(OperationError::Store)
}

async fn read(caller: &mut Caller, key: RecordKey) {
    let (tenant, operation) = (key.tenant.clone(), key.operation.clone());
    // The model judges what was read; nothing depends on it here.
    let _: Answer<()> = caller
        .call(move |app| async move {
            let (records, now) = (app.engine.store().records(), app.engine.now());
            records.read(key, now).await.map_err(OperationError::Store)?;
            let now = app.engine.now();
            let operations = OperationFilter::One(operation);
            let query =
                RecordQuery { tenant, operations, state: None, updated_before: None, after: None, limit: 10, now };
            records.list(query).await.map_err(OperationError::Store)?;
            Ok(())
        })
        .await;
}

async fn delete(caller: &mut Caller, key: RecordKey, is_conditional: bool) {
    let looked = key.clone();
    let seen = match is_conditional {
        false => None,
        true => {
            let shown = caller
                .call(move |app| async move {
                    let (records, now) = (app.engine.store().records(), app.engine.now());
                    records.read(looked, now).await.map_err(OperationError::Store)
                })
                .await;
            let Answer::Given(Ok(Some(record)), _) = shown else { return };
            let pause = caller.random.duration(Duration::from_micros(10), Duration::from_secs(5));
            caller.world.executor.sleep(pause).await;
            Some(SeenRecord::of(&record))
        }
    };
    // An operator that gets no answer looks again, and does not repeat it blindly.
    let _: Answer<()> = caller
        .call(move |app| async move {
            let now = app.engine.now();
            let deleted = app.engine.store().records().delete(key, seen, now).await;
            deleted.map(|_| ()).map_err(OperationError::Store)
        })
        .await;
}

async fn clean(caller: &mut Caller, limit: usize) {
    // Another cleaner removes what this one did not.
    let _: Answer<()> = caller
        .call(move |app| async move {
            let now = app.engine.now();
            app.engine.store().records().clean(now, limit).await.map(|_| ()).map_err(OperationError::Store)
        })
        .await;
}

//! The common failure cases of idempotency, each as a test of the operations.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redrive_core::idempotency::{ExecutionId, State};
use redrive_core::{IdempotencyKey, OperationName, TenantId};
use redrive_engine::spawner::TokioSpawner;
use redrive_engine::{CommonClock, Parts};
use redrive_server::operations::{
    GrantedRecord, ReservedOutcome, complete_record, fail_record, get_record, reserve_record,
};
use redrive_server::wire::{CompleteInput, FailInput, ReserveInput, ResponseInput, Text};
use redrive_server::{App, Caller, OperationError};
use redrive_store_sqlite::SqliteStore;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::records::hash;
use crate::world::{Countable, ManualClock, ScriptedTarget, World};

fn caller(tenant: &str) -> Caller {
    Caller::local(TenantId::try_new(tenant).unwrap())
}

fn operation() -> OperationName {
    OperationName::try_new("create-payment").unwrap()
}

fn key() -> IdempotencyKey {
    IdempotencyKey::try_new("order-1").unwrap()
}

/// Reserves for the request that `request` stands for.
async fn reserve(app: &App, caller: &Caller, request: u8) -> Result<ReservedOutcome, OperationError> {
    let input = ReserveInput { request_hash: Some(Text::from(hash(request))), ..ReserveInput::default() };
    reserve_record(app, caller, operation(), &key(), &input).await
}

fn granted(outcome: Result<ReservedOutcome, OperationError>) -> GrantedRecord {
    match outcome.unwrap() {
        ReservedOutcome::Granted(granted) => granted,
        ReservedOutcome::Ended(record) => panic!("{record:?}"),
    }
}

async fn complete(app: &App, caller: &Caller, owner: &GrantedRecord, resource: &str) -> Result<State, OperationError> {
    let input = CompleteInput {
        execution_id: Text::from(owner.execution.to_string()),
        epoch: owner.epoch.0,
        resource_type: Some(Text::from("payment")),
        resource_id: Some(Text::from(resource)),
        ..CompleteInput::default()
    };
    Ok(complete_record(app, caller, operation(), &key(), input).await?.1.state)
}

/// Where an execution dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Death {
    BeforeEffect,
    AfterEffect,
    None,
}

/// One execution as a service makes it: it reserves, applies the effect, and completes. It looks into the ledger of effects only
/// if it is told of an execution before it. Says whether it was granted the record.
async fn execute(app: &App, caller: &Caller, ledger: &Mutex<Vec<ExecutionId>>, death: Death) -> bool {
    let owner = match reserve(app, caller, 1).await {
        Ok(ReservedOutcome::Granted(owner)) => owner,
        Ok(ReservedOutcome::Ended(_)) | Err(OperationError::RecordInProgress { .. }) => return false,
        Err(error) => panic!("{error}"),
    };
    // The execution that is under way may already be in the store.
    let (_, record) = get_record(app, caller, operation(), key()).await.unwrap();
    assert_eq!((record.state, record.owner.execution), (State::InProgress, owner.execution));
    if death == Death::BeforeEffect {
        return true;
    }
    let is_applied = owner.previous.is_some() && !ledger.lock().unwrap().is_empty();
    if !is_applied {
        ledger.lock().unwrap().push(owner.execution);
    }
    if death == Death::None {
        complete(app, caller, &owner, "pay_1").await.unwrap();
    }
    true
}

/// 1. Side effect commits before dedupe record.
///
/// The record is durable before a caller may execute, and an execution that was cut off after its effect is not silently
/// repeated: the next one is told that the outcome is unknown, so that it can ask the system that has the effect.
#[tokio::test]
async fn a_side_effect_never_commits_before_its_record() {
    for death in [Death::BeforeEffect, Death::AfterEffect] {
        let world = World::start().await;
        let (app, caller, ledger) = (&*world.app, caller("shop"), Mutex::default());
        let mut granted = vec![execute(app, &caller, &ledger, death).await];
        for wait in [0, 59, 1, 0] {
            world.clock.advance(Duration::from_secs(wait));
            granted.push(execute(app, &caller, &ledger, Death::None).await);
        }
        assert_eq!(granted, [true, false, false, true, false], "{death:?}");
        assert_eq!(ledger.lock().unwrap().len(), 1, "{death:?}: effects");
        assert_eq!(get_record(app, &caller, operation(), key()).await.unwrap().1.state, State::Succeeded);
    }
}

/// The operations over the SQLite store in `directory`, as a process that starts has them.
async fn started_over(directory: &Path, clock: &Arc<ManualClock>) -> App {
    let store = Arc::new(SqliteStore::open(redrive_store_sqlite::Options::new(directory)).unwrap());
    let parts = Parts {
        clock: CommonClock::new(clock.clone(), &*store),
        entropy: Arc::new(Countable::default()),
        spawner: Arc::new(TokioSpawner),
        store,
        transport: Arc::new(ScriptedTarget::default()),
        bodies: None,
        sinks: Vec::new(),
        alert_relay: None,
    };
    App::new(redrive_engine::start(parts, redrive_engine::Options::default()).await.unwrap())
}

/// 2. Dedupe record stored in weaker durability than business effect.
///
/// Records are in the same store as tasks, and nothing of them is in the process: a process that starts anew over the same
/// files knows every one. (`redrive/tests/cli/record_kills.rs` kills the process.)
#[tokio::test]
async fn a_process_that_starts_anew_remembers_what_was_executed() {
    let (directory, clock, caller) = (tempfile::tempdir().unwrap(), Arc::new(ManualClock::default()), caller("shop"));
    let app = started_over(directory.path(), &clock).await;
    let owner = granted(reserve(&app, &caller, 1).await);
    complete(&app, &caller, &owner, "pay_1").await.unwrap();
    app.engine.stop().await;
    app.engine.store().close().await;
    drop(app);
    let restarted = started_over(directory.path(), &clock).await;
    match reserve(&restarted, &caller, 1).await.unwrap() {
        ReservedOutcome::Ended(record) => assert_eq!(record.completion.resource.unwrap().id(), "pay_1"),
        granted => panic!("{granted:?}"),
    }
    assert!(matches!(reserve(&restarted, &caller, 2).await, Err(OperationError::RecordKeyReused)));
    restarted.engine.stop().await;
}

/// 3. Same idempotency key shared across tenants.
#[tokio::test]
async fn two_tenants_with_the_same_key_have_two_records() {
    let world = World::start().await;
    let app = &*world.app;
    let (one, two) = (caller("one"), caller("two"));
    let of_one = granted(reserve(app, &one, 1).await);
    // Another request with the same key: for another tenant it is a key of its own.
    let of_two = granted(reserve(app, &two, 2).await);
    assert_eq!((of_one.epoch, of_two.epoch), (of_two.epoch, of_one.epoch));
    assert!(matches!(complete(app, &two, &of_one, "x").await, Err(OperationError::Fenced)));
    complete(app, &one, &of_one, "pay_one").await.unwrap();
    assert!(matches!(reserve(app, &two, 2).await, Err(OperationError::RecordInProgress { .. })));
    complete(app, &two, &of_two, "pay_two").await.unwrap();
    for (caller, request, resource) in [(&one, 1, "pay_one"), (&two, 2, "pay_two")] {
        match reserve(app, caller, request).await.unwrap() {
            ReservedOutcome::Ended(record) => assert_eq!(record.completion.resource.unwrap().id(), resource),
            granted => panic!("{granted:?}"),
        }
    }
    let none = get_record(app, &super::failure_cases::caller("three"), operation(), key()).await;
    assert!(matches!(none, Err(OperationError::NoSuchRecord(_))));
}

/// 4. Replaying stale IN_PROGRESS forever.
///
/// A lease ends, the next owner has a higher epoch, and the one before is fenced.
#[tokio::test]
async fn a_stale_execution_is_taken_over_and_fenced() {
    let world = World::start().await;
    let (app, caller) = (&*world.app, caller("shop"));
    let stuck = granted(reserve(app, &caller, 1).await);
    for round in 0..3 {
        let refused = reserve(app, &caller, 1).await;
        assert!(
            matches!(refused, Err(OperationError::RecordInProgress { retry_in, .. }) if retry_in <= Duration::from_secs(60))
        );
        world.clock.advance(Duration::from_secs(60));
        let next = granted(reserve(app, &caller, 1).await);
        assert_eq!(next.epoch.0, stuck.epoch.0 + 1 + round);
        assert!(matches!(complete(app, &caller, &stuck, "late").await, Err(OperationError::Fenced)));
    }
    let (_, record) = get_record(app, &caller, operation(), key()).await.unwrap();
    assert_eq!((record.state, record.owner.epoch.0), (State::InProgress, 4));
    assert_eq!(app.totals.snapshot().fenced, 3);
}

/// 5. Retrying validation failures.
///
/// A failure for good is replayed like a success: the operation is not executed again.
#[tokio::test]
async fn a_validation_failure_is_not_executed_again() {
    let world = World::start().await;
    let (app, caller) = (&*world.app, caller("shop"));
    let owner = granted(reserve(app, &caller, 1).await);
    let input = FailInput {
        execution_id: Text::from(owner.execution.to_string()),
        epoch: owner.epoch.0,
        retryable: false,
        response: Some(ResponseInput {
            status: 400,
            body_text: Some(Text::from("no such card")),
            ..ResponseInput::default()
        }),
        ..FailInput::default()
    };
    fail_record(app, &caller, operation(), &key(), input).await.unwrap();
    for _ in 0..3 {
        match reserve(app, &caller, 1).await.unwrap() {
            ReservedOutcome::Ended(record) => {
                assert_eq!(record.state, State::FailedFinal);
                assert_eq!(record.completion.response.as_ref().unwrap().status, 400);
            }
            granted => panic!("{granted:?}"),
        }
    }
    assert_eq!((app.totals.snapshot().reservations, app.totals.snapshot().replays), (1, 3));
}

/// Of many executions at once, one is granted; the level below HTTP.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_a_thousand_reservations_at_once_one_is_granted() {
    let world = World::start().await;
    let begin = Arc::new(Barrier::new(1_000));
    let mut executions = JoinSet::new();
    for _ in 0..1_000 {
        let (app, begin) = (world.app.clone(), begin.clone());
        executions.spawn(async move {
            begin.wait().await;
            reserve(&app, &caller("shop"), 1).await
        });
    }
    let outcomes = executions.join_all().await;
    let granted = outcomes.iter().filter(|outcome| matches!(outcome, Ok(ReservedOutcome::Granted(_)))).count();
    let refused = outcomes.iter().filter(|outcome| matches!(outcome, Err(OperationError::RecordInProgress { .. })));
    assert_eq!((granted, refused.count()), (1, 999));
}

//! Clients' further calls about tasks that they, or other clients, submitted.

use std::sync::Arc;

use redrive_core::{PolicyId, TaskId, TenantId};
use redrive_server::OperationError;
use redrive_server::operations::{self, Precondition, TaskFilter};
use redrive_store::TaskDetail;

use super::submit::{note, one};
use super::{Answer, Caller, Known, known_task, local, put_policy};
use crate::model::Asker;
use crate::moment::Moment;
use crate::plan::{Errand, FollowUp, Item, SHIFTING, Step, spec};
use crate::world::Told;

pub(super) async fn run(mut caller: Caller, errand: Arc<Errand>, follow_up: FollowUp, known: Known) {
    caller.world.executor.sleep(follow_up.after).await;
    if caller.world.is_well() {
        return;
    }
    let item = &errand.items[follow_up.item];
    match (follow_up.step, known_task(&known, follow_up.item)) {
        (Step::Again, _) => {
            one(&mut caller, item, follow_up.item, false, &known).await;
        }
        (Step::OtherRequest, _) if item.document.key.is_some() => {
            one(&mut caller, item, follow_up.item, true, &known).await;
        }
        (Step::List, _) => list(&mut caller, &item.document.tenant).await,
        (Step::ShiftPolicy, _) => shift_policy(&mut caller, &item.document.tenant).await,
        (Step::Look, Some(id)) => look(&mut caller, item, id, false).await,
        (Step::Wait, Some(id)) => look(&mut caller, item, id, true).await,
        (Step::LookAtAttempts, Some(id)) => look_at_attempts(&mut caller, item, id).await,
        (Step::Cancel, Some(id)) => change(&mut caller, item, id, Asker::Cancel).await,
        (Step::BringForward, Some(id)) => change(&mut caller, item, id, Asker::BringForward).await,
        (Step::Replay, Some(id)) => change(&mut caller, item, id, Asker::Replay).await,
        (Step::Meddle, Some(id)) => meddle(&mut caller, item, id).await,
        // There is no task to read yet.
        _ => {}
    }
}

async fn look(caller: &mut Caller, item: &Item, id: TaskId, waits: bool) {
    let (tenant, asked) = (item.document.tenant.clone(), caller.now());
    let answer = caller
        .call(move |app| async move {
            if waits {
                let longest = app.limits.longest_wait;
                return operations::await_task(&app, &local(&tenant), id, longest, std::future::pending()).await;
            }
            operations::get_task(&app, &local(&tenant), id).await
        })
        .await;
    note(caller, item, false, "looks at", &answer);
    match answer {
        Answer::Given(Ok(detail), _) => shown(caller, &item.document.tenant, &detail, asked),
        Answer::Given(Err(OperationError::NoSuchTask(_)), _) => caller.world.observer().model.shows_nothing(id),
        _ => {}
    }
}

fn shown(caller: &Caller, tenant: &TenantId, detail: &TaskDetail, asked: Moment) {
    let mut observer = caller.world.observer();
    if detail.task.status.is_ended() {
        observer.told(&Told::Ended(tenant.clone(), detail.task.id, detail.task.status));
    }
    observer.model.shows(tenant, detail, asked);
}

async fn look_at_attempts(caller: &mut Caller, item: &Item, id: TaskId) {
    let tenant = item.document.tenant.clone();
    let answer = caller
        .call(move |app| async move { operations::list_attempts(&app, &local(&tenant), id, 0, Some(500)).await })
        .await;
    note(caller, item, false, "looks at the attempts of", &answer);
    match answer {
        Answer::Given(Ok(page), _) => caller.world.observer().model.shows_attempts(id, &page.attempts),
        Answer::Given(Err(OperationError::NoSuchTask(_)), _) => caller.world.observer().model.shows_nothing(id),
        _ => {}
    }
}

/// Makes a call that may change the task's status.
async fn change(caller: &mut Caller, item: &Item, id: TaskId, asker: Asker) {
    let (tenant, asked, world) = (item.document.tenant.clone(), caller.now(), caller.world.clone());
    world.observer().model.asking(id, asker);
    if asker == Asker::Replay {
        world.observer().told(&Told::Replaying(tenant.clone(), id));
    }
    let answer = caller
        .call(move |app| async move {
            match asker {
                Asker::Cancel => operations::cancel_task(&app, &local(&tenant), id).await,
                Asker::BringForward => operations::retry_now(&app, &local(&tenant), id).await,
                Asker::Replay => operations::replay_task(&app, &local(&tenant), id).await,
            }
        })
        .await;
    let does = match asker {
        Asker::Cancel => "takes back",
        Asker::BringForward => "hurries",
        Asker::Replay => "replays",
    };
    note(caller, item, false, does, &answer);
    let mut observer = world.observer();
    match answer {
        Answer::Given(Ok(detail), whose) => {
            observer.tally.cancels += u64::from(asker == Asker::Cancel);
            observer.tally.replays += u64::from(asker == Asker::Replay);
            observer.model.answered(id, asker, whose, Some(&detail.task));
            // A replay's answer shows a run that began after the call was made.
            if asker != Asker::Replay {
                observer.model.shows(&item.document.tenant, &detail, asked);
            }
        }
        Answer::Given(Err(failure), whose) => {
            observer.model.answered(id, asker, whose, None);
            match failure {
                OperationError::TaskEnded { status, .. } => observer.model.shows_end(id, status, asked),
                OperationError::NoSuchTask(_) => observer.model.shows_nothing(id),
                _ => {}
            }
        }
        Answer::NotAsked => observer.model.not_asked(id, asker),
        Answer::Unknown => {}
    }
}

/// Makes every call as another tenant, on a task that is not its own.
async fn meddle(caller: &mut Caller, item: &Item, id: TaskId) {
    let world = caller.world.clone();
    let others: Vec<TenantId> =
        world.tenants.iter().filter(|tenant| **tenant != item.document.tenant).cloned().collect();
    if others.is_empty() {
        return;
    }
    let tenant = caller.random.pick(&others).clone();
    let what = *caller.random.pick(&["read", "read the attempts of", "take back", "hurry", "replay", "list"]);
    let meddler = tenant.clone();
    let answer = caller
        .call(move |app| async move {
            match what {
                "read" => operations::get_task(&app, &local(&meddler), id).await.map(|_| true),
                "read the attempts of" => {
                    operations::list_attempts(&app, &local(&meddler), id, 0, None).await.map(|_| true)
                }
                "take back" => operations::cancel_task(&app, &local(&meddler), id).await.map(|_| true),
                "hurry" => operations::retry_now(&app, &local(&meddler), id).await.map(|_| true),
                "replay" => operations::replay_task(&app, &local(&meddler), id).await.map(|_| true),
                _ => {
                    let all = TaskFilter { limit: Some(500), ..TaskFilter::default() };
                    let listing = operations::list_tasks(&app, &local(&meddler), all).await?;
                    Ok(listing.page.tasks.iter().any(|detail| detail.task.id == id))
                }
            }
        })
        .await;
    note(caller, item, false, "of another tenant tries to meddle with", &answer);
    match answer {
        Answer::Given(Ok(false) | Err(OperationError::NoSuchTask(_)), _) | Answer::NotAsked | Answer::Unknown => {}
        Answer::Given(..) => world.observer().model.meddled(&tenant, id, what),
    }
}

async fn list(caller: &mut Caller, tenant: &TenantId) {
    let (lister, asked) = (tenant.clone(), caller.now());
    let answer = caller
        .call(move |app| async move {
            operations::list_tasks(&app, &local(&lister), TaskFilter { limit: Some(100), ..TaskFilter::default() })
                .await
        })
        .await;
    if let Answer::Given(Ok(listing), _) = answer {
        for detail in &listing.page.tasks {
            shown(caller, tenant, detail, asked);
        }
    }
}

async fn shift_policy(caller: &mut Caller, tenant: &TenantId) {
    if caller.random.chance(0.5) {
        let rules = spec(&mut caller.random);
        put_policy(caller, tenant, SHIFTING, rules).await;
        return;
    }
    let (tenant, Ok(id)) = (tenant.clone(), PolicyId::try_new(SHIFTING)) else { return };
    // The result does not matter: nothing depends on it.
    let _: Answer<()> = caller
        .call(
            move |app| async move { operations::delete_policy(&app, &local(&tenant), id, Precondition::Nothing).await },
        )
        .await;
}

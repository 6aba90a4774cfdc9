//! Submitting: retries with the same key, until there is an answer or no try is left.

use std::time::Duration;

use redrive_core::trace::CallerContext;
use redrive_server::OperationError;
use redrive_server::operations::{self, Acceptance, Accepted, SubmissionHeaders};

use super::{Answer, Caller, Known, local, lock};
use crate::moment::Moment;
use crate::plan::{Errand, Item};
use crate::world::Told;

/// Submits the errand's items until they are answered.
pub(super) async fn run(mut caller: Caller, errand: &Errand, known: &Known) {
    for _ in 0..errand.tries {
        let is_answered = match errand.items.as_slice() {
            [item] => one(&mut caller, item, 0, false, known).await,
            items => batch(&mut caller, items, known).await,
        };
        if is_answered {
            return;
        }
        let pause = caller.random.duration(Duration::from_millis(1), Duration::from_secs(10));
        caller.world.executor.sleep(pause).await;
    }
}

/// Submits one item, or the other request under its key. Returns whether the answer is final.
pub(super) async fn one(caller: &mut Caller, item: &Item, place: usize, is_other: bool, known: &Known) -> bool {
    let asked = caller.now();
    caller.world.observer().model.submitting(&item.name, is_other);
    let document = item.document.clone();
    let answer = caller
        .call(move |app| async move {
            let tenant = document.tenant.clone();
            operations::submit_task(&app, &local(&tenant), document.submission(is_other), &SubmissionHeaders::default())
                .await
        })
        .await;
    note(caller, item, is_other, "submits", &answer);
    match answer {
        Answer::Given(result, _) => judge(caller, item, place, is_other, result, known, asked),
        Answer::NotAsked | Answer::Unknown => false,
    }
}

async fn batch(caller: &mut Caller, items: &[Item], known: &Known) -> bool {
    let asked = caller.now();
    for item in items {
        caller.world.observer().model.submitting(&item.name, false);
    }
    let documents: Vec<_> = items.iter().map(|item| item.document.clone()).collect();
    let answer = caller
        .call(move |app| async move {
            let tenant = documents[0].tenant.clone();
            let submissions = documents.iter().map(|document| Ok(document.submission(false))).collect();
            operations::submit_batch(&app, &local(&tenant), submissions, &CallerContext::default()).await
        })
        .await;
    note(caller, &items[0], false, "submits a batch with", &answer);
    match answer {
        Answer::Given(Ok(results), _) => {
            let judged = items.iter().zip(results).enumerate();
            let answered: Vec<bool> =
                judged.map(|(place, (item, result))| judge(caller, item, place, false, result, known, asked)).collect();
            answered.into_iter().all(|is_answered| is_answered)
        }
        _ => false,
    }
}

/// Passes an answer to the model. Returns whether it is final.
fn judge(
    caller: &Caller,
    item: &Item,
    place: usize,
    is_other: bool,
    result: Result<Accepted, OperationError>,
    known: &Known,
    asked: Moment,
) -> bool {
    let world = &caller.world;
    match result {
        Ok(accepted) => {
            let is_new = accepted.how == Acceptance::Created;
            let task = accepted.detail.task;
            lock(known)[place] = Some(task.id);
            let mut observer = world.observer();
            observer.tally.acknowledged += 1;
            let tenant = task.lane.tenant.clone();
            observer.told(&Told::Kept(tenant, task.id, task.idempotency_key.clone()));
            observer.model.acknowledged(&item.name, is_other, &task, is_new);
            true
        }
        Err(OperationError::KeyReused(owner)) => {
            world.observer().model.key_reused(&item.name, is_other, owner);
            true
        }
        // The policy does not exist yet, or no longer.
        Err(OperationError::UnknownPolicy { .. }) => {
            world.observer().model.policy_unknown(&item.name, asked);
            false
        }
        Err(OperationError::Store(_)) => false,
        Err(failure) => {
            world.observer().model.refused(&item.name, &failure.to_string());
            true
        }
    }
}

pub(super) fn note<T>(caller: &Caller, item: &Item, is_other: bool, does: &str, answer: &Answer<T>) {
    let (now, name) = (caller.now(), item.name.as_str());
    let said = match answer {
        Answer::Given(Ok(_), whose) => (1, Some(*whose)),
        Answer::Given(Err(_), whose) => (2, Some(*whose)),
        Answer::NotAsked => (3, None),
        Answer::Unknown => (4, None),
    };
    caller.world.observer().note(now, (50, name, is_other, said), Some(name), || {
        let other = if is_other { " (the other request)" } else { "" };
        let answer = match answer {
            Answer::Given(Ok(_), whose) => format!("node {} says yes", whose.node),
            Answer::Given(Err(failure), whose) => format!("node {} says no: {failure}", whose.node),
            Answer::NotAsked => "no node is running".to_owned(),
            Answer::Unknown => "no answer".to_owned(),
        };
        format!("a client {does} {name}{other}: {answer}")
    });
}

//! The planted bugs that take more than a condition: whole ways of doing it wrong, kept out of the code that does it right.
//!
//! Not here: which bugs there are (`redrive_core::planted`), and those that are a condition at the place of the mistake.

use std::sync::Arc;

use redrive_core::planted::{self, Bug};
use redrive_core::{ErrorType, Request, Task};
use redrive_store::{Error, Lease, NewTask, Submitted, Token};

use crate::lanes::Turns;
use crate::shared::Shared;
use crate::submit::{Begun, Submission};
use crate::transport::{Outbound, Sending};

/// Sends what should not be sent like this; nothing if no such bug is planted.
pub(crate) fn send(shared: &Shared, task: &Task, outbound: &Outbound) -> Option<Sending> {
    let (transport, is_retry) = (shared.transport.clone(), task.attempt_number > 1);
    if planted::is(Bug::NewKeyOnRetry) && is_retry {
        let idempotency_key = redrive_core::id::make_key(u128::from(shared.entropy.bits()));
        return Some(transport.send(Outbound { idempotency_key, ..outbound.clone() }));
    }
    if planted::is(Bug::EmptyBodyOnRetry) && is_retry {
        let request = Arc::new(Request { body: Default::default(), ..(*outbound.request).clone() });
        return Some(transport.send(Outbound { request, ..outbound.clone() }));
    }
    if planted::is(Bug::ResendOnReset) {
        let outbound = outbound.clone();
        return Some(Box::pin(async move {
            match transport.send(outbound.clone()).await {
                Err(error) if error.kind == ErrorType::ConnectionReset => transport.send(outbound).await,
                sent => sent,
            }
        }));
    }
    None
}

/// Whether submissions go on without their commit.
pub(crate) fn is_hasty() -> bool {
    planted::is(Bug::AcknowledgeBeforeCommit) || planted::is(Bug::SendBeforeClaim)
}

/// Answers, or sends, without waiting for the commit.
pub(crate) async fn submit(
    shared: &Arc<Shared>,
    tasks: Vec<NewTask>,
    begun: Vec<Begun>,
) -> Result<Vec<Submission>, Error> {
    if planted::is(Bug::AcknowledgeBeforeCommit) {
        let store = shared.store.clone();
        shared.spawner.spawn(Box::pin(async move {
            store.submit(tasks).await.ok();
        }));
        return Ok(begun.into_iter().map(|begun| Submission::Created(Box::new(begun.task))).collect());
    }
    let lease = |task: &Task| {
        let until = shared.lease_terms().until(task.created_at, None, task.attempt_timeout);
        Lease { token: Token(1), since: task.created_at, until }
    };
    let end = |begun: Begun| {
        let lease = begun.seat.as_ref().map(|_| lease(&begun.task));
        begun.end(shared, Submitted::Created(lease))
    };
    let answers = begun.into_iter().map(end).collect();
    shared.store.submit(tasks).await?;
    Ok(answers)
}

/// Never gives the room of these turns back.
pub(crate) fn keep_room(shared: &Shared, turns: &Turns) {
    shared.lanes.claim_lost(turns);
}

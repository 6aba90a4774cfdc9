//! Storing new tasks.

mod rows;

pub(crate) use rows::{Row, write};

use std::sync::Arc;

use redrive_core::Status;
use redrive_store::{Error, NewTask, Submitted, rules};

use crate::codec::{EncodedRequest, sequence};
use crate::in_flight::Claim;
use crate::keys::KeyHash;
use crate::ops::blobs;
use crate::ops::by_key::{Owner, by_key};
use crate::sqlite_error::SqliteError;
use crate::writer::{OneOf, Writer};

/// A new task with everything that can be computed before the writer runs it.
#[derive(Debug)]
pub(crate) struct EncodedTask {
    new: NewTask,
    request: EncodedRequest,
    key: KeyHash,
}

impl EncodedTask {
    pub(crate) fn new(new: NewTask) -> Result<Self, Error> {
        let request = EncodedRequest::new(&new.request)?;
        let key = KeyHash::of(new.task.lane.tenant.as_str(), new.task.idempotency_key.as_str());
        Ok(EncodedTask { new, request, key })
    }
}

/// What the writer decided about a new task.
#[derive(Debug)]
pub(crate) enum Decision {
    /// The task is stored.
    Created,
    /// The task is not stored, and this is the answer.
    Refused(Submitted),
}

impl Decision {
    /// The answer for the caller. The task is copied by the caller and not by the writer, whose time limits the
    /// throughput.
    pub(crate) fn answer(self, prepared: &EncodedTask) -> Submitted {
        match self {
            Decision::Created => {
                let (task, lease) = rules::first_state(&prepared.new);
                Submitted::Created(Box::new(task), lease)
            }
            Decision::Refused(answer) => answer,
        }
    }
}

/// Decides about each task. The rows of stored tasks are written with the commit.
pub(crate) fn submit(writer: &mut Writer, tasks: &Arc<[EncodedTask]>) -> Result<Vec<Decision>, SqliteError> {
    (0..tasks.len()).map(|index| submit_one(writer, OneOf { all: tasks.clone(), index })).collect()
}

fn submit_one(writer: &mut Writer, prepared: OneOf<EncodedTask>) -> Result<Decision, SqliteError> {
    if let Some(taken) = taken(writer, &prepared)? {
        return Ok(Decision::Refused(taken));
    }
    let task = &prepared.new.task;
    let Some(tenant) = writer.names.tenant_key(&writer.connection, &task.lane.tenant)? else {
        return Ok(Decision::Refused(Submitted::PolicyGone));
    };
    let Some(version) = writer.names.version_key(&writer.connection, tenant, &task.policy)? else {
        return Ok(Decision::Refused(Submitted::PolicyGone));
    };
    if let Some(body) = prepared.new.request.body.stored()
        && !blobs::is_kept(&writer.connection, tenant, body)?
    {
        return Ok(Decision::Refused(Submitted::BodyGone));
    }
    let lane = writer.names.lane_key_or_new(&writer.connection, &task.lane)?;
    let lease = rules::first_lease(task, prepared.new.start);
    writer.keys.add(&writer.connection, prepared.key, sequence(task.id))?;
    match lease {
        Some(lease) => {
            writer.counters.added(tenant, version, Status::InFlight);
            writer.in_flight.remember(task.id, Claim { tenant, token: lease.token, version });
        }
        None => writer.counters.added(tenant, version, Status::Pending),
    }
    writer.unwritten.tasks.push(Row { prepared, lane, version, lease });
    Ok(Decision::Created)
}

/// The answer to a submission whose key is taken.
fn taken(writer: &mut Writer, prepared: &EncodedTask) -> Result<Option<Submitted>, SqliteError> {
    let task = &prepared.new.task;
    let owner = by_key(writer, &task.lane.tenant, &task.idempotency_key, prepared.key)?;
    Ok(owner.map(|owner| match owner {
        Owner::Task(owner, stored) => rules::resubmitted(owner, stored, prepared.new.fingerprint),
        Owner::Damaged(id, _) => Submitted::KeyUnreadable(id),
    }))
}

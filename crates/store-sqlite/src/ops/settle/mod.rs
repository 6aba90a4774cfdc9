//! Ending or rescheduling attempts.

mod change;
mod log;
mod success;

pub(crate) use success::write;

use std::time::Duration;

use redrive_core::{Attempt, Reason, Status, TaskId, TenantId, Timestamp};
use redrive_store::{Error, Next, Settled, Settlement, Token};

use crate::codec::{EncodedAnswer, millis, sequence};
use crate::failure::Failure;
use crate::ops::{announce, blobs};
use crate::writer::Writer;
use change::{Change, held, update};

/// A settlement with all that can be worked out before the writer has its turn.
#[derive(Debug)]
pub(crate) struct Prepared {
    tenant: TenantId,
    id: TaskId,
    token: Token,
    attempt: Option<Attempt>,
    end: End,
    at: Timestamp,
}

#[derive(Debug)]
enum End {
    RetryAt { at: Timestamp, backoff: Option<Duration>, dns_failures: u32 },
    As { status: Status, reason: Option<Reason>, answer: Option<EncodedAnswer> },
}

impl Prepared {
    pub(crate) fn new(settlement: Settlement) -> Result<Self, Error> {
        let Settlement { tenant, id, token, attempt, next, at } = settlement;
        let end = match next {
            Next::RetryAt { at, backoff, dns_failures } => End::RetryAt { at, backoff, dns_failures },
            Next::End { status, reason, answer } => {
                debug_assert!(status.is_ended(), "a task ends in a status that is an end");
                let answer = answer.map(|answer| EncodedAnswer::new(*answer)).transpose()?;
                End::As { status, reason, answer }
            }
        };
        Ok(Prepared { tenant, id, token, attempt, end, at })
    }

    /// A success that changes nothing but what every success does: what becomes of the row does not depend on it.
    fn is_plain_success(&self) -> bool {
        let succeeds = matches!(self.end, End::As { status: Status::Succeeded, reason: None, .. });
        succeeds && self.attempt.as_ref().is_some_and(|attempt| attempt.error.is_none())
    }

    fn answer(&self) -> Option<&EncodedAnswer> {
        match &self.end {
            End::As { answer, .. } => answer.as_ref(),
            End::RetryAt { .. } => None,
        }
    }
}

/// Decides each; what a success changes is written with the commit.
pub(crate) fn settle(writer: &mut Writer, ends: Vec<Prepared>) -> Result<Vec<Settled>, Failure> {
    ends.into_iter().map(|end| settle_one(writer, end)).collect()
}

fn settle_one(writer: &mut Writer, mut end: Prepared) -> Result<Settled, Failure> {
    let Some(tenant) = writer.names.tenant_key(&writer.connection, &end.tenant)? else {
        return Ok(Settled::LeaseLost);
    };
    if let End::As { answer: Some(answer), .. } = &mut end.end
        && let Some(body) = answer.body.stored()
        && !blobs::is_kept(&writer.connection, tenant, body)?
    {
        answer.drop_body();
    }
    let claim = writer.in_flight.take(end.id, tenant, end.token);
    if let Some(claim) = claim.filter(|_| end.is_plain_success()) {
        writer.counters.moved(tenant, claim.version, Status::InFlight, Status::Succeeded);
        writer.unwritten.successes.push(end);
        return Ok(Settled::Done(Status::Succeeded));
    }
    writer.write_rows()?;
    let task = sequence(end.id);
    let Some(held) = held(&writer.connection, tenant, &end)? else { return Ok(Settled::LeaseLost) };
    let change = Change::of(&held, &end);
    update(&writer.connection, task, &change)?;
    log::write(&writer.connection, std::slice::from_ref(&end))?;
    if change.status.is_dead_letter() {
        announce::note(&writer.connection, task, millis(end.at))?;
    }
    writer.counters.moved(tenant, held.version, Status::InFlight, change.status);
    Ok(Settled::Done(change.status))
}

//! An idempotency record.

use std::time::Duration;

use bytes::Bytes;
use redrive_core::idempotency::{
    Completion, Epoch, ExecutionId, Operation, Owner, Record, RecordKey, RequestHash, Resource, Response, State,
};
use redrive_core::{Body, BodyRef, RecordName, TenantId};
use redrive_store::Error;
use tokio_postgres::types::Type;

use super::request::parsed;
use super::{Cells, Uuid, json, millis, whole_millis};
use crate::connection::Argument;
use crate::postgres_error::PostgresError;

/// The columns that [`record`] expects, from `record`; in the second form with only the bodies that this expression reads.
macro_rules! record_columns {
    () => {
        record_columns!("record.body")
    };
    ($body:literal) => {
        concat!(
            "record.request_hash, record.state, record.execution, record.epoch, record.lease_until, record.retention_ms,
             record.started_at, record.updated_at, record.expires_at, record.response_status, record.response_headers,
             record.body_ref, ",
            $body,
            ", octet_length(record.body), record.resource_kind, record.resource_id"
        )
    };
}
pub(crate) use record_columns;

/// Reads the columns of [`record_columns`].
pub(crate) fn record(cells: &mut Cells<'_>) -> Result<Record, PostgresError> {
    let hash: &[u8] = cells.get()?;
    Ok(Record {
        request_hash: RequestHash(hash.try_into().map_err(|_| cells.wrong("is not 32 bytes long"))?),
        state: cells.parsed(State::from_name)?,
        owner: Owner { execution: ExecutionId::from_u128(cells.get::<Uuid>()?.0), epoch: Epoch(cells.unsigned()?) },
        lease_until: cells.timestamp()?,
        retention: Duration::from_millis(cells.unsigned()?),
        started_at: cells.timestamp()?,
        updated_at: cells.timestamp()?,
        expires_at: cells.timestamp()?,
        completion: Completion { response: response(cells)?, resource: resource(cells)? },
    })
}

fn response(cells: &mut Cells<'_>) -> Result<Option<Response>, PostgresError> {
    let status: Option<u16> = cells.optional_narrow()?;
    let headers: Option<Vec<(String, String)>> = parsed(cells)?;
    let body = body(cells)?;
    Ok(status.map(|status| Response { status, headers: headers.unwrap_or_default(), body }))
}

/// Reads a reference to a stored body, the bytes of an inline one, and their number if they were left out.
fn body(cells: &mut Cells<'_>) -> Result<Body, PostgresError> {
    let stored = cells.optional_parsed(|record| BodyRef::from_record(record).ok())?;
    let (bytes, length): (Option<&[u8]>, Option<i32>) = (cells.get()?, cells.get()?);
    Ok(match (stored, bytes, length) {
        (Some(stored), _, _) => Body::Stored(stored),
        (None, None, Some(length)) => Body::LeftOut(length.unsigned_abs().into()),
        (None, bytes, _) => Bytes::copy_from_slice(bytes.unwrap_or_default()).into(),
    })
}

fn resource(cells: &mut Cells<'_>) -> Result<Option<Resource>, PostgresError> {
    let (kind, id): (Option<&str>, Option<&str>) = (cells.get()?, cells.get()?);
    match (kind, id) {
        (None, None) => Ok(None),
        (kind, id) => Resource::try_new(kind.unwrap_or_default(), id.unwrap_or_default())
            .map(Some)
            .map_err(|invalid| cells.wrong(invalid)),
    }
}

/// Reads the columns tenant, operation and name.
pub(crate) fn record_key(cells: &mut Cells<'_>) -> Result<RecordKey, PostgresError> {
    Ok(RecordKey {
        tenant: cells.parsed(|text| TenantId::try_new(text).ok())?,
        operation: cells.parsed(|text| text.parse::<Operation>().ok())?,
        name: cells.parsed(|text| RecordName::try_new(text).ok())?,
    })
}

/// Records as the columns of a statement: one array for each column of a record behind its key.
#[derive(Default)]
pub(crate) struct RecordArrays<'a> {
    hashes: Vec<&'a [u8]>,
    states: Vec<&'static str>,
    executions: Vec<Uuid>,
    epochs: Vec<i64>,
    lease_ends: Vec<i64>,
    retentions: Vec<i64>,
    starts: Vec<i64>,
    updates: Vec<i64>,
    expiries: Vec<i64>,
    response_statuses: Vec<Option<i64>>,
    response_headers: Vec<Option<String>>,
    body_refs: Vec<Option<String>>,
    bodies: Vec<Option<&'a [u8]>>,
    resource_kinds: Vec<Option<&'a str>>,
    resource_ids: Vec<Option<&'a str>>,
}

impl<'a> RecordArrays<'a> {
    pub(crate) fn push(&mut self, record: &'a Record) -> Result<(), Error> {
        let Completion { response, resource } = &record.completion;
        let headers = match response {
            Some(response) => json(&response.headers, response.headers.is_empty())?,
            None => None,
        };
        let body = response.as_ref().map(|response| &response.body);
        if let Some(Body::LeftOut(_)) = body {
            return Err(Error::Corrupt("a body that was not read cannot be written".into()));
        }
        self.hashes.push(&record.request_hash.0);
        self.states.push(record.state.name());
        self.executions.push(Uuid(record.owner.execution.as_u128()));
        self.epochs.push(i64::try_from(record.owner.epoch.0).unwrap_or(i64::MAX));
        self.lease_ends.push(millis(record.lease_until));
        self.retentions.push(whole_millis(record.retention));
        self.starts.push(millis(record.started_at));
        self.updates.push(millis(record.updated_at));
        self.expiries.push(millis(record.expires_at));
        self.response_statuses.push(response.as_ref().map(|response| response.status.into()));
        self.response_headers.push(headers);
        self.body_refs.push(body.and_then(|body| body.stored()).map(BodyRef::to_record));
        self.bodies.push(body.and_then(|body| body.inline()).map(|bytes| &bytes[..]));
        self.resource_kinds.push(resource.as_ref().map(Resource::kind));
        self.resource_ids.push(resource.as_ref().map(Resource::id));
        Ok(())
    }

    pub(crate) fn arguments(&self) -> [Argument<'_>; 15] {
        [
            (&self.hashes, Type::BYTEA_ARRAY),
            (&self.states, Type::TEXT_ARRAY),
            (&self.executions, Type::UUID_ARRAY),
            (&self.epochs, Type::INT8_ARRAY),
            (&self.lease_ends, Type::INT8_ARRAY),
            (&self.retentions, Type::INT8_ARRAY),
            (&self.starts, Type::INT8_ARRAY),
            (&self.updates, Type::INT8_ARRAY),
            (&self.expiries, Type::INT8_ARRAY),
            (&self.response_statuses, Type::INT8_ARRAY),
            (&self.response_headers, Type::TEXT_ARRAY),
            (&self.body_refs, Type::TEXT_ARRAY),
            (&self.bodies, Type::BYTEA_ARRAY),
            (&self.resource_kinds, Type::TEXT_ARRAY),
            (&self.resource_ids, Type::TEXT_ARRAY),
        ]
    }
}

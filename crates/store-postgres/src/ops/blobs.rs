//! Records of the objects that hold large bodies, and their condemnation.
//!
//! A submit, a settle or a change of a record that refers to a blob locks its row (`FOR KEY SHARE`) until its commit. A condemnation locks
//! the row against that (`FOR UPDATE`) before it looks for references. So the one that commits second reads what the
//! first one wrote.

use redrive_core::{BodyHash, BodyRef, TenantId, Timestamp};
use redrive_store::{Blob, Condemned};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::codec::{Cells, millis};
use crate::connection::Connection;
use crate::ops::set_aside::{Aside, Damaged, readable};
use crate::postgres_error::PostgresError;

const ADOPT: &str = "
INSERT INTO redrive.blobs AS kept (tenant, body, hash, adopted_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (tenant, hash) WHERE NOT condemned DO UPDATE SET
    adopted_at = greatest(kept.adopted_at, excluded.adopted_at)
RETURNING body";

pub(crate) async fn adopt(
    connection: &Connection,
    tenant: &TenantId,
    fresh: BodyRef,
    now: Timestamp,
) -> Result<BodyRef, PostgresError> {
    let rows = connection
        .query(
            ADOPT,
            &[
                (&tenant.as_str(), Type::TEXT),
                (&fresh.to_record(), Type::TEXT),
                (&fresh.hash.to_string(), Type::TEXT),
                (&millis(now), Type::INT8),
            ],
        )
        .await?;
    let row = rows.first().ok_or_else(|| PostgresError::corrupt("blobs", "a row that was written is not there"))?;
    read(&mut Cells::of(row))
}

const KEPT: &str = "SELECT body FROM redrive.blobs WHERE tenant = $1 AND hash = $2 AND NOT condemned";

pub(crate) async fn kept(
    connection: &Connection,
    tenant: &TenantId,
    hash: BodyHash,
) -> Result<Option<BodyRef>, PostgresError> {
    let rows = connection.query(KEPT, &[(&tenant.as_str(), Type::TEXT), (&hash.to_string(), Type::TEXT)]).await?;
    rows.first().map(|row| read(&mut Cells::of(row))).transpose()
}

/// A page of blobs, each with whether it may be unused. Without the blobs that are set aside as unreadable.
const LOOK: &str = "
SELECT tenant, body, condemned OR adopted_at < $4
FROM redrive.blobs
WHERE (tenant, body) > ($1, $2) AND NOT EXISTS (
    SELECT FROM redrive.set_aside AS noted
    WHERE noted.kind = 'blob' AND noted.tenant = blobs.tenant AND noted.name = blobs.body
)
ORDER BY tenant, body
LIMIT $3";

/// Whether no task, log entry or idempotency record refers to the blob. Written as a subquery that runs for each row and never becomes a
/// join.
macro_rules! is_unused {
    ($blob:literal) => {
        concat!(
            "(SELECT count(*) FROM (
                 SELECT FROM redrive.tasks WHERE tasks.tenant = ",
            $blob,
            ".tenant AND tasks.body_ref = ",
            $blob,
            ".body LIMIT 1
             ) AS used) = 0
             AND (SELECT count(*) FROM (
                 SELECT FROM redrive.log
                 WHERE log.tenant = ",
            $blob,
            ".tenant AND log.answer_body_ref = ",
            $blob,
            ".body LIMIT 1
             ) AS used) = 0
             AND (SELECT count(*) FROM (
                 SELECT FROM redrive.idempotency_records AS records
                 WHERE records.tenant = ",
            $blob,
            ".tenant AND records.body_ref = ",
            $blob,
            ".body LIMIT 1
             ) AS used) = 0"
        )
    };
}

/// Locks those of some blobs that nothing refers to, or that are condemned already, so that no reference is added.
const LOCK: &str = concat!(
    "SELECT kept.tenant, kept.body
     FROM unnest($1::text[], $2::text[]) AS looked (tenant, body)
     CROSS JOIN LATERAL (
         SELECT blobs.tenant, blobs.body FROM redrive.blobs
         WHERE blobs.tenant = looked.tenant AND blobs.body = looked.body AND (blobs.condemned OR ",
    is_unused!("blobs"),
    ")
         FOR UPDATE
     ) AS kept"
);

/// A separate statement, so that it reads everything that was committed before the rows were locked.
const CONDEMN: &str = concat!(
    "INSERT INTO redrive.blobs (tenant, body, hash, adopted_at, condemned)
     SELECT kept.tenant, kept.body, kept.hash, kept.adopted_at, true
     FROM unnest($1::text[], $2::text[]) AS looked (tenant, body)
     CROSS JOIN LATERAL (
         SELECT * FROM redrive.blobs WHERE blobs.tenant = looked.tenant AND blobs.body = looked.body LIMIT 1
     ) AS kept
     WHERE kept.condemned OR kept.adopted_at < $3 AND ",
    is_unused!("kept"),
    "
     ON CONFLICT (tenant, body) DO UPDATE SET condemned = true
     RETURNING tenant, body"
);

/// How often a page is read again because blobs on it were set aside.
const ROUNDS: usize = 20;

/// Runs inside a transaction.
pub(crate) async fn condemn(
    connection: &Connection,
    aside: &Aside,
    adopted_before: Timestamp,
    after: Option<&Blob>,
    limit: usize,
) -> Result<Condemned, PostgresError> {
    let (tenant, body) = after.map_or(("", String::new()), |blob| (blob.tenant.as_str(), blob.body.to_record()));
    // A step that looks at nothing would repeat endlessly.
    let limit = limit.max(1);
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let adopted_before = millis(adopted_before);
    let place = [(&tenant as _, Type::TEXT), (&body as _, Type::TEXT)];
    let [tenant, body] = place;
    let look = [tenant, body, (&most as _, Type::INT8), (&adopted_before as _, Type::INT8)];
    let (mut looked, mut next) = (Vec::new(), None);
    for _ in 0..ROUNDS {
        looked = connection.query(LOOK, &look).await?;
        let mut damaged = Vec::new();
        for row in &looked {
            next = readable(read_blob(row), &mut damaged, |failure| damaged_blob(row, failure))?.or(next);
        }
        // The page is read again without the rows that were set aside.
        if aside.put(connection, &damaged).await? == 0 {
            break;
        }
    }
    let next = next.filter(|_| looked.len() == limit);
    let mut candidates = Vec::new();
    for row in &looked {
        if Cells::from(row, 2).get()? && read_blob(row).is_ok() {
            candidates.push(row);
        }
    }
    connection.find_by_key().await?;
    let (tenants, bodies) = columns(candidates)?;
    let locked = connection.query(LOCK, &[(&tenants, Type::TEXT_ARRAY), (&bodies, Type::TEXT_ARRAY)]).await?;
    let (tenants, bodies) = columns(&locked)?;
    let rows = connection
        .query(CONDEMN, &[(&tenants, Type::TEXT_ARRAY), (&bodies, Type::TEXT_ARRAY), (&adopted_before, Type::INT8)])
        .await?;
    let mut blobs: Vec<Blob> = rows.iter().map(read_blob).collect::<Result<_, _>>()?;
    blobs.sort_by(|one, other| (&one.tenant, one.body.to_record()).cmp(&(&other.tenant, other.body.to_record())));
    Ok(Condemned { blobs, next })
}

/// The columns `tenant` and `body` of these rows.
fn columns<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Result<(Vec<&'a str>, Vec<&'a str>), PostgresError> {
    let mut columns = (Vec::new(), Vec::new());
    for row in rows {
        let mut cells = Cells::of(row);
        columns.0.push(cells.get()?);
        columns.1.push(cells.get()?);
    }
    Ok(columns)
}

/// Finds each row by its key, locks it and deletes it by its physical position: a DELETE with a join would scan the
/// table whenever the planner believes that it is small.
const FORGET: &str = "
DELETE FROM redrive.blobs
WHERE ctid = ANY (ARRAY(
    SELECT found.ctid
    FROM unnest($1::text[], $2::text[]) AS deleted (tenant, body)
    CROSS JOIN LATERAL (
        SELECT blobs.ctid FROM redrive.blobs
        WHERE blobs.tenant = deleted.tenant AND blobs.body = deleted.body AND blobs.condemned
        FOR UPDATE
    ) AS found
))";

pub(crate) async fn forget(connection: &Connection, blobs: &[Blob]) -> Result<(), PostgresError> {
    let tenants: Vec<&str> = blobs.iter().map(|blob| blob.tenant.as_str()).collect();
    let bodies: Vec<String> = blobs.iter().map(|blob| blob.body.to_record()).collect();
    connection.query(FORGET, &[(&tenants, Type::TEXT_ARRAY), (&bodies, Type::TEXT_ARRAY)]).await.map(drop)
}

fn damaged_blob(row: &Row, failure: &PostgresError) -> Result<Damaged, PostgresError> {
    let mut cells = Cells::of(row);
    Ok(Damaged::blob(cells.get()?, cells.get()?, failure))
}

fn read_blob(row: &Row) -> Result<Blob, PostgresError> {
    let mut cells = Cells::of(row);
    Ok(Blob { tenant: cells.parsed(|text| TenantId::try_new(text).ok())?, body: read(&mut cells)? })
}

fn read(cells: &mut Cells<'_>) -> Result<BodyRef, PostgresError> {
    cells.parsed(|record| BodyRef::from_record(record).ok())
}

//! Which objects hold large bodies, and which of them nobody needs any more.
//!
//! A submit or a settle that refers to a blob locks its row (`FOR KEY SHARE`) until its commit; a condemnation locks it
//! against that (`FOR UPDATE`) before it looks who refers to it. So whichever commits first, the other sees it.

use redrive_core::{BodyHash, BodyRef, TenantId, Timestamp};
use redrive_store::{Blob, Condemned};
use tokio_postgres::types::Type;

use crate::codec::{Cells, millis};
use crate::connection::Connection;
use crate::failure::Failure;

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
) -> Result<BodyRef, Failure> {
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
    let row = rows.first().ok_or_else(|| Failure::corrupt("blobs", "a row that was written is not there"))?;
    read(&mut Cells::of(row))
}

const KEPT: &str = "SELECT body FROM redrive.blobs WHERE tenant = $1 AND hash = $2 AND NOT condemned";

pub(crate) async fn kept(
    connection: &Connection,
    tenant: &TenantId,
    hash: BodyHash,
) -> Result<Option<BodyRef>, Failure> {
    let rows = connection.query(KEPT, &[(&tenant.as_str(), Type::TEXT), (&hash.to_string(), Type::TEXT)]).await?;
    rows.first().map(|row| read(&mut Cells::of(row))).transpose()
}

const LOOK: &str = "
SELECT tenant, body FROM redrive.blobs
WHERE (tenant, body) > ($1, $2)
ORDER BY tenant, body
LIMIT $3
FOR UPDATE";

/// In a statement of its own: it sees whatever was committed before the rows were locked.
const CONDEMN: &str = "
WITH unused AS (
    UPDATE redrive.blobs SET condemned = true
    FROM unnest($1::text[], $2::text[]) AS looked (tenant, body)
    WHERE blobs.tenant = looked.tenant AND blobs.body = looked.body
      AND NOT blobs.condemned AND blobs.adopted_at < $3
      AND NOT EXISTS (
          SELECT FROM redrive.tasks WHERE tasks.tenant = blobs.tenant AND tasks.body_ref = blobs.body
      )
      AND NOT EXISTS (
          SELECT FROM redrive.log WHERE log.tenant = blobs.tenant AND log.answer_body_ref = blobs.body
      )
    RETURNING blobs.tenant, blobs.body
)
SELECT tenant, body FROM unused
UNION ALL
SELECT blobs.tenant, blobs.body
FROM unnest($1::text[], $2::text[]) AS looked (tenant, body)
JOIN redrive.blobs ON blobs.tenant = looked.tenant AND blobs.body = looked.body AND blobs.condemned
ORDER BY tenant, body";

/// Runs inside a transaction.
pub(crate) async fn condemn(
    connection: &Connection,
    adopted_before: Timestamp,
    after: Option<&Blob>,
    limit: usize,
) -> Result<Condemned, Failure> {
    let (tenant, body) = after.map_or(("", String::new()), |blob| (blob.tenant.as_str(), blob.body.to_record()));
    // A step that looks at nothing would never come to an end.
    let limit = limit.max(1);
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let looked = connection.query(LOOK, &[(&tenant, Type::TEXT), (&body, Type::TEXT), (&most, Type::INT8)]).await?;
    let Some(last) = looked.last() else { return Ok(Condemned::default()) };
    let last = Some(read_blob(last)?).filter(|_| looked.len() == limit);
    let tenants: Vec<&str> = looked.iter().map(|row| Cells::of(row).get()).collect::<Result<_, _>>()?;
    let bodies: Vec<&str> = looked.iter().map(|row| Cells::from(row, 1).get()).collect::<Result<_, _>>()?;
    let rows = connection
        .query(
            CONDEMN,
            &[(&tenants, Type::TEXT_ARRAY), (&bodies, Type::TEXT_ARRAY), (&millis(adopted_before), Type::INT8)],
        )
        .await?;
    Ok(Condemned { blobs: rows.iter().map(read_blob).collect::<Result<_, _>>()?, next: last })
}

const FORGET: &str = "
DELETE FROM redrive.blobs USING unnest($1::text[], $2::text[]) AS deleted (tenant, body)
WHERE blobs.tenant = deleted.tenant AND blobs.body = deleted.body AND blobs.condemned";

pub(crate) async fn forget(connection: &Connection, blobs: &[Blob]) -> Result<(), Failure> {
    let tenants: Vec<&str> = blobs.iter().map(|blob| blob.tenant.as_str()).collect();
    let bodies: Vec<String> = blobs.iter().map(|blob| blob.body.to_record()).collect();
    connection.query(FORGET, &[(&tenants, Type::TEXT_ARRAY), (&bodies, Type::TEXT_ARRAY)]).await.map(drop)
}

fn read_blob(row: &tokio_postgres::Row) -> Result<Blob, Failure> {
    let mut cells = Cells::of(row);
    Ok(Blob { tenant: cells.parsed(|text| TenantId::try_new(text).ok())?, body: read(&mut cells)? })
}

fn read(cells: &mut Cells<'_>) -> Result<BodyRef, Failure> {
    cells.parsed(|record| BodyRef::from_record(record).ok())
}

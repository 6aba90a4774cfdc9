//! The tasks that idempotency keys belong to.

use redrive_core::request::Fingerprint;
use redrive_core::{IdempotencyKey, Task, TaskId, TenantId};
use tokio_postgres::types::Type;

use crate::codec::{Cells, LIVE_TASK_COLUMN_COUNT, TaskRow, any_task};
use crate::connection::Connection;
use crate::postgres_error::PostgresError;

const OWNERS: &str = concat!(
    "SELECT ",
    any_task!(),
    ", tasks.fingerprint, wanted.place
     FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS wanted (tenant, idempotency_key, place)
     JOIN LATERAL (
         SELECT * FROM redrive.tasks
         WHERE tasks.tenant = wanted.tenant AND tasks.idempotency_key = wanted.idempotency_key
         LIMIT 1
     ) AS tasks ON true",
    any_task!(join),
);

/// The task that a key belongs to.
pub(crate) struct Owner {
    pub(crate) id: TaskId,
    /// The task's current state and its request's fingerprint, if they can be read.
    pub(crate) task: Result<(Task, Fingerprint), PostgresError>,
    /// The fingerprint of its request, if it can be read.
    pub(crate) fingerprint: Option<Fingerprint>,
}

/// The owner of each key, in order.
pub(crate) async fn owners(
    connection: &Connection,
    keys: &[(&TenantId, &IdempotencyKey)],
) -> Result<Vec<Option<Owner>>, PostgresError> {
    let tenants: Vec<&str> = keys.iter().map(|(tenant, _)| tenant.as_str()).collect();
    let names: Vec<&str> = keys.iter().map(|(_, key)| key.as_str()).collect();
    let rows = connection.query(OWNERS, &[(&tenants, Type::TEXT_ARRAY), (&names, Type::TEXT_ARRAY)]).await?;
    let mut owners: Vec<Option<Owner>> = keys.iter().map(|_| None).collect();
    for row in &rows {
        let mut cells = Cells::from(row, LIVE_TASK_COLUMN_COUNT);
        let fingerprint: &[u8] = cells.get()?;
        let fingerprint =
            Fingerprint::from_bytes(fingerprint).ok_or_else(|| cells.wrong("is of no version that is known"));
        let place: i64 = cells.get()?;
        let slot = usize::try_from(place - 1).ok().and_then(|place| owners.get_mut(place));
        *slot.ok_or_else(|| cells.wrong(place))? = Some(Owner {
            id: Cells::from(row, 1).task_id()?,
            fingerprint: fingerprint.as_ref().ok().copied(),
            task: TaskRow::read(row).and_then(|row| Ok((row.task, fingerprint?))),
        });
    }
    Ok(owners)
}

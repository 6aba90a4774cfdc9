//! Counting the pending tasks of lanes.

use redrive_core::{Class, Lane, TaskId, Timestamp};
use redrive_store::Backlog;
use tokio_postgres::types::Type;

use crate::codec::{Cells, Uuid, millis};
use crate::connection::Connection;
use crate::postgres_error::PostgresError;

/// Walks along the index of due tasks, class by class, up to the limit. The order makes the planner choose this index,
/// whatever its statistics say.
const BACKLOGS: &str = "
SELECT (
    SELECT count(*) FROM (
        (
            SELECT FROM redrive.live
            WHERE tenant = given.tenant AND dependency = given.dependency AND class = 0 AND lease_until IS NULL
              AND due_at <= $3
            ORDER BY due_at, id
            LIMIT $4
        )
        UNION ALL
        (
            SELECT FROM redrive.live
            WHERE tenant = given.tenant AND dependency = given.dependency AND class = 1 AND lease_until IS NULL
              AND due_at <= $3
            ORDER BY due_at, id
            LIMIT $4
        )
        LIMIT $4
    ) AS due
), (
    SELECT count(*) FROM (
        (
            SELECT FROM redrive.live
            WHERE tenant = given.tenant AND dependency = given.dependency AND class = 0 AND lease_until IS NULL
              AND due_at > $3
            ORDER BY due_at, id
            LIMIT $4
        )
        UNION ALL
        (
            SELECT FROM redrive.live
            WHERE tenant = given.tenant AND dependency = given.dependency AND class = 1 AND lease_until IS NULL
              AND due_at > $3
            ORDER BY due_at, id
            LIMIT $4
        )
        LIMIT $4
    ) AS waiting
)
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS given (tenant, dependency, place)
ORDER BY given.place";

pub(crate) async fn backlogs(
    connection: &Connection,
    lanes: &[Lane],
    now: Timestamp,
    most: u32,
) -> Result<Vec<Backlog>, PostgresError> {
    let tenants: Vec<&str> = lanes.iter().map(|lane| lane.tenant.as_str()).collect();
    let dependencies: Vec<&str> = lanes.iter().map(|lane| lane.dependency.as_str()).collect();
    let rows = connection
        .query(
            BACKLOGS,
            &[
                (&tenants, Type::TEXT_ARRAY),
                (&dependencies, Type::TEXT_ARRAY),
                (&millis(now), Type::INT8),
                (&i64::from(most), Type::INT8),
            ],
        )
        .await?;
    rows.iter()
        .map(|row| {
            let mut cells = Cells::of(row);
            let mut count = || cells.unsigned().map(|tasks| u32::try_from(tasks).unwrap_or(most));
            Ok(Backlog { due: count()?, waiting: count()? })
        })
        .collect()
}

/// The retries that are due first, by the time at which their tasks were accepted: ids grow with it. Answered from the index
/// of due tasks, which ends with the id.
const OLD_RETRIES: &str = "
SELECT (
    SELECT count(*) FROM (
        SELECT id FROM redrive.live
        WHERE tenant = given.tenant AND dependency = given.dependency AND class = 1 AND lease_until IS NULL
        ORDER BY due_at, id
        LIMIT $4
    ) AS retry
    WHERE id < $3
)
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS given (tenant, dependency, place)
ORDER BY given.place";

pub(crate) async fn old_retries(
    connection: &Connection,
    lanes: &[Lane],
    accepted_before: Timestamp,
    look_at: u32,
) -> Result<Vec<u32>, PostgresError> {
    let tenants: Vec<&str> = lanes.iter().map(|lane| lane.tenant.as_str()).collect();
    let dependencies: Vec<&str> = lanes.iter().map(|lane| lane.dependency.as_str()).collect();
    let first_new = TaskId::from_parts(TaskId::first_sequence(accepted_before), 0);
    let rows = connection
        .query(
            OLD_RETRIES,
            &[
                (&tenants, Type::TEXT_ARRAY),
                (&dependencies, Type::TEXT_ARRAY),
                (&Uuid::from(first_new), Type::UUID),
                (&i64::from(look_at), Type::INT8),
            ],
        )
        .await?;
    rows.iter().map(|row| Cells::of(row).unsigned().map(|tasks| u32::try_from(tasks).unwrap_or(look_at))).collect()
}

/// The numbers that the statements contain as literals.
const _: () = assert!(Class::ALL.len() == 2 && Class::First.code() == 0 && Class::Retry.code() == 1);

//! Redrive's functions with `sqlx`.

use ::sqlx::Row;
use ::sqlx::postgres::{PgConnection, PgRow};

use crate::record_statement::{Answer, COMPLETE, RELEASE, RESERVE, SEEN, WrittenCompletion, whole_millis};
use crate::statement::{ENQUEUE, Written};
use crate::{Completion, Enqueue, Event, Failure, Reservation, Reserve, Reserved, TaskId};

/// Why a call did nothing.
pub type Error = crate::Error<::sqlx::Error>;

/// Enqueues a task in the current transaction of `connection` and returns its id. Without a transaction, it uses one of
/// its own. The same key with the same request is the same task.
///
/// A `&mut` of a `Transaction` is accepted as it is.
///
/// ```no_run
/// use redrive_outbox::{Body, Enqueue};
///
/// async fn place_order(pool: &sqlx::PgPool, order: i64) -> Result<(), Box<dyn std::error::Error>> {
///     let mut transaction = pool.begin().await?;
///     sqlx::query("INSERT INTO orders (id) VALUES ($1)").bind(order).execute(&mut *transaction).await?;
///     let enqueue = Enqueue {
///         body: Body::Json(serde_json::json!({ "order": order })),
///         idempotency_key: Some(format!("order-{order}")),
///         ..Enqueue::new("https://example.com/orders")
///     };
///     redrive_outbox::sqlx::enqueue(&mut transaction, &enqueue).await?;
///     Ok(transaction.commit().await?)
/// }
/// ```
pub async fn enqueue(connection: &mut PgConnection, enqueue: &Enqueue) -> Result<TaskId, Error> {
    let Written { body, headers, not_before_ms, labels } = Written::of(enqueue);
    let id: String = ::sqlx::query_scalar(ENQUEUE)
        .bind(&enqueue.target_url)
        .bind(body)
        .bind(&enqueue.method)
        .bind(headers)
        .bind(&enqueue.policy_id)
        .bind(&enqueue.idempotency_key)
        .bind(&enqueue.tenant)
        .bind(&enqueue.dependency)
        .bind(not_before_ms)
        .bind(labels)
        .bind(&enqueue.correlation_id)
        .fetch_one(connection)
        .await
        .map_err(told)?;
    id.parse().map_err(|invalid| Error::Database(::sqlx::Error::Decode(Box::new(invalid))))
}

/// Reserves an idempotency key in the current transaction. A second transaction with the same key waits until this one ends,
/// and then gets its result, or the key if this one was rolled back.
///
/// ```no_run
/// use redrive_outbox::sqlx::{complete, reserve};
/// use redrive_outbox::{Completion, RequestHash, Reserve, Reserved, Response};
///
/// /// Pays an order once for each key, and answers duplicates with the first response.
/// async fn pay(
///     pool: &sqlx::PgPool,
///     order: i64,
///     key: &str,
///     request: RequestHash,
/// ) -> Result<Response, Box<dyn std::error::Error>> {
///     let mut transaction = pool.begin().await?;
///     let reservation = match reserve(&mut transaction, &Reserve::new("pay-order", key, request)).await? {
///         Reserved::Owner(reservation) => reservation,
///         Reserved::Replay(ended) | Reserved::Failed(ended) => {
///             return Ok(ended.completion.response.ok_or("there is no response")?);
///         }
///         Reserved::InProgress { .. } => return Err("try again later".into()),
///         Reserved::OtherRequest => return Err("the key was used for another request".into()),
///     };
///     sqlx::query("UPDATE orders SET paid = true WHERE id = $1").bind(order).execute(&mut *transaction).await?;
///     let response = Response { status: 201, headers: Vec::new(), body: b"paid".to_vec() };
///     let completion = Completion { response: Some(response.clone()), resource: None };
///     complete(&mut transaction, &reservation, &completion).await?;
///     transaction.commit().await?;
///     Ok(response)
/// }
/// ```
pub async fn reserve(connection: &mut PgConnection, reserve: &Reserve) -> Result<Reserved, Error> {
    let row = ::sqlx::query(RESERVE)
        .bind(&reserve.operation)
        .bind(&reserve.key)
        .bind(&reserve.request_hash.0[..])
        .bind(whole_millis(reserve.lease))
        .bind(whole_millis(reserve.retention))
        .bind(&reserve.tenant)
        .bind(reserve.execution_id.map(|id| id.to_string()))
        .fetch_one(connection)
        .await
        .map_err(told)?;
    answer(&row).map_err(Error::Database)?.read(reserve).map_err(Error::UnknownAnswer)
}

fn answer(row: &PgRow) -> Result<Answer, ::sqlx::Error> {
    Ok(Answer {
        outcome: row.try_get(0)?,
        execution_id: row.try_get(1)?,
        epoch: row.try_get(2)?,
        lease_until_ms: row.try_get(3)?,
        previous_state: row.try_get(4)?,
        response_status: row.try_get(5)?,
        response_headers: row.try_get(6)?,
        response_body: row.try_get(7)?,
        resource_type: row.try_get(8)?,
        resource_id: row.try_get(9)?,
    })
}

/// Completes a record that this execution has reserved: the operation took place, and duplicates get this result.
pub async fn complete(
    connection: &mut PgConnection,
    reservation: &Reservation,
    completion: &Completion,
) -> Result<(), Error> {
    end(connection, reservation, WrittenCompletion::of(completion)).await
}

/// Ends a record that this execution has reserved with a failure.
pub async fn fail(connection: &mut PgConnection, reservation: &Reservation, failure: &Failure) -> Result<(), Error> {
    end(connection, reservation, WrittenCompletion::of_failure(failure)).await
}

async fn end(
    connection: &mut PgConnection,
    reservation: &Reservation,
    result: WrittenCompletion<'_>,
) -> Result<(), Error> {
    let ended = ::sqlx::query(COMPLETE)
        .bind(&reservation.operation)
        .bind(&reservation.key)
        .bind(reservation.execution_id.to_string())
        .bind(reservation.epoch)
        .bind(&reservation.tenant)
        .bind(result.status)
        .bind(result.headers)
        .bind(result.body)
        .bind(result.resource_type)
        .bind(result.resource_id)
        .bind(result.retryable)
        .fetch_one(connection);
    ended.await.map(drop).map_err(told)
}

/// Gives up a record that this execution has reserved: nothing was done, and the key is free.
pub async fn release(connection: &mut PgConnection, reservation: &Reservation) -> Result<(), Error> {
    let released = ::sqlx::query(RELEASE)
        .bind(&reservation.operation)
        .bind(&reservation.key)
        .bind(reservation.execution_id.to_string())
        .bind(reservation.epoch)
        .bind(&reservation.tenant)
        .fetch_one(connection);
    released.await.map(drop).map_err(told)
}

/// Whether a consumer has seen an event before. If not, it is recorded as seen, in the current transaction: with the effect of
/// the event in the same transaction, the event is applied exactly once. A second transaction with the same event waits
/// until this one ends.
pub async fn seen(connection: &mut PgConnection, event: &Event) -> Result<bool, Error> {
    let seen = ::sqlx::query_scalar(SEEN)
        .bind(&event.consumer)
        .bind(&event.id)
        .bind(whole_millis(event.retention))
        .bind(&event.tenant)
        .fetch_one(connection);
    seen.await.map_err(told)
}

fn told(error: ::sqlx::Error) -> Error {
    let database = error.as_database_error();
    match database.and_then(|told| Some((told.code()?.into_owned(), told.message().to_owned()))) {
        Some((state, message)) => Error::told(&state, message, error),
        None => Error::Database(error),
    }
}

//! Redrive's functions with `tokio_postgres`.

use ::tokio_postgres::types::{FromSql, ToSql, Type};
use ::tokio_postgres::{GenericClient, Row};

use crate::record_statement::{Answer, COMPLETE, RELEASE, RESERVE, SEEN, WrittenCompletion, whole_millis};
use crate::statement::{ENQUEUE, Written};
use crate::{Completion, Enqueue, Event, Failure, Reservation, Reserve, Reserved, TaskId};

/// Why a call did nothing.
pub type Error = crate::Error<::tokio_postgres::Error>;

/// Enqueues a task in the current transaction of `client` and returns its id. Without a transaction, it uses one of its
/// own. The same key with the same request is the same task.
///
/// One round trip and no prepared statement, so it works through a transaction pooler.
///
/// ```no_run
/// use redrive_outbox::{Body, Enqueue};
///
/// async fn place_order(client: &mut tokio_postgres::Client, order: i64) -> Result<(), Box<dyn std::error::Error>> {
///     let transaction = client.transaction().await?;
///     transaction.execute("INSERT INTO orders (id) VALUES ($1)", &[&order]).await?;
///     let enqueue = Enqueue {
///         body: Body::Json(serde_json::json!({ "order": order })),
///         idempotency_key: Some(format!("order-{order}")),
///         ..Enqueue::new("https://example.com/orders")
///     };
///     redrive_outbox::tokio_postgres::enqueue(&transaction, &enqueue).await?;
///     Ok(transaction.commit().await?)
/// }
/// ```
pub async fn enqueue<C: GenericClient>(client: &C, enqueue: &Enqueue) -> Result<TaskId, Error> {
    let Written { body, headers, not_before_ms, labels } = Written::of(enqueue);
    let arguments: [(&(dyn ToSql + Sync), Type); 11] = [
        (&enqueue.target_url, Type::TEXT),
        (&body, Type::BYTEA),
        (&enqueue.method, Type::TEXT),
        (&headers, Type::TEXT),
        (&enqueue.policy_id, Type::TEXT),
        (&enqueue.idempotency_key, Type::TEXT),
        (&enqueue.tenant, Type::TEXT),
        (&enqueue.dependency, Type::TEXT),
        (&not_before_ms, Type::INT8),
        (&labels, Type::TEXT),
        (&enqueue.correlation_id, Type::TEXT),
    ];
    let row = client.query_typed_one(ENQUEUE, &arguments).await.map_err(told)?;
    let Id(id) = row.try_get(0).map_err(Error::Database)?;
    Ok(id)
}

/// Reserves an idempotency key in the current transaction. A second transaction with the same key waits until this one ends,
/// and then gets its result, or the key if this one was rolled back.
///
/// ```no_run
/// use redrive_outbox::tokio_postgres::{complete, reserve};
/// use redrive_outbox::{Completion, RequestHash, Reserve, Reserved, Response};
///
/// /// Pays an order once for each key, and answers duplicates with the first response.
/// async fn pay(
///     client: &mut tokio_postgres::Client,
///     order: i64,
///     key: &str,
///     request: RequestHash,
/// ) -> Result<Response, Box<dyn std::error::Error>> {
///     let transaction = client.transaction().await?;
///     let reservation = match reserve(&transaction, &Reserve::new("pay-order", key, request)).await? {
///         Reserved::Owner(reservation) => reservation,
///         Reserved::Replay(ended) | Reserved::Failed(ended) => {
///             return Ok(ended.completion.response.ok_or("there is no response")?);
///         }
///         Reserved::InProgress { .. } => return Err("try again later".into()),
///         Reserved::OtherRequest => return Err("the key was used for another request".into()),
///     };
///     transaction.execute("UPDATE orders SET paid = true WHERE id = $1", &[&order]).await?;
///     let response = Response { status: 201, headers: Vec::new(), body: b"paid".to_vec() };
///     let completion = Completion { response: Some(response.clone()), resource: None };
///     complete(&transaction, &reservation, &completion).await?;
///     transaction.commit().await?;
///     Ok(response)
/// }
/// ```
pub async fn reserve<C: GenericClient>(client: &C, reserve: &Reserve) -> Result<Reserved, Error> {
    let arguments: [(&(dyn ToSql + Sync), Type); 7] = [
        (&reserve.operation, Type::TEXT),
        (&reserve.key, Type::TEXT),
        (&&reserve.request_hash.0[..], Type::BYTEA),
        (&whole_millis(reserve.lease), Type::INT8),
        (&whole_millis(reserve.retention), Type::INT8),
        (&reserve.tenant, Type::TEXT),
        (&reserve.execution_id.map(|id| id.to_string()), Type::TEXT),
    ];
    let row = client.query_typed_one(RESERVE, &arguments).await.map_err(told)?;
    answer(&row).map_err(Error::Database)?.read(reserve).map_err(Error::UnknownAnswer)
}

fn answer(row: &Row) -> Result<Answer, ::tokio_postgres::Error> {
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
pub async fn complete<C: GenericClient>(
    client: &C,
    reservation: &Reservation,
    completion: &Completion,
) -> Result<(), Error> {
    end(client, reservation, WrittenCompletion::of(completion)).await
}

/// Ends a record that this execution has reserved with a failure.
pub async fn fail<C: GenericClient>(client: &C, reservation: &Reservation, failure: &Failure) -> Result<(), Error> {
    end(client, reservation, WrittenCompletion::of_failure(failure)).await
}

async fn end<C: GenericClient>(
    client: &C,
    reservation: &Reservation,
    result: WrittenCompletion<'_>,
) -> Result<(), Error> {
    let arguments: [(&(dyn ToSql + Sync), Type); 11] = [
        (&reservation.operation, Type::TEXT),
        (&reservation.key, Type::TEXT),
        (&reservation.execution_id.to_string(), Type::TEXT),
        (&reservation.epoch, Type::INT8),
        (&reservation.tenant, Type::TEXT),
        (&result.status, Type::INT4),
        (&result.headers, Type::TEXT),
        (&result.body, Type::BYTEA),
        (&result.resource_type, Type::TEXT),
        (&result.resource_id, Type::TEXT),
        (&result.retryable, Type::BOOL),
    ];
    client.query_typed_one(COMPLETE, &arguments).await.map(drop).map_err(told)
}

/// Gives up a record that this execution has reserved: nothing was done, and the key is free.
pub async fn release<C: GenericClient>(client: &C, reservation: &Reservation) -> Result<(), Error> {
    let arguments: [(&(dyn ToSql + Sync), Type); 5] = [
        (&reservation.operation, Type::TEXT),
        (&reservation.key, Type::TEXT),
        (&reservation.execution_id.to_string(), Type::TEXT),
        (&reservation.epoch, Type::INT8),
        (&reservation.tenant, Type::TEXT),
    ];
    client.query_typed_one(RELEASE, &arguments).await.map(drop).map_err(told)
}

/// Whether a consumer has seen an event before. If not, it is recorded as seen, in the current transaction: with the effect of
/// the event in the same transaction, the event is applied exactly once. A second transaction with the same event waits
/// until this one ends.
pub async fn seen<C: GenericClient>(client: &C, event: &Event) -> Result<bool, Error> {
    let arguments: [(&(dyn ToSql + Sync), Type); 4] = [
        (&event.consumer, Type::TEXT),
        (&event.id, Type::TEXT),
        (&whole_millis(event.retention), Type::INT8),
        (&event.tenant, Type::TEXT),
    ];
    let row = client.query_typed_one(SEEN, &arguments).await.map_err(told)?;
    row.try_get(0).map_err(Error::Database)
}

fn told(error: ::tokio_postgres::Error) -> Error {
    match error.as_db_error().map(|told| (told.code().code().to_owned(), told.message().to_owned())) {
        Some((state, message)) => Error::told(&state, message, error),
        None => Error::Database(error),
    }
}

/// An id as the statement returns it.
struct Id(TaskId);

impl<'a> FromSql<'a> for Id {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Id(<&str>::from_sql(kind, raw)?.parse()?))
    }

    fn accepts(kind: &Type) -> bool {
        <&str as FromSql<'_>>::accepts(kind)
    }
}

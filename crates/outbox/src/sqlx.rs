//! Enqueueing with `sqlx`.

use ::sqlx::postgres::PgConnection;

use crate::statement::{ENQUEUE, Written};
use crate::{Enqueue, TaskId};

/// Why nothing was enqueued.
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
        .fetch_one(connection)
        .await
        .map_err(told)?;
    id.parse().map_err(|invalid| Error::Database(::sqlx::Error::Decode(Box::new(invalid))))
}

fn told(error: ::sqlx::Error) -> Error {
    let database = error.as_database_error();
    match database.and_then(|told| Some((told.code()?.into_owned(), told.message().to_owned()))) {
        Some((state, message)) => Error::told(&state, message, error),
        None => Error::Database(error),
    }
}

//! Enqueueing with `tokio_postgres`.

use ::tokio_postgres::GenericClient;
use ::tokio_postgres::types::{FromSql, ToSql, Type};

use crate::statement::{ENQUEUE, Written};
use crate::{Enqueue, TaskId};

/// Why nothing was enqueued.
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
    let arguments: [(&(dyn ToSql + Sync), Type); 10] = [
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
    ];
    let row = client.query_typed_one(ENQUEUE, &arguments).await.map_err(told)?;
    let Id(id) = row.try_get(0).map_err(Error::Database)?;
    Ok(id)
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

//! Task ids as PostgreSQL's uuid.

use std::error::Error;

use bytes::BytesMut;
use redrive_core::TaskId;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

/// 16 bytes, in the order in which they are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Uuid(pub(crate) u128);

impl Uuid {
    /// The lowest of all: every task comes after it.
    pub(crate) const LOWEST: Uuid = Uuid(0);
    /// The highest of all: every task comes before it.
    pub(crate) const HIGHEST: Uuid = Uuid(u128::MAX);

    /// The task with this id, if it is one that was ever handed out.
    pub(crate) fn task_id(self) -> Option<TaskId> {
        TaskId::from_u128(self.0)
    }
}

impl From<TaskId> for Uuid {
    fn from(id: TaskId) -> Self {
        Uuid(id.as_u128())
    }
}

impl ToSql for Uuid {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(&self.0.to_be_bytes());
        Ok(IsNull::No)
    }

    accepts!(UUID);
    to_sql_checked!();
}

impl<'a> FromSql<'a> for Uuid {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Uuid(u128::from_be_bytes(raw.try_into()?)))
    }

    accepts!(UUID);
}

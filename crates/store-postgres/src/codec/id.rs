//! Task ids as PostgreSQL's `uuid`.

use std::error::Error;
use std::fmt;

use bytes::BytesMut;
use redrive_core::TaskId;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

/// An id as 16 bytes, in PostgreSQL's order of comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Uuid(pub(crate) u128);

impl Uuid {
    /// The lowest id: every task comes after it.
    pub(crate) const LOWEST: Uuid = Uuid(0);
    /// The highest id: every task comes before it.
    pub(crate) const HIGHEST: Uuid = Uuid(u128::MAX);

    /// The task id, if it has the form of one that Redrive makes.
    pub(crate) fn task_id(self) -> Option<TaskId> {
        TaskId::from_u128(self.0)
    }
}

impl From<TaskId> for Uuid {
    fn from(id: TaskId) -> Self {
        Uuid(id.as_u128())
    }
}

/// Formats the id as PostgreSQL does.
impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |shift: u32, digits: usize| format!("{:0digits$x}", self.0 >> shift & ((1 << (digits * 4)) - 1));
        write!(f, "{}-{}-{}-{}-{}", part(96, 8), part(80, 4), part(64, 4), part(48, 4), part(0, 12))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_written_as_postgres_writes_it() {
        let id = Uuid(0x0123_4567_89ab_7cde_8f01_2345_6789_abcd);
        assert_eq!(id.to_string(), "01234567-89ab-7cde-8f01-23456789abcd");
        assert_eq!(Uuid::LOWEST.to_string(), "00000000-0000-0000-0000-000000000000");
        assert_eq!(Uuid::HIGHEST.to_string(), "ffffffff-ffff-ffff-ffff-ffffffffffff");
    }
}

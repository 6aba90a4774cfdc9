//! Checks that the store can be written to, by a commit: nothing less proves it.

use crate::ops::meta::{self, Name};
use crate::sqlite_error::SqliteError;
use crate::writer::Writer;

pub(crate) fn check(writer: &mut Writer) -> Result<(), SqliteError> {
    let checks = meta::get(&writer.connection, Name::Checks)?.unwrap_or(0);
    meta::set(&writer.connection, Name::Checks, checks.wrapping_add(1))
}

//! Conversion of single values, where PostgreSQL differs from [`redrive_store::encoding`].

use redrive_core::{Class, Status};
use redrive_store::encoding;

/// The status with this number.
pub(crate) fn status(code: i16) -> Option<Status> {
    encoding::status(code.into())
}

/// The number of a class in the tables.
pub(crate) fn class_code(class: Class) -> i16 {
    class.code().into()
}

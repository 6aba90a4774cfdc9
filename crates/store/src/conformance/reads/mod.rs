//! Facts about reading tasks ([`Reads`](crate::Reads)).

pub(crate) mod backlogs;
pub(crate) mod content;
pub(crate) mod list;

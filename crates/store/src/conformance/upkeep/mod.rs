//! Facts about what background loops need ([`Upkeep`](crate::Upkeep)).

pub(crate) mod alerts;
pub(crate) mod clean;
pub(crate) mod expired;
pub(crate) mod lanes;
pub(crate) mod overdue;

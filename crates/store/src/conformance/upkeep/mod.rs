//! Facts about the calls of background loops ([`Upkeep`](crate::Upkeep)).

pub(crate) mod alerts;
pub(crate) mod clean;
pub(crate) mod expired;
pub(crate) mod lanes;
pub(crate) mod overdue;

//! Facts about changing tasks ([`Tasks`](crate::Tasks)).

pub(crate) mod cancel;
pub(crate) mod claim;
pub(crate) mod classes;
pub(crate) mod dns;
pub(crate) mod horizon;
pub(crate) mod replay;
pub(crate) mod rooms;
pub(crate) mod settle;
pub(crate) mod submit;
pub(crate) mod suppress;

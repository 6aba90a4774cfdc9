//! Facts about the objects that hold bodies ([`Blobs`](crate::Blobs)).

pub(crate) mod interleave;
pub(crate) mod objects;

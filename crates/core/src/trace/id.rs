//! Ids of traces and spans. An id is never zero, as the W3C rules demand.

use std::fmt;
use std::num::{NonZeroU64, NonZeroU128};

/// The id of a trace: 16 bytes, not all zero. Shown as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId(NonZeroU128);

/// The id of a span: 8 bytes, not all zero. Shown as 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId(NonZeroU64);

impl TraceId {
    /// The id with these bits; `None` if all are zero.
    pub fn from_u128(bits: u128) -> Option<Self> {
        NonZeroU128::new(bits).map(TraceId)
    }

    /// All 128 bits.
    pub fn as_u128(self) -> u128 {
        self.0.get()
    }
}

impl SpanId {
    /// The id with these bits; `None` if all are zero.
    pub fn from_u64(bits: u64) -> Option<Self> {
        NonZeroU64::new(bits).map(SpanId)
    }

    /// All 64 bits.
    pub fn as_u64(self) -> u64 {
        self.0.get()
    }
}

impl From<NonZeroU128> for TraceId {
    fn from(bits: NonZeroU128) -> Self {
        TraceId(bits)
    }
}

impl From<NonZeroU64> for SpanId {
    fn from(bits: NonZeroU64) -> Self {
        SpanId(bits)
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

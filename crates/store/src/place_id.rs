//! The identity of the place that stored bodies are in, recorded in its marker and in the store.

use std::fmt;
use std::str::FromStr;

/// The identity of a place where bodies are kept: a version 4 UUID, drawn when the place was first used. It belongs to
/// the bodies and not to the address: two names may lead to the same bucket, and two directories may have the same
/// name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlaceId(u128);

impl PlaceId {
    /// A unique identity, made from 128 random bits.
    pub fn of(random: u128) -> Self {
        PlaceId(random & !(0xF << 76) & !(0b11 << 62) | 0x4 << 76 | 0b10 << 62)
    }
}

impl fmt::Display for PlaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |shift: u32, bits: u32| self.0 >> shift & ((1 << bits) - 1);
        let (first, second, third, fourth) = (part(96, 32), part(80, 16), part(64, 16), part(48, 16));
        write!(f, "{first:08x}-{second:04x}-{third:04x}-{fourth:04x}-{:012x}", part(0, 48))
    }
}

impl FromStr for PlaceId {
    type Err = InvalidPlaceId;

    fn from_str(text: &str) -> Result<Self, InvalidPlaceId> {
        let digits: String = text.chars().filter(|c| *c != '-').collect();
        let id = u128::from_str_radix(&digits, 16).map(PlaceId).map_err(|_| InvalidPlaceId)?;
        // Another spelling of the same number is not accepted.
        if id.to_string() == text { Ok(id) } else { Err(InvalidPlaceId) }
    }
}

/// A text that is not the identity of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a UUID")]
pub struct InvalidPlaceId;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_written_as_a_version_4_uuid_and_read_back() {
        for (random, expected) in [
            (0, "00000000-0000-4000-8000-000000000000"),
            (u128::MAX, "ffffffff-ffff-4fff-bfff-ffffffffffff"),
            (0x0123_4567_89ab_cdef_0123_4567_89ab_cdef, "01234567-89ab-4def-8123-456789abcdef"),
        ] {
            assert_eq!(PlaceId::of(random).to_string(), expected);
            assert_eq!(expected.parse(), Ok(PlaceId::of(random)));
        }
    }

    #[test]
    fn what_is_written_otherwise_is_no_identity() {
        for text in [
            "",
            "0",
            "x",
            "012345678 9ab-4def-8123-456789abcdef",
            "0123456789ab4def8123456789abcdef",
            "01234567-89AB-4DEF-8123-456789ABCDEF",
            "01234567-89ab-4def-8123-456789abcdef\n",
            "+1234567-89ab-4def-8123-456789abcdef",
        ] {
            assert_eq!(text.parse::<PlaceId>(), Err(InvalidPlaceId), "{text:?}");
        }
    }
}

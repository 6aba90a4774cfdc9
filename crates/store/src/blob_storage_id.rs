//! The identity of the blob storage that has the stored bodies, recorded in its marker and in the store.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

/// The identity of blob storage: a version 4 UUID, drawn when the storage was first used. It belongs to the bodies and
/// not to the address: two names may lead to the same bucket, and two directories may have the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlobStorageId(Uuid);

impl BlobStorageId {
    /// A unique identity, made from 128 random bits.
    pub fn of(random: u128) -> Self {
        BlobStorageId(uuid::Builder::from_random_bytes(random.to_be_bytes()).into_uuid())
    }
}

impl fmt::Display for BlobStorageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.hyphenated())
    }
}

impl FromStr for BlobStorageId {
    type Err = InvalidBlobStorageId;

    fn from_str(text: &str) -> Result<Self, InvalidBlobStorageId> {
        let id = Uuid::try_parse(text).map(BlobStorageId).map_err(|_| InvalidBlobStorageId)?;
        // Another spelling of the same number is not accepted.
        if id.to_string() == text { Ok(id) } else { Err(InvalidBlobStorageId) }
    }
}

/// A text that is not the identity of blob storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a UUID")]
pub struct InvalidBlobStorageId;

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
            assert_eq!(BlobStorageId::of(random).to_string(), expected);
            assert_eq!(expected.parse(), Ok(BlobStorageId::of(random)));
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
            "{01234567-89ab-4def-8123-456789abcdef}",
            "urn:uuid:01234567-89ab-4def-8123-456789abcdef",
        ] {
            assert_eq!(text.parse::<BlobStorageId>(), Err(InvalidBlobStorageId), "{text:?}");
        }
    }
}

//! A body: its bytes, or a reference to where they are kept.
//!
//! Small bodies are a part of their task. A large one is an object of its own in object storage, named by its hash, and
//! the task holds a [`BodyRef`]. The reference has the number of bytes and their SHA-256, so that a reader can check
//! that it got exactly these bytes.
//!
//! Not here: where objects are kept (`redrive-blobs`), which of them are still needed (`redrive-store`).

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
use sha2::{Digest, Sha256};

/// The body of a request or an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// The bytes themselves.
    Inline(Bytes),
    /// A reference to bytes in object storage.
    Stored(BodyRef),
    /// The number of bytes that are stored inline and were not read: an answer about many records has room for some.
    LeftOut(u64),
}

impl Body {
    /// How many bytes there are.
    pub fn length(&self) -> u64 {
        match self {
            Body::Inline(bytes) => bytes.len() as u64,
            Body::Stored(stored) => stored.length,
            Body::LeftOut(length) => *length,
        }
    }

    /// The same body without the bytes that are here.
    #[must_use]
    pub fn without_bytes(self) -> Self {
        match self {
            Body::Inline(bytes) => Body::LeftOut(bytes.len() as u64),
            body @ (Body::Stored(_) | Body::LeftOut(_)) => body,
        }
    }

    /// The bytes, if they are here.
    pub fn inline(&self) -> Option<&Bytes> {
        match self {
            Body::Inline(bytes) => Some(bytes),
            Body::Stored(_) | Body::LeftOut(_) => None,
        }
    }

    /// Where the bytes are kept, if it is elsewhere.
    pub fn stored(&self) -> Option<&BodyRef> {
        match self {
            Body::Inline(_) | Body::LeftOut(_) => None,
            Body::Stored(stored) => Some(stored),
        }
    }
}

impl Default for Body {
    fn default() -> Self {
        Body::Inline(Bytes::new())
    }
}

impl<B: Into<Bytes>> From<B> for Body {
    fn from(bytes: B) -> Self {
        Body::Inline(bytes.into())
    }
}

impl From<BodyRef> for Body {
    fn from(stored: BodyRef) -> Self {
        Body::Stored(stored)
    }
}

/// Bytes that are kept in object storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BodyRef {
    /// Their hash.
    pub hash: BodyHash,
    /// How many there are.
    pub length: u64,
    /// Which object it is, of all that ever had these bytes: a random number, so that a late removal of one object
    /// cannot remove another with the same bytes.
    pub copy: u64,
}

impl BodyRef {
    /// The whole reference in one line, for a store to keep: hash, length and copy.
    pub fn to_record(&self) -> String {
        format!("{} {} {:016x}", self.hash, self.length, self.copy)
    }

    /// The reference that [`to_record`](Self::to_record) wrote.
    pub fn from_record(record: &str) -> Result<Self, InvalidBodyRef> {
        let mut words = record.split(' ');
        let (Some(hash), Some(length), Some(copy), None) = (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(InvalidBodyRef);
        };
        Ok(BodyRef {
            hash: hash.parse()?,
            length: length.parse().map_err(|_| InvalidBodyRef)?,
            copy: u64::from_str_radix(copy, 16).map_err(|_| InvalidBodyRef)?,
        })
    }
}

/// The SHA-256 of a body. Written `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BodyHash(pub [u8; 32]);

/// What a written hash begins with: another algorithm would have another name.
const ALGORITHM: &str = "sha256:";

impl BodyHash {
    /// The hash of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        BodyHash(Sha256::digest(bytes).into())
    }

    /// Its 64 hexadecimal digits.
    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Display for BodyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{ALGORITHM}{}", self.hex())
    }
}

impl fmt::Debug for BodyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for BodyHash {
    type Err = InvalidBodyRef;

    fn from_str(text: &str) -> Result<Self, InvalidBodyRef> {
        let hex = text.strip_prefix(ALGORITHM).ok_or(InvalidBodyRef)?;
        if hex.len() != 64 {
            return Err(InvalidBodyRef);
        }
        let mut hash = [0; 32];
        for (byte, digits) in hash.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
            *byte = digit(digits[0])? << 4 | digit(digits[1])?;
        }
        Ok(BodyHash(hash))
    }
}

/// Lower case only: one content has one name.
fn digit(digit: u8) -> Result<u8, InvalidBodyRef> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(InvalidBodyRef),
    }
}

/// The text is not a body reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be sha256: and 64 hexadecimal digits in lower case")]
pub struct InvalidBodyRef;

/// Hashes a body that comes in pieces.
#[derive(Debug, Clone, Default)]
pub struct BodyHasher {
    hash: Sha256,
    length: u64,
}

impl BodyHasher {
    /// Adds the next piece.
    pub fn add(&mut self, piece: &[u8]) {
        self.hash.update(piece);
        self.length += piece.len() as u64;
    }

    /// How many bytes came so far.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The hash of all that came.
    pub fn finish(self) -> BodyHash {
        BodyHash(self.hash.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABC: &str = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn a_hash_is_written_with_its_algorithm_and_reads_back() {
        let hash = BodyHash::of(b"abc");
        assert_eq!(hash.to_string(), ABC);
        assert_eq!(ABC.parse(), Ok(hash));
        for wrong in [&ABC[7..], &ABC[..70], &format!("{ABC}0"), &ABC.to_uppercase(), &ABC.replace('f', "F"), ""] {
            assert_eq!(wrong.parse::<BodyHash>(), Err(InvalidBodyRef), "{wrong}");
        }
        assert_eq!("sha256:é".repeat(8).parse::<BodyHash>(), Err(InvalidBodyRef));
    }

    #[test]
    fn pieces_make_the_hash_of_the_whole() {
        let mut hasher = BodyHasher::default();
        for piece in ["a", "", "bc"] {
            hasher.add(piece.as_bytes());
        }
        assert_eq!(hasher.length(), 3);
        assert_eq!(hasher.finish(), BodyHash::of(b"abc"));
    }

    /// Records are kept in stores: they must be readable from release to release.
    #[test]
    fn a_record_has_the_hash_the_length_and_the_copy() {
        let stored = BodyRef { hash: BodyHash::of(b"abc"), length: 3, copy: 0xFFFF_0000_0000_0001 };
        let record = format!("{ABC} 3 ffff000000000001");
        assert_eq!(stored.to_record(), record);
        assert_eq!(BodyRef::from_record(&record), Ok(stored));
        for wrong in ["", ABC, &format!("{record} 1"), &format!("{ABC} x 1"), &format!("{ABC} 1 x")] {
            assert_eq!(BodyRef::from_record(wrong), Err(InvalidBodyRef), "{wrong}");
        }
    }

    #[test]
    fn a_body_knows_its_length_wherever_it_is() {
        let stored = BodyRef { hash: BodyHash::of(b"abc"), length: 3, copy: 1 };
        for body in [Body::from("abc"), Body::from(stored)] {
            assert_eq!(body.length(), 3);
            assert_ne!(body.inline().is_some(), body.stored().is_some());
        }
        assert_eq!(Body::default().length(), 0);
    }
}

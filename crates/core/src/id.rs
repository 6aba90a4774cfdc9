//! Identifiers: one type each, so that they cannot be confused.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use uuid::fmt::Hyphenated;
use uuid::{Builder, Uuid, Variant};

use crate::time::Timestamp;

/// Why a text is not a valid identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidId {
    /// Empty text.
    #[error("must not be empty")]
    Empty,
    /// More characters than the limit.
    #[error("must be at most {limit} characters, got {got}")]
    TooLong {
        /// The most characters allowed.
        limit: usize,
        /// The characters given.
        got: usize,
    },
    /// A character outside of the allowed set.
    #[error("must be {allowed}, got {got:?}")]
    Character {
        /// What is allowed, in words.
        allowed: &'static str,
        /// The first character that is not.
        got: char,
    },
    /// Not the text form of a task id.
    #[error("must be a task id (a version 7 UUID)")]
    NotATaskId,
    /// Not the text form of a UUID.
    #[error("must be a UUID, such as 7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2")]
    NotAUuid,
}

/// What a kind of identifier may contain.
struct Rule {
    limit: usize,
    allowed: &'static str,
    permits: fn(char) -> bool,
}

impl Rule {
    fn check(&self, text: &str) -> Result<(), InvalidId> {
        if text.is_empty() {
            return Err(InvalidId::Empty);
        }
        if let Some(got) = text.chars().find(|&c| !(self.permits)(c)) {
            return Err(InvalidId::Character { allowed: self.allowed, got });
        }
        let got = text.chars().count();
        if got > self.limit {
            return Err(InvalidId::TooLong { limit: self.limit, got });
        }
        Ok(())
    }
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $rule:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            const RULE: Rule = $rule;
            /// The most characters that it may have.
            pub const MAX_CHARS: usize = Self::RULE.limit;

            /// Checks `text` and makes it an identifier.
            pub fn try_new(text: impl AsRef<str>) -> Result<Self, InvalidId> {
                Self::RULE.check(text.as_ref())?;
                Ok($name(Arc::from(text.as_ref())))
            }

            /// The identifier as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

const SLUG: &str = "letters, digits, '.', '_', '-' and ':'";

fn is_slug(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':')
}

const VISIBLE: &str = "visible ASCII characters";

fn is_visible(c: char) -> bool {
    c.is_ascii_graphic()
}

text_id!(
    /// The tenant that a task, a policy or a record belongs to.
    TenantId,
    Rule { limit: 64, allowed: SLUG, permits: is_slug }
);
text_id!(
    /// The name of a policy.
    PolicyId,
    Rule { limit: 100, allowed: SLUG, permits: is_slug }
);
text_id!(
    /// The dependency that a task calls: a name given by the caller, or else the target's origin.
    Dependency,
    Rule { limit: 300, allowed: VISIBLE, permits: is_visible }
);
text_id!(
    /// The key that every attempt of a task carries: 1 to 64 visible characters.
    IdempotencyKey,
    Rule { limit: 64, allowed: VISIBLE, permits: is_visible }
);
text_id!(
    /// What the caller calls the work that a task belongs to, in its own logs: 1 to 128 visible characters.
    CorrelationId,
    Rule { limit: 128, allowed: VISIBLE, permits: is_visible }
);
text_id!(
    /// The name of an operation that idempotency records are kept for, such as `create-payment`.
    OperationName,
    Rule { limit: 100, allowed: SLUG, permits: is_slug }
);
text_id!(
    /// The name of a consumer of events.
    Consumer,
    Rule { limit: 100, allowed: SLUG, permits: is_slug }
);
text_id!(
    /// What identifies a record within its operation: an idempotency key, or the id of an event, which may be longer.
    RecordName,
    Rule { limit: 200, allowed: VISIBLE, permits: is_visible }
);

impl From<&IdempotencyKey> for RecordName {
    fn from(key: &IdempotencyKey) -> Self {
        RecordName(Arc::clone(&key.0))
    }
}

impl TenantId {
    /// The only tenant, until there are keys to tell tenants apart.
    pub fn default_tenant() -> Self {
        TenantId(Arc::from("default"))
    }
}

impl PolicyId {
    /// The policy of a task that names none.
    pub fn default_policy() -> Self {
        PolicyId(Arc::from("default"))
    }
}

impl IdempotencyKey {
    /// The first half of the key's SHA-256, in hexadecimal: what a log shows that must not show keys.
    pub fn hashed(&self) -> String {
        let hash = Sha256::digest(self.as_str());
        hash.iter().take(16).fold(String::from("sha256:"), |text, byte| text + &format!("{byte:02x}"))
    }
}

/// One tenant's work for one dependency: the unit of queueing, fairness and protection.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane {
    /// The tenant.
    pub tenant: TenantId,
    /// The dependency that is called.
    pub dependency: Dependency,
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.tenant, self.dependency)
    }
}

/// A task's identifier: a version 7 UUID whose first 63 free bits are a growing sequence (48 bits of milliseconds and
/// a 15-bit counter) and whose last 59 bits are random.
///
/// A store that has one writer may key its rows by the sequence alone, a small integer that grows with time, and keep
/// the random rest only to recognise the id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(u128);

const TAIL_BITS: u32 = 59;
const TAIL_MASK: u64 = (1 << TAIL_BITS) - 1;
const COUNTER_BITS: u32 = 15;

impl TaskId {
    /// The id with this `sequence` (its lowest 63 bits count) and this random `tail` (its lowest 59 bits count).
    pub fn from_parts(sequence: u64, tail: u64) -> Self {
        let millis = (sequence >> COUNTER_BITS) & 0xFFFF_FFFF_FFFF;
        let counter = sequence & 0x7FFF;
        let mut rest = [0; 10];
        // The uppermost bits of both parts become the version and the variant.
        rest[..2].copy_from_slice(&((counter >> 3) as u16).to_be_bytes());
        rest[2..].copy_from_slice(&((counter & 0b111) << TAIL_BITS | tail & TAIL_MASK).to_be_bytes());
        TaskId(Builder::from_unix_timestamp_millis(millis, &rest).into_uuid().as_u128())
    }

    /// The first sequence of the millisecond `at`.
    pub fn first_sequence(at: Timestamp) -> u64 {
        (at.as_millis() & 0xFFFF_FFFF_FFFF) << COUNTER_BITS
    }

    /// The growing part: 63 bits, ordered as the ids are.
    pub fn sequence(self) -> u64 {
        let millis = (self.0 >> 80) as u64;
        let counter = ((self.0 >> 64) as u64 & 0xFFF) << 3 | (self.0 >> 59) as u64 & 0b111;
        millis << COUNTER_BITS | counter
    }

    /// The moment in its first bits: when it was made, or a little later if many were.
    pub fn made_at(self) -> Timestamp {
        Timestamp::from_millis((self.0 >> 80) as u64)
    }

    /// The random part: 59 bits.
    pub fn tail(self) -> u64 {
        self.0 as u64 & TAIL_MASK
    }

    /// The id with these bits, if they are those of a version 7 UUID.
    pub fn from_u128(bits: u128) -> Option<Self> {
        let uuid = Uuid::from_u128(bits);
        (uuid.get_version_num() == 7 && uuid.get_variant() == Variant::RFC4122).then_some(TaskId(bits))
    }

    /// All 128 bits.
    pub fn as_u128(self) -> u128 {
        self.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Uuid::from_u128(self.0), f)
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for TaskId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        // A UUID has other text forms as well, of other lengths; a task id has only this one.
        if text.len() != Hyphenated::LENGTH {
            return Err(InvalidId::NotATaskId);
        }
        let uuid = Uuid::try_parse(text).map_err(|_| InvalidId::NotATaskId)?;
        TaskId::from_u128(uuid.as_u128()).ok_or(InvalidId::NotATaskId)
    }
}

/// A random key in the form of a version 4 UUID, made from 128 random bits.
pub fn make_key(random: u128) -> IdempotencyKey {
    IdempotencyKey(Arc::from(Builder::from_random_bytes(random.to_be_bytes()).into_uuid().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_id_keeps_its_parts_and_is_a_version_7_uuid() {
        let sequence = TaskId::first_sequence(Timestamp::from_millis(1_700_000_000_000)) | 0x7ABC;
        let id = TaskId::from_parts(sequence, 0x0123_4567_89AB_CDEF);
        assert_eq!(id.sequence(), sequence);
        assert_eq!(id.tail(), 0x0123_4567_89AB_CDEF);
        let text = id.to_string();
        assert_eq!(text, "018bcfe5-6800-7f57-a123-456789abcdef");
        assert_eq!(text.parse::<TaskId>().unwrap(), id);
        assert_eq!(text.to_uppercase().parse::<TaskId>().unwrap(), id);
    }

    #[test]
    fn task_ids_sort_as_their_sequences_do() {
        let ids: Vec<TaskId> = [(1, 9), (2, 3), (7, 1), (8, 0), (1 << 15, 0), (u64::MAX >> 1, 0)]
            .map(|(sequence, tail)| TaskId::from_parts(sequence, tail))
            .into();
        assert!(ids.is_sorted());
    }

    #[test]
    fn other_texts_are_no_task_ids() {
        for text in ["", "abc", "018bcfe5-6800-4abc-a123-456789abcdef", "018bcfe5-6800-7f57-c123-456789abcdef"] {
            assert_eq!(text.parse::<TaskId>(), Err(InvalidId::NotATaskId), "{text:?}");
        }
        assert!("018bcfe5x6800-7f57-a123-456789abcdef".parse::<TaskId>().is_err());
    }

    #[test]
    fn a_made_key_is_a_version_4_uuid() {
        assert_eq!(make_key(u128::MAX).as_str(), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(make_key(0).as_str(), "00000000-0000-4000-8000-000000000000");
    }

    #[test]
    fn an_idempotency_key_is_1_to_64_visible_characters() {
        assert!(IdempotencyKey::try_new("k").is_ok());
        assert_eq!(IdempotencyKey::try_new("abc").unwrap().hashed(), "sha256:ba7816bf8f01cfea414140de5dae2223");
        assert!(IdempotencyKey::try_new("k".repeat(64)).is_ok());
        assert_eq!(IdempotencyKey::try_new("k".repeat(65)), Err(InvalidId::TooLong { limit: 64, got: 65 }));
        assert_eq!(IdempotencyKey::try_new(""), Err(InvalidId::Empty));
        assert_eq!(IdempotencyKey::try_new("a b"), Err(InvalidId::Character { allowed: VISIBLE, got: ' ' }));
    }

    #[test]
    fn names_of_tenants_and_policies_are_slugs() {
        for text in ["a", "Team-1", "eu.payments_v2:live", &"t".repeat(64)] {
            assert_eq!(TenantId::try_new(text).unwrap().as_str(), text);
            assert_eq!(PolicyId::try_new(text).unwrap().to_string(), text);
        }
        for got in ['/', ' ', '\n', '\0', '%', 'é', '名'] {
            let text = format!("a{got}b");
            assert_eq!(TenantId::try_new(&text), Err(InvalidId::Character { allowed: SLUG, got }), "{text:?}");
            assert_eq!(PolicyId::try_new(&text), Err(InvalidId::Character { allowed: SLUG, got }), "{text:?}");
        }
        assert_eq!(TenantId::try_new("t".repeat(65)), Err(InvalidId::TooLong { limit: 64, got: 65 }));
        assert_eq!(PolicyId::try_new("p".repeat(101)), Err(InvalidId::TooLong { limit: 100, got: 101 }));
        assert_eq!(TenantId::try_new(""), Err(InvalidId::Empty));
    }

    #[test]
    fn the_default_tenant_and_the_default_policy_have_valid_names() {
        assert_eq!(TenantId::try_new("default"), Ok(TenantId::default_tenant()));
        assert_eq!(PolicyId::try_new("default"), Ok(PolicyId::default_policy()));
    }

    #[test]
    fn an_origin_is_a_dependency() {
        for text in ["https://api.example.com", "http://[::1]:8080", "billing"] {
            assert_eq!(Dependency::try_new(text).unwrap().as_str(), text);
        }
        assert!(Dependency::try_new("d".repeat(300)).is_ok());
        assert_eq!(Dependency::try_new("d".repeat(301)), Err(InvalidId::TooLong { limit: 300, got: 301 }));
        assert!(Dependency::try_new("https://exämple.com").is_err());
    }

    #[test]
    fn a_lane_is_shown_as_tenant_and_dependency() {
        let lane = Lane { tenant: TenantId::default_tenant(), dependency: Dependency::try_new("billing").unwrap() };
        assert_eq!(lane.to_string(), "default/billing");
    }

    #[test]
    fn what_is_wrong_with_an_identifier_is_said_in_words() {
        let cases = [
            (InvalidId::Empty, "must not be empty"),
            (InvalidId::TooLong { limit: 64, got: 65 }, "must be at most 64 characters, got 65"),
            (InvalidId::Character { allowed: VISIBLE, got: ' ' }, "must be visible ASCII characters, got ' '"),
            (InvalidId::NotATaskId, "must be a task id (a version 7 UUID)"),
        ];
        for (invalid, expected) in cases {
            assert_eq!(invalid.to_string(), expected);
        }
    }

    #[test]
    fn parts_beyond_their_bits_do_not_spill_over() {
        let id = TaskId::from_parts(u64::MAX, u64::MAX);
        assert_eq!((id.sequence(), id.tail()), (u64::MAX >> 1, TAIL_MASK));
        assert_eq!(id.to_string(), "ffffffff-ffff-7fff-bfff-ffffffffffff");
        assert_eq!(id.to_string().parse::<TaskId>(), Ok(id));
        assert_eq!(TaskId::from_parts(0, 0).to_string(), "00000000-0000-7000-8000-000000000000");
    }

    #[test]
    fn each_millisecond_has_its_own_sequences() {
        let at = Timestamp::from_millis(1_700_000_000_000);
        let next = TaskId::first_sequence(at.after(std::time::Duration::from_millis(1)));
        assert_eq!(next - TaskId::first_sequence(at), 1 << 15);
        assert_eq!(TaskId::from_parts(TaskId::first_sequence(at), 0).as_u128() >> 80, 1_700_000_000_000);
    }

    #[test]
    fn a_text_of_the_right_length_but_not_in_hex_is_no_task_id() {
        for text in ["é".repeat(18), "+18bcfe5-6800-7f57-a123-456789abcdef".to_owned(), "-".repeat(36)] {
            assert_eq!(text.len(), 36);
            assert_eq!(text.parse::<TaskId>(), Err(InvalidId::NotATaskId), "{text:?}");
        }
    }
}

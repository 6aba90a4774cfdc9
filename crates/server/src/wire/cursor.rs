//! Cursors: where the next page of a list begins, as an opaque text.
//!
//! A cursor holds the key of the last item and nothing secret. Its first letter says which list it belongs to.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use redrive_core::idempotency::Operation;
use redrive_core::{Dependency, PolicyId, TaskId};
use redrive_store::RecordCursor;

/// A position in a list.
pub trait Cursor: Sized {
    /// The letter of the list it belongs to.
    const LIST: u8;

    /// What the cursor holds.
    fn payload(&self) -> String;

    /// From what a cursor holds.
    fn from_payload(payload: &str) -> Option<Self>;

    /// The cursor as text, for the caller to send back.
    fn to_cursor(&self) -> String {
        let payload = self.payload();
        let mut bytes = Vec::with_capacity(payload.len() + 1);
        bytes.push(Self::LIST);
        bytes.extend_from_slice(payload.as_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Reads a cursor that a caller sent; `None` if it is not a cursor of this list.
    fn from_cursor(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (&list, payload) = bytes.split_first()?;
        if list != Self::LIST {
            return None;
        }
        // A number has many spellings (`+7`, `007`), an id two (`A`, `a`). A cursor has the one that was handed out.
        Self::from_payload(std::str::from_utf8(payload).ok()?).filter(|cursor| cursor.to_cursor() == text)
    }
}

impl Cursor for TaskId {
    const LIST: u8 = b't';

    fn payload(&self) -> String {
        self.to_string()
    }

    fn from_payload(payload: &str) -> Option<Self> {
        payload.parse().ok()
    }
}

impl Cursor for PolicyId {
    const LIST: u8 = b'p';

    fn payload(&self) -> String {
        self.to_string()
    }

    fn from_payload(payload: &str) -> Option<Self> {
        PolicyId::try_new(payload).ok()
    }
}

impl Cursor for Dependency {
    const LIST: u8 = b'd';

    fn payload(&self) -> String {
        self.to_string()
    }

    fn from_payload(payload: &str) -> Option<Self> {
        Dependency::try_new(payload).ok()
    }
}

/// The number of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptNumber(pub u32);

impl Cursor for AttemptNumber {
    const LIST: u8 = b'a';

    fn payload(&self) -> String {
        self.0.to_string()
    }

    fn from_payload(payload: &str) -> Option<Self> {
        payload.parse().ok().map(AttemptNumber)
    }
}

/// An operation, or an inbox.
impl Cursor for Operation {
    const LIST: u8 = b'o';

    fn payload(&self) -> String {
        self.to_string()
    }

    fn from_payload(payload: &str) -> Option<Self> {
        payload.parse().ok()
    }
}

impl Cursor for RecordCursor {
    const LIST: u8 = b'r';

    fn payload(&self) -> String {
        self.to_string()
    }

    fn from_payload(payload: &str) -> Option<Self> {
        payload.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_as_what_it_was() {
        let id = TaskId::from_parts(77, 99);
        assert_eq!(TaskId::from_cursor(&id.to_cursor()), Some(id));
        assert_eq!(AttemptNumber::from_cursor(&AttemptNumber(7).to_cursor()), Some(AttemptNumber(7)));
        let dependency = Dependency::try_new("https://a.test:8443").unwrap();
        assert_eq!(Dependency::from_cursor(&dependency.to_cursor()), Some(dependency));
        let policy = PolicyId::try_new("a:b").unwrap();
        assert_eq!(PolicyId::from_cursor(&policy.to_cursor()), Some(policy));
        let operation: Operation = "inbox/billing".parse().unwrap();
        assert_eq!(Operation::from_cursor(&operation.to_cursor()), Some(operation.clone()));
        let place = RecordCursor::new(operation, "a/b");
        assert_eq!(RecordCursor::from_cursor(&place.to_cursor()), Some(place));
    }

    #[test]
    fn another_spelling_of_the_same_place_is_refused() {
        for payload in ["a+7", "a007"] {
            assert_eq!(AttemptNumber::from_cursor(&URL_SAFE_NO_PAD.encode(payload)), None, "{payload}");
        }
        let upper = format!("t{}", TaskId::from_parts(77, 99).to_string().to_uppercase());
        assert_eq!(TaskId::from_cursor(&URL_SAFE_NO_PAD.encode(upper)), None);
    }

    #[test]
    fn another_lists_cursor_and_nonsense_are_refused() {
        assert_eq!(TaskId::from_cursor(&AttemptNumber(7).to_cursor()), None);
        for text in ["", "!", "dA", "AAAA", "dGhpcyBpcyBubyBpZA"] {
            assert_eq!(TaskId::from_cursor(text), None, "{text}");
        }
    }
}

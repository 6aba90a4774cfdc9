//! The id of an event, which a reader resumes after.

use std::fmt;
use std::str::FromStr;

/// The id of an event: `9f3c1e77a04b52d8-1042`. Numbers begin at 1 whenever the process starts; its start tells whose
/// number it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventId {
    /// A random number of this life of the process.
    pub start: u64,
    /// The event's number in it; 0 is before the first event.
    pub number: u64,
}

/// The text is not the id of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be the id of an event, such as 9f3c1e77a04b52d8-1042")]
pub struct NotAnEventId;

/// The digits of the start.
const DIGITS: usize = 16;

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{}", self.start, self.number)
    }
}

impl FromStr for EventId {
    type Err = NotAnEventId;

    fn from_str(text: &str) -> Result<Self, NotAnEventId> {
        let (start, number) = text.split_once('-').ok_or(NotAnEventId)?;
        let is_hex = start.len() == DIGITS && start.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        // Only the text that is written, so that no id has two forms.
        let is_decimal =
            number.bytes().all(|byte| byte.is_ascii_digit()) && (number == "0" || !number.starts_with('0'));
        if !is_hex || !is_decimal {
            return Err(NotAnEventId);
        }
        let start = u64::from_str_radix(start, 16).map_err(|_| NotAnEventId)?;
        Ok(EventId { start, number: number.parse().map_err(|_| NotAnEventId)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_is_written_and_in_no_other_form() {
        for id in [
            EventId { start: 0, number: 0 },
            EventId { start: u64::MAX, number: u64::MAX },
            EventId { start: 0x9f3c, number: 7 },
        ] {
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        for text in [
            "",
            "-",
            "7",
            "0000000000000000-",
            "0000000000000000-01",
            "0000000000000000--1",
            "0000000000000000-+1",
            "000000000000000-1",
            "000000000000000A-1",
            "+00000000000000a-1",
            "0000000000000000-18446744073709551616",
            "0000000000000000-1 ",
        ] {
            assert_eq!(text.parse::<EventId>(), Err(NotAnEventId), "{text:?}");
        }
    }
}

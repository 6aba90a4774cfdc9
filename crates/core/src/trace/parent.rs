//! `traceparent`: `VERSION-TRACE_ID-PARENT_ID-FLAGS` in lower-case hexadecimal digits.

use std::fmt;
use std::str::FromStr;

use super::id::{SpanId, TraceId};

/// The trace and the span that something belongs to, as `traceparent` names them. Written in version 00.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceParent {
    /// The trace.
    pub trace: TraceId,
    /// The span that is the parent of what follows.
    pub span: SpanId,
    /// What is said about the trace.
    pub flags: Flags,
}

/// The flags of a `traceparent`. Those that the rules do not define are not kept, and are written as zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags {
    /// The sender records the trace.
    pub is_sampled: bool,
    /// The last 7 bytes of the trace's id are random.
    pub is_random: bool,
}

/// The text is no valid `traceparent`. It is to be ignored, as if there were none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not a valid traceparent")]
pub struct InvalidTraceParent;

/// The length of version 00, and of the part of later versions that is known.
const LENGTH: usize = 55;
const SAMPLED: u8 = 0b01;
const RANDOM: u8 = 0b10;

impl FromStr for TraceParent {
    type Err = InvalidTraceParent;

    /// Parses version 00 exactly, and the first four fields of later versions.
    fn from_str(text: &str) -> Result<Self, InvalidTraceParent> {
        let bytes = text.as_bytes();
        let (known, rest) = bytes.split_at_checked(LENGTH).ok_or(InvalidTraceParent)?;
        let version = hex(known, 0, 2)?;
        let is_known_version = version == 0;
        let has_dashes = [2, 35, 52].iter().all(|at| known.get(*at) == Some(&b'-'));
        let ends_right = if is_known_version { rest.is_empty() } else { matches!(rest, [] | [b'-', ..]) };
        if version == 0xff || !has_dashes || !ends_right {
            return Err(InvalidTraceParent);
        }
        let trace = TraceId::from_u128(hex(known, 3, 32)?).ok_or(InvalidTraceParent)?;
        let span = u64::try_from(hex(known, 36, 16)?).ok().and_then(SpanId::from_u64).ok_or(InvalidTraceParent)?;
        let flags = hex(known, 53, 2)? as u8;
        // Of a later version only the flag that all versions have is understood.
        let is_random = is_known_version && flags & RANDOM != 0;
        Ok(TraceParent { trace, span, flags: Flags { is_sampled: flags & SAMPLED != 0, is_random } })
    }
}

/// The number in `length` lower-case hexadecimal digits at `start`.
fn hex(bytes: &[u8], start: usize, length: usize) -> Result<u128, InvalidTraceParent> {
    let digits = bytes.get(start..start + length).ok_or(InvalidTraceParent)?;
    digits.iter().try_fold(0, |number: u128, digit| {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return Err(InvalidTraceParent),
        };
        Ok(number << 4 | u128::from(digit))
    })
}

impl TraceParent {
    /// Its text, in version 00. Every attempt is sent with one, so it is made without the formatter.
    pub fn to_ascii(self) -> [u8; LENGTH] {
        let Flags { is_sampled, is_random } = self.flags;
        let flags = (u8::from(is_sampled) * SAMPLED) | (u8::from(is_random) * RANDOM);
        let mut text = [b'-'; LENGTH];
        put_hex(&mut text[..2], 0);
        put_hex(&mut text[3..19], (self.trace.as_u128() >> 64) as u64);
        put_hex(&mut text[19..35], self.trace.as_u128() as u64);
        put_hex(&mut text[36..52], self.span.as_u64());
        put_hex(&mut text[53..], u64::from(flags));
        text
    }
}

/// Fills `digits` with the last digits of `number`.
fn put_hex(digits: &mut [u8], mut number: u64) {
    for digit in digits.iter_mut().rev() {
        *digit = b"0123456789abcdef"[(number % 16) as usize];
        number /= 16;
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.to_ascii()).map_err(|_| fmt::Error)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    /// The rules of W3C Trace Context, Level 1 and 2: what is read of each text, written again as version 00.
    #[test]
    fn a_traceparent_is_read_by_the_rules_of_the_w3c() {
        let zeros = "0".repeat(32);
        let cases = [
            // Version 00.
            (format!("00-{TRACE}-{SPAN}-01"), Some("01")),
            (format!("00-{TRACE}-{SPAN}-00"), Some("00")),
            (format!("00-{TRACE}-{SPAN}-02"), Some("02")),
            (format!("00-{TRACE}-{SPAN}-03"), Some("03")),
            // Flags that are not defined are not passed on.
            (format!("00-{TRACE}-{SPAN}-ff"), Some("03")),
            (format!("00-{TRACE}-{SPAN}-08"), Some("00")),
            // Version 00 has exactly four fields.
            (format!("00-{TRACE}-{SPAN}-01-"), None),
            (format!("00-{TRACE}-{SPAN}-01-what-the-future-brings"), None),
            (format!("00-{TRACE}-{SPAN}-01."), None),
            (format!("00-{TRACE}-{SPAN}-1"), None),
            (format!("00-{TRACE}-{SPAN}-001"), None),
            (format!("00-{TRACE}-{SPAN}-"), None),
            (format!("00-{TRACE}-{SPAN}"), None),
            (format!("00-{TRACE}"), None),
            ("00".to_owned(), None),
            (String::new(), None),
            // Later versions are read by their first four fields.
            (format!("01-{TRACE}-{SPAN}-01"), Some("01")),
            (format!("cc-{TRACE}-{SPAN}-01"), Some("01")),
            (format!("cc-{TRACE}-{SPAN}-00"), Some("00")),
            (format!("cc-{TRACE}-{SPAN}-03"), Some("01")),
            (format!("cc-{TRACE}-{SPAN}-01-what-the-future-brings"), Some("01")),
            (format!("cc-{TRACE}-{SPAN}-01-"), Some("01")),
            (format!("fe-{TRACE}-{SPAN}-01"), Some("01")),
            (format!("cc-{TRACE}-{SPAN}-01.what-the-future-brings"), None),
            (format!("cc-{TRACE}-{SPAN}-012"), None),
            (format!("cc-{TRACE}-{SPAN}"), None),
            // There is no version ff.
            (format!("ff-{TRACE}-{SPAN}-01"), None),
            (format!("ff-{TRACE}-{SPAN}-01-x"), None),
            // Ids of zeros only are invalid.
            (format!("00-{zeros}-{SPAN}-01"), None),
            (format!("00-{TRACE}-{}-01", &zeros[..16]), None),
            (format!("cc-{zeros}-{SPAN}-01"), None),
            // Upper case is invalid, everywhere.
            (format!("00-{}-{SPAN}-01", TRACE.to_uppercase()), None),
            (format!("00-{TRACE}-{}-01", SPAN.to_uppercase()), None),
            (format!("00-{TRACE}-{SPAN}-0A"), None),
            (format!("CC-{TRACE}-{SPAN}-01"), None),
            // What is no hexadecimal digit, or no dash.
            (format!("0g-{TRACE}-{SPAN}-01"), None),
            (format!("00-{}g-{SPAN}-01", &TRACE[1..]), None),
            (format!("00-{TRACE}-{}.-01", &SPAN[1..]), None),
            (format!("00-{TRACE}-{SPAN}-0x"), None),
            (format!("00-{TRACE}-{SPAN}-+1"), None),
            (format!("00_{TRACE}-{SPAN}-01"), None),
            (format!("00-{TRACE}_{SPAN}-01"), None),
            (format!("00-{TRACE}-{SPAN}_01"), None),
            (format!("00-{TRACE}{SPAN}--01"), None),
            (format!("0-{TRACE}-{SPAN}-01"), None),
            (format!("000-{TRACE}-{SPAN}-01"), None),
            (format!("00-{}-{SPAN}-01", &TRACE[1..]), None),
            (format!("00-{TRACE}0-{SPAN}-01"), None),
            (format!("00-{TRACE}-{}-01", &SPAN[1..]), None),
            (format!("00-{TRACE}-{SPAN}0-01"), None),
            (format!(" 00-{TRACE}-{SPAN}-01"), None),
            (format!("00-{}é-{SPAN}-01", &TRACE[2..]), None),
            (format!("00-{TRACE}-{SPAN}-01,00-{TRACE}-{SPAN}-01"), None),
        ];
        for (text, flags) in cases {
            let expected = flags.map(|flags| format!("00-{TRACE}-{SPAN}-{flags}"));
            assert_eq!(text.parse::<TraceParent>().ok().map(|read| read.to_string()), expected, "{text:?}");
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for flags in [(false, false), (true, false), (false, true), (true, true)] {
            let flags = Flags { is_sampled: flags.0, is_random: flags.1 };
            let parent =
                TraceParent { trace: TraceId::from_u128(1).unwrap(), span: SpanId::from_u64(u64::MAX).unwrap(), flags };
            assert_eq!(parent.to_string().parse(), Ok(parent));
        }
    }
}

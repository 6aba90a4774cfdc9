//! JSON.
//!
//! Objects and lists are read one level at a time into slices of the text that they were borrowed from: where a slice
//! begins in the text is where the value stands.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Number;
use serde_json::value::RawValue;

use super::size_limit::SizeLimit;
use super::{Entry, Node, SyntaxError, Value};
use crate::files::source::Source;

pub(super) fn read(source: &Source) -> Result<Node, SyntaxError> {
    let text = source.text();
    if text.trim().is_empty() {
        return Err((0..0, "this is not JSON: there is nothing in it".into()));
    }
    // The whole text first: whatever is no JSON is found here, with its line and column.
    serde_json::from_str::<IgnoredAny>(text).map_err(|error| {
        let at = source.line_start(error.line()) + error.column().saturating_sub(1);
        (at..at, format!("this is not JSON: {}", without_position(&error.to_string())))
    })?;
    Reader { text, room: SizeLimit::default() }.node(text.trim_matches([' ', '\t', '\r', '\n']), 0)
}

struct Reader<'a> {
    text: &'a str,
    room: SizeLimit,
}

impl<'a> Reader<'a> {
    fn node(&mut self, raw: &'a str, depth: usize) -> Result<Node, SyntaxError> {
        let span = self.span(raw);
        self.room.take(1, depth, &span)?;
        let wrong = |error: serde_json::Error| -> SyntaxError {
            (self.span(raw), format!("this cannot be used: {}", without_position(&error.to_string())))
        };
        let value = match raw.as_bytes().first() {
            Some(b'{') => {
                let Object(entries) = serde_json::from_str(raw).map_err(wrong)?;
                Value::Table(self.table(entries, depth)?)
            }
            Some(b'[') => {
                let items: Vec<&'a RawValue> = serde_json::from_str(raw).map_err(wrong)?;
                Value::List(items.iter().map(|item| self.node(item.get(), depth + 1)).collect::<Result<_, _>>()?)
            }
            Some(b'"') => Value::Text(serde_json::from_str(raw).map_err(wrong)?),
            Some(b't' | b'f') => Value::Bool(serde_json::from_str(raw).map_err(wrong)?),
            Some(b'n') => Value::Null,
            _ => Value::Number(serde_json::from_str::<Number>(raw).map_err(wrong)?),
        };
        Ok(Node { span, value })
    }

    fn table(&mut self, raw: Vec<(&'a RawValue, &'a RawValue)>, depth: usize) -> Result<Vec<Entry>, SyntaxError> {
        let mut entries = Vec::with_capacity(raw.len());
        let mut names = HashSet::with_capacity(raw.len());
        for (raw_key, raw_value) in raw {
            let key_span = self.span(raw_key.get());
            let key: String = serde_json::from_str(raw_key.get())
                .map_err(|error| (key_span.clone(), format!("this cannot be used: {error}")))?;
            if !names.insert(Cow::<str>::Owned(key.clone())) {
                return Err((key_span, format!("the key {key:?} is there twice")));
            }
            entries.push(Entry { key, key_span, node: self.node(raw_value.get(), depth + 1)? });
        }
        Ok(entries)
    }

    /// Where a slice of the text stands in it.
    fn span(&self, slice: &str) -> Range<usize> {
        let start = slice.as_ptr().addr() - self.text.as_ptr().addr();
        start..start + slice.len()
    }
}

/// An object as the list of its keys and values, both as they are written.
struct Object<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Vec<(&'de RawValue, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(entries)
            }
        }
        deserializer.deserialize_map(Entries).map(Object)
    }
}

/// serde_json appends where in the text it was, which is said better elsewhere.
fn without_position(message: &str) -> &str {
    message.rfind(" at line ").map_or(message, |end| &message[..end])
}

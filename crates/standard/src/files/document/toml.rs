//! TOML.

use std::ops::Range;

use ::toml::Spanned;
use ::toml::de::{DeFloat, DeInteger, DeTable, DeValue};
use serde_json::Number;

use super::size_limit::SizeLimit;
use super::{Entry, Node, SyntaxError, Value};

/// How many syntax errors of a file are told: each may be the consequence of the one before.
const MAX_ERRORS: usize = 20;

pub(super) fn read(text: &str) -> Result<Node, Vec<SyntaxError>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        let mut reader = Reader { room: SizeLimit::default() };
        return reader.table(table.get_ref(), 0..0, 0).map_err(|wrong| vec![wrong]);
    }
    let errors = errors.into_iter().take(MAX_ERRORS).map(|error| {
        let span = error.span().unwrap_or_default();
        // The first line says it; what follows, if anything, is for whoever writes parsers.
        let message = error.message().lines().next().unwrap_or_default().to_owned();
        (span, format!("this is not TOML: {message}"))
    });
    Err(errors.collect())
}

struct Reader {
    room: SizeLimit,
}

impl Reader {
    fn table(&mut self, table: &DeTable<'_>, span: Range<usize>, depth: usize) -> Result<Node, SyntaxError> {
        let mut entries = Vec::with_capacity(table.len());
        for (key, value) in table {
            let node = self.node(value, depth + 1)?;
            entries.push(Entry { key: key.get_ref().to_string(), key_span: key.span(), node });
        }
        // The parser sorts by name; people read from top to bottom.
        entries.sort_by_key(|entry| entry.key_span.start);
        Ok(Node { span, value: Value::Table(entries) })
    }

    fn node(&mut self, value: &Spanned<DeValue<'_>>, depth: usize) -> Result<Node, SyntaxError> {
        let span = value.span();
        self.room.take(1, depth, &span)?;
        let value = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Boolean(value) => Value::Bool(*value),
            DeValue::Datetime(moment) => Value::Text(moment.to_string()),
            DeValue::Integer(number) => Value::Number(integer(number).ok_or_else(|| too_large(&span))?),
            DeValue::Float(number) => Value::Number(float(number).ok_or_else(|| too_large(&span))?),
            DeValue::Array(items) => {
                Value::List(items.iter().map(|item| self.node(item, depth + 1)).collect::<Result<_, _>>()?)
            }
            DeValue::Table(table) => return self.table(table, span, depth),
        };
        Ok(Node { span, value })
    }
}

fn integer(number: &DeInteger<'_>) -> Option<Number> {
    let whole = i128::from_str_radix(number.as_str(), number.radix()).ok()?;
    i64::try_from(whole).map(Number::from).or_else(|_| u64::try_from(whole).map(Number::from)).ok()
}

fn float(number: &DeFloat<'_>) -> Option<Number> {
    number.as_str().parse().ok().and_then(Number::from_f64)
}

fn too_large(span: &Range<usize>) -> SyntaxError {
    (span.clone(), "this number cannot be used: it is too large or not finite".into())
}

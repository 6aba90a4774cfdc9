//! The name of a table, as SQL reads names.

use std::fmt;
use std::str::FromStr;

/// The most bytes of a name in PostgreSQL; it would cut off the rest.
const LONGEST: usize = 63;

/// A table, with its schema if one was given. What was not in double quotes is in small letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TableName {
    schema: Option<String>,
    name: String,
}

impl TableName {
    /// A name in the same schema that begins like the table's.
    pub(super) fn beside(&self, ending: &str) -> TableName {
        TableName { schema: self.schema.clone(), name: format!("{}{ending}", self.name) }
    }

    /// The schema, if one was given, in quotes where it needs them.
    pub(super) fn schema(&self) -> Option<String> {
        self.schema.as_deref().map(quoted)
    }

    /// The name without the schema, in quotes where it needs them.
    pub(super) fn last(&self) -> String {
        quoted(&self.name)
    }
}

impl FromStr for TableName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, rest) = part(text)?;
        let Some(rest) = rest else { return Ok(TableName { schema: None, name: first }) };
        match part(rest)? {
            (name, None) => Ok(TableName { schema: Some(first), name }),
            _ => Err(wanted()),
        }
    }
}

/// In quotes where that is needed.
impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(schema) = &self.schema {
            write!(f, "{}.", quoted(schema))?;
        }
        f.write_str(&quoted(&self.name))
    }
}

/// The first name in `text`, and what follows the dot behind it.
fn part(text: &str) -> Result<(String, Option<&str>), String> {
    let (name, rest) = match text.strip_prefix('"') {
        Some(inside) => until_quote(inside)?,
        None => {
            let end = text.find('.').unwrap_or(text.len());
            let (name, rest) = text.split_at(end);
            if !name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$')) {
                return Err(wanted());
            }
            (name.to_ascii_lowercase(), rest)
        }
    };
    if name.is_empty() || name.len() > LONGEST || name.contains('\0') {
        return Err(wanted());
    }
    match rest.strip_prefix('.') {
        Some(rest) => Ok((name, Some(rest))),
        None if rest.is_empty() => Ok((name, None)),
        None => Err(wanted()),
    }
}

/// Up to the quote that closes the name; two quotes stand for one.
fn until_quote(inside: &str) -> Result<(String, &str), String> {
    let (mut name, mut rest) = (String::new(), inside);
    loop {
        let (before, behind) = rest.split_once('"').ok_or_else(wanted)?;
        name += before;
        match behind.strip_prefix('"') {
            Some(more) => {
                name.push('"');
                rest = more;
            }
            None => return Ok((name, behind)),
        }
    }
}

fn quoted(name: &str) -> String {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && !name.starts_with(|c: char| c.is_ascii_digit());
    if is_plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

fn wanted() -> String {
    format!("must be a table such as app.outbox or \"App\".\"Outbox\", each name of 1 to {LONGEST} bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_sql_reads_them() {
        for (given, shown) in [
            ("outbox", "outbox"),
            ("App.Outbox_2", "app.outbox_2"),
            ("\"App\".\"Out.Box\"", "\"App\".\"Out.Box\""),
            ("\"a\"\"b\".c", "\"a\"\"b\".c"),
            ("\"app\".\"outbox\"", "app.outbox"),
            ("1a", "\"1a\""),
        ] {
            let name: TableName = given.parse().unwrap();
            assert_eq!(name.to_string(), shown);
            assert_eq!(shown.parse(), Ok(name), "what is shown can be given");
        }
        let long = "x".repeat(64);
        for wrong in ["", ".", "a.", ".a", "a.b.c", "a b", "a;b", "a-b", "\"a", "\"a\"b", "\"\"", "a.\"\0\"", &long] {
            assert!(wrong.parse::<TableName>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_name_beside_it_is_in_the_same_schema() {
        let name: TableName = "\"App\".outbox".parse().unwrap();
        assert_eq!(name.beside("_notify").to_string(), "\"App\".outbox_notify");
        assert_eq!(name.beside("_Notify").last(), "\"outbox_Notify\"");
    }
}

//! One tree for all languages, with a position for every key and value.
//!
//! | module | its job |
//! | --- | --- |
//! | `language` | which language a file is in |
//! | `toml`, `json`, `yaml` | from text to a tree, or to problems in words |
//! | `size_limit` | how deep and how large a tree may be |
//! | `path` | from a path to its bytes in the text |
//!
//! Not here: what the keys mean.

mod json;
mod language;
mod path;
mod size_limit;
mod toml;
mod yaml;

pub use language::Language;
pub use path::Step;
pub use size_limit::{MAX_DEPTH, MAX_TEXT, MAX_VALUES};

use std::ops::Range;
use std::sync::Arc;

use serde_json::{Map, Number};

use crate::files::problem::Problem;
use crate::files::source::Source;

/// A value and the bytes that it is written with.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The bytes; of a TOML table, those of its header.
    pub span: Range<usize>,
    /// The value.
    pub value: Value,
}

/// A value of any of the languages.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// No value.
    Null,
    /// True or false.
    Bool(bool),
    /// A number that JSON can express.
    Number(Number),
    /// Text; TOML's dates are text, too.
    Text(String),
    /// Values one after the other.
    List(Vec<Node>),
    /// Values by name, in the order of the file; no name twice.
    Table(Vec<Entry>),
}

/// A value with its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The name.
    pub key: String,
    /// The bytes of the name.
    pub key_span: Range<usize>,
    /// The value.
    pub node: Node,
}

/// A syntax error: the bytes and what is wrong with them.
type SyntaxError = (Range<usize>, String);

/// Reads a file in the language of its name, or else of its content. The document of an empty file is an empty table.
pub fn read(source: &Arc<Source>) -> Result<Node, Vec<Problem>> {
    let text = source.text();
    let language = Language::of(source.name(), text);
    let node = match language {
        Language::Toml => toml::read(text),
        Language::Json => json::read(source).map_err(|wrong| vec![wrong]),
        Language::Yaml => yaml::read(text).map_err(|wrong| vec![wrong]),
    };
    node.map_err(|wrong| {
        wrong.into_iter().map(|(span, wrong)| Problem::new(source.location(Some(span)), wrong)).collect()
    })
}

impl Node {
    /// The value as JSON.
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Number(number) => serde_json::Value::Number(number.clone()),
            Value::Text(text) => text.as_str().into(),
            Value::List(items) => items.iter().map(Node::to_json).collect(),
            Value::Table(entries) => {
                let entries = entries.iter().map(|entry| (entry.key.clone(), entry.node.to_json()));
                serde_json::Value::Object(entries.collect::<Map<_, _>>())
            }
        }
    }

    /// The entry with this name, if this is a table that has it.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        match &self.value {
            Value::Table(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// What kind of value it is, in words.
    pub fn kind(&self) -> &'static str {
        match &self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::Text(_) => "text",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }
}

#[cfg(test)]
mod tests;

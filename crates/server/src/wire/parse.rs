//! From bytes to a document, or to an error that names the field.

use serde::Deserialize;
use serde_json::error::Category;

use super::excerpt;
use super::object::Object;

/// Why bytes could not be read as the expected document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The bytes are not JSON.
    #[error("not JSON: {0}")]
    Syntax(String),
    /// The JSON does not match the schema.
    #[error("{message}")]
    Shape {
        /// The path of the field, such as `tasks[3].headers`; nothing if it is the document itself.
        field: Option<String>,
        /// What is wrong there.
        message: String,
    },
}

/// Reads one document.
///
/// The first pass only parses. If it fails, a second pass finds the field.
pub fn parse<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, Malformed> {
    match serde_json::from_slice::<Object<T>>(bytes) {
        Ok(Object(document)) => Ok(document),
        Err(error) => Err(explain::<T>(bytes, error)),
    }
}

#[cold]
fn explain<'de, T: Deserialize<'de>>(bytes: &'de [u8], error: serde_json::Error) -> Malformed {
    if error.classify() != Category::Data {
        return Malformed::Syntax(error.to_string());
    }
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let (path, error) = match serde_path_to_error::deserialize::<_, Object<T>>(&mut deserializer) {
        Err(located) => (located.path().to_string(), located.into_inner()),
        Ok(_) => (String::from("."), error),
    };
    // A data error is found as soon as its value is read; whether the rest is JSON at all is looked at first.
    if let Err(syntax) = serde_json::from_slice::<serde::de::IgnoredAny>(bytes) {
        return Malformed::Syntax(syntax.to_string());
    }
    let message = without_text(without_position(error.to_string()));
    let field = named_field(&path, &message).map(excerpt::name);
    Malformed::Shape { field, message: excerpt::sentence(message) }
}

/// serde_json appends where in the text it was; the path says that better.
fn without_position(message: String) -> String {
    match message.rfind(" at line ") {
        Some(end) => message[..end].to_owned(),
        None => message,
    }
}

/// serde_json shows a text that has the wrong type. It may be a secret or a body in the wrong place, and errors are logged.
fn without_text(message: String) -> String {
    const TEXT: &str = "invalid type: string ";
    match (message.starts_with(TEXT), message.rfind(", expected ")) {
        (true, Some(end)) => format!("invalid type: a text{}", &message[end..]),
        _ => message,
    }
}

/// The path to what is wrong: a missing, unknown or doubled field is named by the message, not always by the path.
fn named_field(path: &str, message: &str) -> Option<String> {
    let path = if path == "." || path == "?" { "" } else { path };
    let name = ["missing field `", "unknown field `", "duplicate field `"]
        .iter()
        .find_map(|start| message.strip_prefix(start))
        .and_then(|rest| rest.split('`').next());
    match name {
        Some(name) if path.is_empty() => Some(name.to_owned()),
        Some(name) if path == name || path.ends_with(&format!(".{name}")) => Some(path.to_owned()),
        Some(name) => Some(format!("{}.{name}", path.trim_end_matches(".?"))),
        None if path.is_empty() => None,
        None => Some(path.to_owned()),
    }
}

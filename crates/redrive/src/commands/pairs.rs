//! Arguments of the form `NAME: VALUE` and `NAME=VALUE`.

use redrive_core::policy::Spec;
use redrive_standard::nearest;
use serde_json::{Map, Value};

/// A header field: `NAME: VALUE`.
pub(crate) fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("must be NAME: VALUE")?;
    if name.trim().is_empty() {
        return Err("must be NAME: VALUE".into());
    }
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// A label: `NAME=VALUE`.
pub(crate) fn label(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or("must be NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// A name that is given twice.
pub(crate) fn twice<'a>(mut names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = std::collections::BTreeSet::new();
    names.find(|name| !seen.insert(*name))
}

/// A field of a policy: the value is JSON, or else a text, so that `jitterType=FULL` needs no quotes.
pub(crate) fn override_field(text: &str) -> Result<(String, Value), String> {
    let (name, value) = label(text).map_err(|_| "must be FIELD=VALUE, such as maxAttempts=3")?;
    let value = serde_json::from_str(&value).unwrap_or(Value::String(value));
    readable(&name, &value)?;
    Ok((name, value))
}

/// Whether this is a field of a policy with a value of its kind; if not, which field and which value would be.
fn readable(field: &str, value: &Value) -> Result<(), String> {
    let alone = Map::from_iter([(field.to_owned(), value.clone())]);
    let Err(error) = serde_json::from_value::<Spec>(Value::Object(alone)) else { return Ok(()) };
    let error = error.to_string();
    if !error.starts_with("unknown field") {
        // What a reader of Rust would call it, in words.
        let error = ["u16", "u32", "u64"].iter().fold(error, |error, kind| error.replace(kind, "a whole number"));
        return Err(format!("{field}: {}", in_words(&error.replace("f64", "a number"))));
    }
    // The fields are named between backticks, the unknown one first.
    let known = || error.split('`').skip(3).step_by(2);
    match nearest(field, known()) {
        Some(meant) => Err(format!("there is no field {field:?}; did you mean {meant}?")),
        None => Err(format!("there is no field {field:?}; there are {}", known().collect::<Vec<_>>().join(", "))),
    }
}

/// What a reader of Rust says of a value, in plain words.
fn in_words(error: &str) -> String {
    let parts: Vec<&str> = error.split('`').collect();
    if let ("unknown variant ", Some(given)) = (parts[0], parts.get(1)) {
        let known = || parts.iter().skip(3).step_by(2).copied();
        let meant = nearest(given, known()).map(|meant| format!("did you mean {meant}? ")).unwrap_or_default();
        return format!("there is no {given}; {meant}there are {}", known().collect::<Vec<_>>().join(", "));
    }
    let wrong = error.strip_prefix("invalid type: ").or_else(|| error.strip_prefix("invalid value: "));
    let Some((given, expected)) = wrong.and_then(|wrong| wrong.split_once(", expected ")) else {
        return error.to_owned();
    };
    let kinds = ["string ", "integer ", "floating point ", "boolean "];
    let given = kinds.iter().find_map(|kind| given.strip_prefix(kind)).unwrap_or(given).replace('`', "");
    let expected = if expected == "a sequence" { "a list such as [1000,5000]" } else { expected };
    format!("must be {expected}, not {given}")
}

/// Header fields as the server wants them: an object in which a name may have a list of values.
pub(crate) fn header_map(headers: Vec<(String, String)>) -> Map<String, Value> {
    let mut map = Map::new();
    for (name, value) in headers {
        let value = Value::String(value);
        match map.get_mut(&name) {
            None => {
                map.insert(name, value);
            }
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    map
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_repeated_header_becomes_a_list() {
        let headers = [("a", "1"), ("b", "2"), ("a", "3"), ("a", "4")].map(|(name, value)| (name.into(), value.into()));
        assert_eq!(Value::Object(header_map(headers.into())), json!({"a": ["1", "3", "4"], "b": "2"}));
    }

    #[test]
    fn a_policy_field_is_json_or_text() {
        for (text, name, value) in [
            ("maxAttempts=3", "maxAttempts", json!(3)),
            ("jitterType=FULL", "jitterType", json!("FULL")),
            ("scheduleMs=[1,2]", "scheduleMs", json!([1, 2])),
        ] {
            assert_eq!(override_field(text), Ok((name.to_owned(), value)));
        }
        for wrong in ["maxAttempts", "=3", ""] {
            assert!(override_field(wrong).is_err(), "{wrong:?}");
        }
        for (text, error) in [
            ("maxAttemps=3", "there is no field \"maxAttemps\"; did you mean maxAttempts?"),
            ("maxAttempts=-1", "maxAttempts: must be a whole number, not -1"),
        ] {
            assert_eq!(override_field(text), Err(error.to_owned()));
        }
    }

    #[test]
    fn a_header_has_a_name_and_may_have_an_empty_value() {
        assert_eq!(header("Content-Type: a: b"), Ok(("Content-Type".into(), "a: b".into())));
        assert_eq!(header("X-Empty:"), Ok(("X-Empty".into(), String::new())));
        for wrong in ["", "no-colon", ": value"] {
            assert!(header(wrong).is_err(), "{wrong:?}");
        }
    }
}

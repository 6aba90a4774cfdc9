//! What a scalar means: YAML 1.2's core schema.

use saphyr_parser::{ScalarStyle, Tag};
use serde_json::Number;

use crate::files::document::Value;

/// The value that is written so.
pub(super) fn value(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value, String> {
    let plain = || resolve(text);
    match tag {
        None if style == ScalarStyle::Plain => plain(),
        None => Ok(Value::Text(text.to_owned())),
        Some(tag) if tag.handle.is_empty() && tag.suffix == "!" => Ok(Value::Text(text.to_owned())),
        Some(tag) if !tag.is_yaml_core_schema() => Err(unknown_tag(tag)),
        Some(tag) => match (tag.suffix.as_str(), plain()?) {
            ("str", _) => Ok(Value::Text(text.to_owned())),
            ("int", value @ Value::Number(_)) | ("bool", value @ Value::Bool(_)) | ("null", value @ Value::Null) => {
                Ok(value)
            }
            ("float", value @ Value::Number(_)) => Ok(value),
            ("int" | "bool" | "null" | "float", _) => Err(format!("{text:?} is not what its tag {tag} says")),
            _ => Err(unknown_tag(tag)),
        },
    }
}

pub(super) fn unknown_tag(tag: &Tag) -> String {
    format!("the tag {tag} is not supported")
}

fn resolve(text: &str) -> Result<Value, String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "true" | "True" | "TRUE" => return Ok(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Value::Bool(false)),
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Err(format!("{text} is a number that cannot be used here"));
    }
    match number(text, unsigned) {
        Some(number) => number.map(Value::Number).ok_or_else(|| format!("{text} is too large a number")),
        None => Ok(Value::Text(text.to_owned())),
    }
}

/// The number that is written so: nothing if it is none, nothing inside if it is too large.
fn number(text: &str, unsigned: &str) -> Option<Option<Number>> {
    let digits = |digits: &str, radix| {
        let is_whole = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
        is_whole.then(|| u64::from_str_radix(digits, radix).ok().map(Number::from))
    };
    if let Some(octal) = text.strip_prefix("0o") {
        return digits(octal, 8);
    }
    if let Some(hexadecimal) = text.strip_prefix("0x") {
        return digits(hexadecimal, 16);
    }
    if !unsigned.is_empty() && unsigned.bytes().all(|digit| digit.is_ascii_digit()) {
        let negative = || text.parse::<i64>().map(Number::from);
        return Some(unsigned_or(text).or_else(|| negative().ok()));
    }
    is_fraction(unsigned).then(|| text.parse().ok().and_then(Number::from_f64))
}

fn unsigned_or(text: &str) -> Option<Number> {
    text.parse::<u64>().map(Number::from).ok()
}

/// `[0-9]+ ( . [0-9]* )?` or `. [0-9]+`, and perhaps an exponent.
fn is_fraction(unsigned: &str) -> bool {
    let all_digits = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let has_digits = !(whole.is_empty() && part.is_empty());
    let exponent_is_right = exponent.is_none_or(|exponent| !exponent.is_empty() && all_digits(exponent));
    has_digits && all_digits(whole) && all_digits(part) && exponent_is_right
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::files::document::Node;

    #[test]
    fn plain_scalars_mean_what_the_core_schema_says() {
        for (text, expected) in [
            ("", json!(null)),
            ("~", json!(null)),
            ("Null", json!(null)),
            ("nULL", json!("nULL")),
            ("True", json!(true)),
            ("FALSE", json!(false)),
            ("yes", json!("yes")),
            ("no", json!("no")),
            ("12", json!(12)),
            ("+12", json!(12)),
            ("-12", json!(-12)),
            ("012", json!(12)),
            ("0o14", json!(12)),
            ("0xC", json!(12)),
            ("0b1", json!("0b1")),
            ("18446744073709551615", json!(u64::MAX)),
            ("1_000", json!("1_000")),
            ("1.", json!(1.0)),
            (".5", json!(0.5)),
            ("-1.5e+2", json!(-150.0)),
            ("1e3", json!(1000.0)),
            ("1e", json!("1e")),
            (".", json!(".")),
            ("-", json!("-")),
            ("1:30", json!("1:30")),
            ("2027-01-31", json!("2027-01-31")),
        ] {
            let value = value(text, ScalarStyle::Plain, None).unwrap();
            assert_eq!(Node { span: 0..0, value }.to_json(), expected, "{text:?}");
        }
        for text in [".inf", "-.INF", ".nan", "18446744073709551616", "1e999"] {
            assert!(value(text, ScalarStyle::Plain, None).is_err(), "{text:?}");
        }
        assert_eq!(value("12", ScalarStyle::DoubleQuoted, None).unwrap(), Value::Text("12".into()));
    }
}

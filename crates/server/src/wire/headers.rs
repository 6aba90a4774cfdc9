//! Header fields: in requests and in answers.
//!
//! All are an object from names to one text or a list of texts. Requests keep order and
//! spelling; answers have one entry per name. They mask secrets, except where a caller gets back what it stored.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::secret::{MASK, Secrets};
use super::text::Text;

/// Header fields that a caller gave, in their order; a name may occur more than once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeaderFields<'a>(pub Vec<(Text<'a>, Text<'a>)>);

impl<'de: 'a, 'a> Deserialize<'de> for HeaderFields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = HeaderFields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object from header names to a text or a list of texts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::with_capacity(map.size_hint().unwrap_or(4).min(100));
        while let Some(name) = map.next_key::<Text<'de>>()? {
            match map.next_value::<Values<'de>>()? {
                Values::One(value) => fields.push((name, value)),
                Values::Many(values) => fields.extend(values.into_iter().map(|value| (name.clone(), value))),
            }
        }
        Ok(HeaderFields(fields))
    }
}

/// The values of one name.
enum Values<'a> {
    One(Text<'a>),
    Many(Vec<Text<'a>>),
}

impl<'de> Deserialize<'de> for Values<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValuesVisitor)
    }
}

struct ValuesVisitor;

impl<'de> Visitor<'de> for ValuesVisitor {
    type Value = Values<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of texts")
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Self::Value, E> {
        Ok(Values::One(Text(Cow::Borrowed(value))))
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Values::One(Text(Cow::Owned(value.to_owned()))))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element()? {
            values.push(value);
        }
        Ok(Values::Many(values))
    }
}

/// Header fields as they are shown: one entry per name, in the order of their first occurrence, secrets as `***`.
#[derive(Debug, Clone, Copy)]
pub struct ShownHeaders<'a> {
    /// The fields.
    pub fields: &'a [(String, String)],
    /// Which of them are secret.
    pub secrets: &'a Secrets,
}

impl<'a> Serialize for ShownHeaders<'a> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write(self.fields, serializer, |name, value| match self.secrets.is_secret(name) {
            true => MASK.into(),
            false => self.secrets.mask(value),
        })
    }
}

/// Header fields as they were given, secrets included: one entry per name, in the order of their first occurrence.
#[derive(Debug, Clone, Copy)]
pub struct ExactHeaders<'a>(pub &'a [(String, String)]);

impl Serialize for ExactHeaders<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write(self.0, serializer, |_, value| Cow::Borrowed(value))
    }
}

/// Writes one entry per name; `show` makes the text of a value.
fn write<'a, S: Serializer>(
    fields: &'a [(String, String)],
    serializer: S,
    show: impl Fn(&str, &'a str) -> Cow<'a, str>,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    for (at, (name, _)) in fields.iter().enumerate() {
        let is_same = |(other, _): &&(String, String)| other.eq_ignore_ascii_case(name);
        if fields[..at].iter().any(|field| is_same(&field)) {
            continue;
        }
        let mut shown = fields[at..].iter().filter(is_same).map(|(_, value)| show(name, value));
        match (shown.next(), shown.next()) {
            (Some(only), None) => map.serialize_entry(name, &only)?,
            (first, second) => {
                let all: Vec<Cow<'_, str>> = first.into_iter().chain(second).chain(shown).collect();
                map.serialize_entry(name, &all)?;
            }
        }
    }
    map.end()
}

fn schema(description: &str) -> Schema {
    json_schema!({
        "type": "object",
        "description": description,
        "additionalProperties": {
            "oneOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }],
        },
        "examples": [{ "content-type": "application/json", "x-tag": ["a", "b"] }],
    })
}

impl JsonSchema for HeaderFields<'_> {
    fn schema_name() -> Cow<'static, str> {
        "HeaderFields".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema("Header fields to send: an object from names to one text or a list of texts.")
    }
}

impl JsonSchema for ShownHeaders<'_> {
    fn schema_name() -> Cow<'static, str> {
        "ShownHeaders".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema("Header fields: an object from names to one text or a list of texts. Secrets are shown as `***`.")
    }
}

impl JsonSchema for ExactHeaders<'_> {
    fn schema_name() -> Cow<'static, str> {
        "ExactHeaders".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema("Header fields as they were given: an object from names to one text or a list of texts.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_fields_keep_their_order_and_spelling() {
        let given: HeaderFields<'_> = serde_json::from_str(r#"{"X-B":"1","a":["2","3"],"x-b":"\u0034"}"#).unwrap();
        let pairs: Vec<(&str, &str)> = given.0.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(pairs, [("X-B", "1"), ("a", "2"), ("a", "3"), ("x-b", "4")]);
    }

    #[test]
    fn shown_fields_have_one_entry_per_name_and_no_secrets() {
        let fields = [
            ("X-A", "1"),
            ("Authorization", "Bearer x"),
            ("x-a", "2"),
            ("b", "3"),
            ("X-Auth-Token", "t"),
            ("Location", "https://u:p@host/?code=1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let shown = ShownHeaders { fields: &fields, secrets: &Secrets::default() };
        let expected = r#"{"X-A":["1","2"],"Authorization":"***","b":"3","X-Auth-Token":"***","Location":"https://***@host/?code=***"}"#;
        assert_eq!(serde_json::to_string(&shown).unwrap(), expected);
        let exact = serde_json::to_value(ExactHeaders(&fields)).unwrap();
        assert_eq!((&exact["Authorization"], &exact["X-A"]), (&"Bearer x".into(), &vec!["1", "2"].into()));
    }
}

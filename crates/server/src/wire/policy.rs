//! Policies: as a caller registers them, and as they are shown.

use std::borrow::Cow;
use std::fmt;

use redrive_core::policy::{Invalid, SHOWN_BESIDE, Spec};
use redrive_core::{Policy, Timestamp};
use redrive_store::PolicyVersion;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::{CowStrDeserializer, MapAccessDeserializer};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde::{Serialize, de};

use super::finding::ShownFinding;
use super::schema;
use super::text::Text;

/// A policy to register: its id, and beside it the fields that it sets.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyInput<'a> {
    /// The policy's name.
    pub policy_id: Text<'a>,
    /// The fields that it sets; the rest have their defaults.
    pub spec: Spec,
}

/// The name of the field that is not part of the spec.
const POLICY_ID: &str = "policyId";

/// serde's `flatten` cannot refuse unknown fields, so the id is picked out here on the way to the spec, which can.
impl<'de: 'a, 'a> Deserialize<'de> for PolicyInput<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PolicyVisitor)
    }
}

struct PolicyVisitor;

impl<'de> Visitor<'de> for PolicyVisitor {
    type Value = PolicyInput<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let mut policy_id = None;
        let spec = Spec::deserialize(MapAccessDeserializer::new(SpecFields { map, policy_id: &mut policy_id }))?;
        let policy_id = policy_id.ok_or_else(|| A::Error::missing_field(POLICY_ID))?;
        Ok(PolicyInput { policy_id, spec })
    }
}

/// The object without its `policyId`, which is read separately.
struct SpecFields<'s, 'de, A> {
    map: A,
    policy_id: &'s mut Option<Text<'de>>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for SpecFields<'_, 'de, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        while let Some(name) = self.map.next_key::<Text<'de>>()? {
            if SHOWN_BESIDE.contains(&&*name) {
                self.map.next_value::<de::IgnoredAny>()?;
                continue;
            }
            if &*name != POLICY_ID {
                return seed.deserialize(CowStrDeserializer::new(name.0)).map(Some);
            }
            if self.policy_id.replace(self.map.next_value()?).is_some() {
                return Err(de::Error::duplicate_field(POLICY_ID));
            }
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

impl JsonSchema for PolicyInput<'_> {
    fn schema_name() -> Cow<'static, str> {
        "PolicyInput".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is used")]
        struct Id {
            /// The policy's name: at most 100 letters, digits, `.`, `_`, `-`, `:`.
            #[schemars(rename = "policyId", example = &"webhooks", extend("pattern" = schema::POLICY_ID))]
            policy_id: String,
        }
        let mut schema = Id::json_schema(generator);
        let spec = Spec::json_schema(generator);
        if let (Some(own), Some(fields)) = (
            schema.get_mut("properties").and_then(serde_json::Value::as_object_mut),
            spec.get("properties").and_then(serde_json::Value::as_object),
        ) {
            own.extend(fields.clone());
        }
        schema.remove("title");
        schema.insert("description".into(), "A policy to register: its name, and the fields that it sets.".into());
        schema.insert("additionalProperties".into(), false.into());
        schema
    }
}

/// One version of a policy, with every field that applies to it; those that do not apply are left out.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Policy")]
pub struct ShownPolicy<'a> {
    /// The policy's name.
    pub policy_id: &'a str,
    /// The version, from 1. It is also the `ETag`.
    pub version: u32,
    /// When this version was made, in epoch milliseconds.
    pub created_at: u64,
    /// `true` if it is a built-in policy: a preset under its own name, as it is. Otherwise left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub built_in: bool,
    /// The fields, defaults filled in.
    #[serde(flatten)]
    pub fields: Spec,
    /// The rules of the retry standard that the policy breaks. Left out in lists, and with `--standard off`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<ShownFinding>,
}

impl<'a> ShownPolicy<'a> {
    /// The version with its defaults filled in; an error if the stored fields are not a valid policy.
    pub fn try_new(version: &'a PolicyVersion) -> Result<Self, Invalid> {
        let fields = Spec { approval: version.spec.approval.clone(), ..Policy::resolve(&version.spec)?.to_spec() };
        let created_at = Timestamp::as_millis(version.created_at);
        Ok(ShownPolicy {
            policy_id: version.id.as_str(),
            version: version.version,
            created_at,
            built_in: version.is_built_in(),
            fields,
            findings: Vec::new(),
        })
    }
}

/// A policy with its versions.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyHistory<'a> {
    /// The current version.
    #[serde(flatten)]
    pub current: ShownPolicy<'a>,
    /// Every version that is still kept, oldest first, the current one included.
    pub versions: Vec<ShownPolicy<'a>>,
}

/// A page of policies, by name.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyList<'a> {
    /// The current version of each.
    pub policies: Vec<ShownPolicy<'a>>,
    /// Where the next page begins; `null` on the last one.
    pub next_cursor: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::super::parse::{Malformed, parse};
    use super::*;

    #[test]
    fn the_id_stands_beside_the_fields_in_any_order() {
        for document in [
            r#"{"policyId":"a","maxAttempts":3,"jitterType":"NONE"}"#,
            r#"{"maxAttempts":3,"policyId":"\u0061","jitterType":"NONE"}"#,
            r#"{"maxAttempts":3,"jitterType":"NONE","policyId":"a"}"#,
        ] {
            let input: PolicyInput<'_> = parse(document.as_bytes()).unwrap();
            assert_eq!((&*input.policy_id, input.spec.max_attempts), ("a", Some(3)), "{document}");
        }
    }

    #[test]
    fn unknown_fields_are_refused_and_named() {
        for (document, expected) in [
            (r#"{"maxAttempts":3}"#, "policyId"),
            (r#"{"policyId":"a","maxTries":3}"#, "maxTries"),
            (r#"{"policyId":"a","maxAttempts":"3"}"#, "maxAttempts"),
            (r#"{"policyId":"a","maxAttempts":1,"maxAttempts":2}"#, "maxAttempts"),
            (r#"{"policyId":"a","policyId":"b"}"#, "policyId"),
            (r#"{"policyId":7}"#, "policyId"),
            (r#"{"policyId":"a","scheduleMs":[1,-1]}"#, "scheduleMs[1]"),
        ] {
            let malformed = parse::<PolicyInput<'_>>(document.as_bytes()).unwrap_err();
            match malformed {
                Malformed::Shape { field: Some(field), .. } => assert_eq!(field, expected, "{document}"),
                other => panic!("{document}: {other:?}"),
            }
        }
    }
}

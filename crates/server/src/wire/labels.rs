//! Labels in a request: an object in which no name occurs twice.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

use super::text::Text;

type Labels<'a> = BTreeMap<Text<'a>, Text<'a>>;

/// For an optional field. Of a name that occurs twice, serde would keep the last value.
pub(super) fn optional<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Labels<'a>>, D::Error> {
    Ok(Option::<UniqueNames<'de>>::deserialize(deserializer)?.map(|labels| labels.0))
}

struct UniqueNames<'a>(Labels<'a>);

impl<'de> Deserialize<'de> for UniqueNames<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(UniqueNamesVisitor)
    }
}

struct UniqueNamesVisitor;

impl<'de> Visitor<'de> for UniqueNamesVisitor {
    type Value = UniqueNames<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object from names to texts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut labels = BTreeMap::new();
        while let Some((name, value)) = map.next_entry::<Text<'de>, Text<'de>>()? {
            if labels.contains_key(&name) {
                return Err(Error::custom(format_args!("duplicate field `{}`", &*name)));
            }
            labels.insert(name, value);
        }
        Ok(UniqueNames(labels))
    }
}

//! Settings that are maps: given as words NAME=VALUE, or as a section of the file for each name.

use std::collections::BTreeMap;
use std::fmt::Display;

use toml::Value;

use super::given::{Expected, Given};
use super::value::text;

/// A name that is a key of a map.
pub(super) trait Name: Sized + Ord + Display {
    /// Reads a name, or says what is wrong with it.
    fn read(text: &str) -> Result<Self, Expected>;
}

/// A map that was given as words NAME=VALUE, or as a section for each name.
pub(super) fn each<N: Name, T>(
    given: &Given,
    word: impl Fn(&str) -> Result<T, Expected>,
    section: impl Fn(&[(String, Given)]) -> Result<T, Expected>,
) -> Result<BTreeMap<N, T>, Expected> {
    let pairs: Vec<(N, T)> = match given {
        Given::Section(sections) => sections
            .iter()
            .map(|(name, fields)| match fields {
                Given::Section(fields) => {
                    let value = section(fields).map_err(|wrong| format!("{name}.{wrong}"))?;
                    Ok((N::read(name)?, value))
                }
                _ => Err(format!("{name} must be a section")),
            })
            .collect::<Result<_, Expected>>()?,
        other => other.words(|text| {
            let (name, value) = text.split_once('=').ok_or_else(|| format!("{text:?} must be NAME=VALUE"))?;
            let value = word(value).map_err(|wrong| format!("the value of {name} {wrong}"))?;
            Ok((N::read(name)?, value))
        })?,
    };
    let mut map = BTreeMap::new();
    for (name, value) in pairs {
        let again = format!("{name} must be given only once");
        if map.insert(name, value).is_some() {
            return Err(again);
        }
    }
    Ok(map)
}

/// A map, as the words that it can be given as.
pub(super) fn words(words: impl Iterator<Item = String>) -> Value {
    Value::Array(words.map(|word| text(&word)).collect())
}

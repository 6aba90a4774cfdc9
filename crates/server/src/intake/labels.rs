//! Labels: the caller's own names and values.

use std::collections::BTreeMap;

use super::faults::Faults;
use crate::app::Limits;
use crate::wire::Text;

const FIELD: &str = "labels";

/// The labels to keep.
pub(crate) fn check(
    given: Option<BTreeMap<Text<'_>, Text<'_>>>,
    limits: &Limits,
    faults: &mut Faults,
) -> BTreeMap<String, String> {
    let given = given.unwrap_or_default();
    if given.len() > limits.labels {
        faults.add(FIELD, format!("must be at most {}, got {}", limits.labels, given.len()));
        return BTreeMap::new();
    }
    for (name, value) in &given {
        if let Some(fault) = fault(name, value, limits) {
            faults.add(format!("{FIELD}.{}", &**name), fault);
        }
    }
    given.into_iter().map(|(name, value)| (name.0.into_owned(), value.0.into_owned())).collect()
}

fn fault(name: &str, value: &str, limits: &Limits) -> Option<String> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if name.is_empty() || name.len() > limits.label_name_chars || !name.bytes().all(is_name) {
        return Some(format!("must have a name of 1 to {} letters, digits, '.', '_', '-'", limits.label_name_chars));
    }
    let chars = value.chars().count();
    if chars > limits.label_value_chars {
        return Some(format!("must be at most {} characters, got {chars}", limits.label_value_chars));
    }
    value.chars().any(char::is_control).then(|| "must not contain control characters".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_have_short_plain_names_and_short_values() {
        let long_name = "n".repeat(65);
        let long_value = "é".repeat(257);
        for (name, value, faulty) in [
            ("team.a_b-C", "any text: ünïcode", false),
            ("a", "", false),
            ("", "x", true),
            ("a:b", "x", true),
            ("a b", "x", true),
            (&long_name[..64], &long_value[..512], false),
            (&long_name[..], "x", true),
            ("a", &long_value[..], true),
            ("a", "line\nbreak", true),
        ] {
            let mut faults = Faults::default();
            check(Some([(Text::from(name), Text::from(value))].into()), &Limits::default(), &mut faults);
            let expected = if faulty { vec![format!("labels.{name}")] } else { vec![] };
            assert_eq!(faults.fields(), expected, "{name:?} {value:?}");
        }
    }
}

//! From a tree to a typed value, or to all errors, each in words and with a path.
//!
//! | module | its job |
//! | --- | --- |
//! | `partial_value` | a value without its mistakes, and the paths that cannot be checked any more |
//! | `table` | a deserializer that does not accept a list for a table |
//! | `words` | serde's messages in plain words |

mod partial_value;
mod table;
mod words;

pub(crate) use partial_value::PartialValue;
pub(crate) use words::{context_meant, shortened};

use redrive_core::policy::Context;
use serde::de::DeserializeOwned;
use serde_path_to_error::{Path, Segment};

use crate::files::document::Step;
use table::StrictTables;

/// The most problems that are reported of one entry.
const MAX_PROBLEMS: usize = 32;

/// Why a value does not have the expected shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShapeError {
    /// The path from the value that was read.
    pub(crate) at: Vec<Step>,
    /// Whether the name is wrong, and not the value.
    pub(crate) is_name: bool,
    /// What is wrong.
    pub(crate) wrong: String,
}

impl ShapeError {
    /// The whole value is wrong.
    pub(crate) fn value(wrong: &str) -> Self {
        ShapeError { at: Vec::new(), is_name: false, wrong: wrong.to_owned() }
    }
}

/// Reads a value as a `T`. serde stops at the first mistake, so the field that it names is removed and the rest is read
/// again. Nothing if too little is left. `context` replaces a context that is missing or unknown.
pub(crate) fn read<T: DeserializeOwned>(rest: &mut PartialValue, context: Context) -> (Option<T>, Vec<ShapeError>) {
    let mut problems: Vec<ShapeError> = Vec::new();
    loop {
        let error = match serde_path_to_error::deserialize::<_, T>(StrictTables(rest.value())) {
            Ok(read) => return (Some(read), problems),
            Err(error) => error,
        };
        let message = error.inner().to_string();
        let at = path_of(error.path(), &message);
        let original = rest.original(&at);
        let missing = words::name_after("missing field `", &message);
        let below = |name: &str| [&original[..], &[Step::Field(name.to_owned())]].concat();
        // A field that was removed, or that is misspelt, is not missing.
        if !missing.is_some_and(|name| rest.was_removed(&below(name))) {
            let (wrong, meant) = words::in_words(&message, original.last());
            let is_name = message.starts_with("unknown field");
            if let (true, Some(meant), Some((_, table))) = (is_name, meant, original.split_last()) {
                rest.doubt([table, &[Step::Field(meant)]].concat());
            }
            problems.push(ShapeError { at: original, is_name, wrong });
        }
        let is_repaired = match missing {
            Some(name) => rest.replace(&at, name, context) || rest.remove(&at),
            None if !message.starts_with("unknown field") && at.last() == Some(&Step::Field("context".into())) => {
                rest.replace(&at[..at.len() - 1], "context", context)
            }
            None => rest.remove(&at),
        };
        if problems.len() >= MAX_PROBLEMS || !is_repaired {
            return (None, problems);
        }
    }
}

/// The path to what is wrong: an unknown field is named by the message, not always by the path.
fn path_of(path: &Path, message: &str) -> Vec<Step> {
    let steps = path.iter().filter_map(|segment| match segment {
        Segment::Seq { index } => Some(Step::Index(*index)),
        Segment::Map { key } => Some(Step::Field(key.clone())),
        Segment::Enum { .. } | Segment::Unknown => None,
    });
    let mut steps: Vec<Step> = steps.collect();
    let named = words::name_after("unknown field `", message).map(|name| Step::Field(name.to_owned()));
    if let Some(named) = named.filter(|named| steps.last() != Some(named)) {
        steps.push(named);
    }
    steps
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    #[expect(dead_code, reason = "only read")]
    struct Shop {
        name: String,
        open_days: Option<u8>,
        kind: Option<Kind>,
        #[serde(default)]
        shelves: Vec<Shelf>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "UPPERCASE")]
    enum Kind {
        Books,
        Bread,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read")]
    struct Shelf {
        width: u32,
        items: Option<Vec<u32>>,
    }

    fn problems(value: &Value) -> Vec<String> {
        let (_, problems) = read::<Shop>(&mut PartialValue::new(value.clone()), Context::Sync);
        problems.iter().map(|problem| format!("{:?} {}", problem.at, problem.wrong)).collect()
    }

    #[test]
    fn a_mistake_is_said_in_words() {
        for (value, expected) in [
            (json!({}), "[] the field name is missing"),
            (json!([]), "[] this must be a table, not a list"),
            (json!({"name": 3}), r#"[Field("name")] this must be text, not 3"#),
            (
                json!({"name": "a", "openDays": "3"}),
                r#"[Field("openDays")] this must be a whole number from 0, not the text "3""#,
            ),
            (
                json!({"name": "a", "openDays": 1.5}),
                r#"[Field("openDays")] this must be a whole number from 0, not 1.5"#,
            ),
            (
                json!({"name": "a", "openDays": 300}),
                r#"[Field("openDays")] this must be a whole number from 0 to 255, not 300"#,
            ),
            (
                json!({"name": "a", "shelves": [[1, [2]]]}),
                r#"[Field("shelves"), Index(0)] this must be a table, not a list"#,
            ),
            (json!({"name": "a", "openDays": -1}), r#"[Field("openDays")] this must be a whole number from 0, not -1"#),
            (
                json!({"name": "a", "open_days": 3}),
                r#"[Field("open_days")] there is no field open_days; did you mean openDays?"#,
            ),
            (
                json!({"name": "a", "openDay": 3}),
                r#"[Field("openDay")] there is no field openDay; did you mean openDays?"#,
            ),
            (
                json!({"name": "a", "colour": 3}),
                r#"[Field("colour")] there is no field colour; there is name, openDays, kind, shelves"#,
            ),
            (
                json!({"name": "a", "kind": "books"}),
                r#"[Field("kind")] "books" is not known here; did you mean BOOKS?"#,
            ),
            (json!({"name": "a", "kind": "x"}), r#"[Field("kind")] "x" is not known here; there is BOOKS, BREAD"#),
            (json!({"name": "a", "kind": 3}), r#"[Field("kind")] this must be a name, as text, not 3"#),
            (json!({"name": "a", "shelves": {}}), r#"[Field("shelves")] this must be a list, not a table"#),
        ] {
            assert_eq!(problems(&value), [expected], "{value}");
        }
    }

    #[test]
    fn all_mistakes_are_found_with_the_places_that_they_had() {
        let value = json!({
            "nam": "a",
            "openDays": true,
            "shelves": [{"width": 1}, {}, {"width": "x"}, {"width": 1, "items": [1, "b", 3, "d"]}, 5],
        });
        // The order is that of the fields, which depends on how serde_json was built.
        let mut problems = problems(&value);
        problems.sort();
        assert_eq!(
            problems,
            [
                r#"[Field("nam")] there is no field nam; did you mean name?"#,
                r#"[Field("openDays")] this must be a whole number from 0, not true"#,
                r#"[Field("shelves"), Index(1)] the field width is missing"#,
                r#"[Field("shelves"), Index(2), Field("width")] this must be a whole number from 0, not the text "x""#,
                r#"[Field("shelves"), Index(3), Field("items"), Index(1)] this must be a whole number from 0, not the text "b""#,
                r#"[Field("shelves"), Index(3), Field("items"), Index(3)] this must be a whole number from 0, not the text "d""#,
                r#"[Field("shelves"), Index(4)] this must be a table, not 5"#,
            ]
        );
    }

    #[test]
    fn no_value_has_more_mistakes_than_anybody_reads() {
        let value = json!({"name": "a", "shelves": vec![json!(5); 1000]});
        assert_eq!(problems(&value).len(), MAX_PROBLEMS);
    }

    #[test]
    fn what_is_left_is_read_and_what_follows_from_a_mistake_is_doubtful() {
        let field = |name: &str| Step::Field(name.into());
        let value = json!({"openDay": 3, "kind": "x", "shelves": [5, {"width": 1}, {"width": 2, "items": ["a"]}]});
        let mut rest = PartialValue::new(value);
        let (shop, problems) = read::<Shop>(&mut rest, Context::Sync);
        let shop = shop.unwrap();
        assert_eq!((shop.shelves.len(), shop.name.as_str(), problems.len()), (2, "(no name)", 5));
        assert_eq!(rest.original(&[field("shelves"), Step::Index(1), field("width")])[1], Step::Index(2));
        for (path, expected) in [
            (vec![field("openDays")], true),
            (vec![field("kind")], true),
            (vec![field("shelves")], true),
            (vec![field("shelves"), Step::Index(1)], false),
            (vec![field("shelves"), Step::Index(2), field("items")], true),
            (vec![field("shelves"), Step::Index(2), field("width")], false),
        ] {
            assert_eq!(rest.is_doubtful(&path), expected, "{path:?}");
        }
    }

    #[test]
    fn a_long_text_is_not_repeated_in_full() {
        let long = "x".repeat(1_000);
        for value in [json!({"name": "a", "openDays": long}), json!({"name": "a", "kind": long}), json!({long: 1})] {
            assert!(problems(&value)[0].len() < 1_300, "{:?}", problems(&value)[0].len());
            let (_, problems) = read::<Shop>(&mut PartialValue::new(value), Context::Sync);
            assert!(problems[0].wrong.chars().count() < 150, "{}", problems[0].wrong);
        }
    }
}

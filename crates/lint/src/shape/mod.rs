//! From a tree to a typed value, or to everything that keeps it from being one, in words and with a path.

use std::collections::HashMap;

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::{Path, Segment};

use crate::document::Step;
use crate::nearest::nearest;

/// How many problems of one entry are looked for.
const MAX_PROBLEMS: usize = 32;

/// One thing that keeps a value from having its shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misshapen {
    /// Where, from the value that was read.
    pub(crate) at: Vec<Step>,
    /// Whether it is the name there that is wrong, and not the value.
    pub(crate) is_name: bool,
    /// What is wrong.
    pub(crate) wrong: String,
}

/// Reads `value` as a `T`. serde stops at the first mistake; so what it names is taken out, and the rest is tried again.
pub(crate) fn read<T: DeserializeOwned>(value: &Value) -> Result<T, Vec<Misshapen>> {
    let mut rest = Rest { value: value.clone(), left: HashMap::new() };
    let mut problems: Vec<Misshapen> = Vec::new();
    loop {
        let error = match serde_path_to_error::deserialize::<_, T>(&rest.value) {
            Ok(read) if problems.is_empty() => return Ok(read),
            Ok(_) => return Err(problems),
            Err(error) => error,
        };
        let message = error.inner().to_string();
        let at = place_of(error.path(), &message);
        let original = rest.original(&at);
        // A field that was taken out here is not missing there.
        let missing = name_after("missing field `", &message).map(|name| [&original[..], &[name]].concat());
        if !missing.is_some_and(|missing| problems.iter().any(|problem| problem.at == missing)) {
            let is_name = message.starts_with("unknown field");
            problems.push(Misshapen { at: original, is_name, wrong: in_words(&message) });
        }
        if problems.len() >= MAX_PROBLEMS || !rest.remove(&at) {
            return Err(problems);
        }
    }
}

/// The path to what is wrong: an unknown field is named by the message, not always by the path.
fn place_of(path: &Path, message: &str) -> Vec<Step> {
    let steps = path.iter().filter_map(|segment| match segment {
        Segment::Seq { index } => Some(Step::Index(*index)),
        Segment::Map { key } => Some(Step::Field(key.clone())),
        Segment::Enum { .. } | Segment::Unknown => None,
    });
    let mut steps: Vec<Step> = steps.collect();
    if let Some(named) = name_after("unknown field `", message).filter(|named| steps.last() != Some(named)) {
        steps.push(named);
    }
    steps
}

fn name_after(start: &str, message: &str) -> Option<Step> {
    message.strip_prefix(start)?.split('`').next().map(|name| Step::Field(name.to_owned()))
}

/// What is left of a value after its mistakes were taken out.
struct Rest {
    value: Value,
    /// For each list that something was taken out of, by its path: which of its elements are left.
    left: HashMap<Vec<Step>, Vec<usize>>,
}

impl Rest {
    /// The path in the whole value of what is now at `at`.
    fn original(&self, at: &[Step]) -> Vec<Step> {
        let mut path = Vec::with_capacity(at.len());
        for step in at {
            let step = match step {
                Step::Index(index) => {
                    Step::Index(self.left.get(&path).and_then(|left| left.get(*index)).copied().unwrap_or(*index))
                }
                step => step.clone(),
            };
            path.push(step);
        }
        path
    }

    /// Takes the value at `at` out; whether it was there.
    fn remove(&mut self, at: &[Step]) -> bool {
        let Some((last, before)) = at.split_last() else { return false };
        let list = self.original(before);
        let parent = before.iter().try_fold(&mut self.value, |value, step| match step {
            Step::Field(name) => value.get_mut(name),
            Step::Index(at) => value.get_mut(at),
            Step::Item(_) => None,
        });
        match (parent, last) {
            (Some(Value::Object(fields)), Step::Field(name)) => fields.remove(name).is_some(),
            (Some(Value::Array(items)), Step::Index(at)) if *at < items.len() => {
                self.left.entry(list).or_insert_with(|| (0..items.len()).collect()).remove(*at);
                items.remove(*at);
                true
            }
            _ => false,
        }
    }
}

/// serde's message in our words, with the name that was probably meant.
fn in_words(message: &str) -> String {
    let mut names = message.split('`').skip(1).step_by(2);
    let named = names.next().unwrap_or_default();
    let known: Vec<&str> = names.collect();
    if message.starts_with("unknown field") {
        return format!("there is no field {named}{}", suggestion(named, &known));
    }
    if message.starts_with("unknown variant") {
        return format!("{named:?} is not known here{}", suggestion(named, &known));
    }
    if message.starts_with("missing field") {
        return format!("the field {named} is missing");
    }
    if let Some(choice) = message.strip_prefix("data did not match any variant of untagged enum ") {
        return format!("this must be {}", choice_in_words(choice));
    }
    if message.starts_with("invalid length") && message.contains("expected struct ") {
        return "this must be a table, not a list".into();
    }
    let mistake = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "));
    match mistake.and_then(|mistake| mistake.rsplit_once(", expected ")) {
        Some((found, expected)) => {
            format!("this must be {}, not {}", expected_in_words(expected), found_in_words(found))
        }
        None => message.to_owned(),
    }
}

/// The nearest of the known names, or all of them.
fn suggestion(name: &str, known: &[&str]) -> String {
    let plain = |name: &str| name.replace(['_', '-'], "").to_ascii_lowercase();
    let same = known.iter().copied().find(|known| plain(known) == plain(name));
    match same.or_else(|| nearest(name, known.iter().copied())) {
        Some(meant) => format!("; did you mean {meant}?"),
        None if known.is_empty() => String::new(),
        None => format!("; there is {}", known.join(", ")),
    }
}

/// What may stand where there is a choice.
fn choice_in_words(choice: &str) -> &'static str {
    match choice {
        "PolicyChoice" => "the name of a policy, or a table of its fields",
        _ => "something else",
    }
}

fn expected_in_words(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0",
        "i8" | "i16" | "i32" | "i64" => "a whole number",
        "f32" | "f64" => "a number",
        "a string" | "string" => "text",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "a table",
        expected if expected.starts_with("struct ") => "a table",
        "string or map" => "a name, as text",
        expected => expected,
    }
}

fn found_in_words(found: &str) -> String {
    match found {
        "null" | "unit" | "unit value" | "Option value" => "nothing".into(),
        "map" => "a table".into(),
        "sequence" => "a list".into(),
        found => match found.split_once([' ']) {
            Some(("string", text)) => format!("the text {text}"),
            Some(("integer" | "boolean", value)) => value.trim_matches('`').to_owned(),
            _ => found.strip_prefix("floating point ").unwrap_or(found).trim_matches('`').to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

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
        let problems = read::<Shop>(value).unwrap_err();
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
                r#"[] the field name is missing"#,
            ]
        );
    }

    #[test]
    fn no_value_has_more_mistakes_than_anybody_reads() {
        let value = json!({"name": "a", "shelves": vec![json!(5); 1000]});
        assert_eq!(problems(&value).len(), MAX_PROBLEMS);
    }
}

//! serde's messages in our words, with the name that was probably meant.

use redrive_core::policy::Context;

use crate::files::document::Step;
use crate::nearest::nearest;

/// How many characters of a value are repeated in a message: enough to find it.
const MAX_QUOTED: usize = 60;

/// How many characters a sentence of another's has at most.
const MAX_MESSAGE: usize = 300;

/// What people write for a context, and what it is called here. `async` is one letter from `sync` and its opposite.
const CONTEXTS: [(&str, Context); 24] = [
    ("async", Context::Event),
    ("asynchronous", Context::Event),
    ("queue", Context::Event),
    ("message", Context::Event),
    ("messaging", Context::Event),
    ("consumer", Context::Event),
    ("events", Context::Event),
    ("kafka", Context::Event),
    ("http", Context::Sync),
    ("https", Context::Sync),
    ("rest", Context::Sync),
    ("api", Context::Sync),
    ("synchronous", Context::Sync),
    ("request", Context::Sync),
    ("job", Context::Batch),
    ("jobs", Context::Batch),
    ("cron", Context::Batch),
    ("bulk", Context::Batch),
    ("hook", Context::Webhook),
    ("hooks", Context::Webhook),
    ("webhooks", Context::Webhook),
    ("callback", Context::Webhook),
    ("unary", Context::Grpc),
    ("rpc", Context::Grpc),
];

/// The context that a misspelt name probably means.
pub(crate) fn context_meant(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    CONTEXTS.iter().find(|(written, _)| *written == name).map(|(_, context)| context.as_str())
}

/// The name that a message begins with.
pub(super) fn name_after<'a>(start: &str, message: &'a str) -> Option<&'a str> {
    message.strip_prefix(start)?.split('`').next()
}

/// A message about the value at `field`, and the name that was probably meant.
pub(super) fn in_words(message: &str, field: Option<&Step>) -> (String, Option<String>) {
    let mut names = message.split('`').skip(1).step_by(2);
    let named = names.next().unwrap_or_default();
    let known: Vec<&str> = names.collect();
    if message.starts_with("unknown field") {
        let meant = meant(named, &known);
        return (
            format!("there is no field {}{}", shortened(named), suggestion(meant, &known)),
            meant.map(str::to_owned),
        );
    }
    if message.starts_with("unknown variant") {
        let is_context = field == Some(&Step::Field("context".into()));
        let meant = is_context.then(|| context_meant(named)).flatten().or_else(|| meant(named, &known));
        return (format!("{:?} is not known here{}", shortened(named), suggestion(meant, &known)), None);
    }
    if message.starts_with("missing field") {
        return match field {
            Some(Step::Field(outer)) => (format!("the field {named} of {outer} is missing"), None),
            _ => (format!("the field {named} is missing"), None),
        };
    }
    if let Some(choice) = message.strip_prefix("data did not match any variant of untagged enum ") {
        return (format!("this must be {}", choice_in_words(choice)), None);
    }
    let mistake = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "));
    let wrong = match mistake.and_then(|mistake| mistake.rsplit_once(", expected ")) {
        Some((found, expected)) => {
            let is_large = message.starts_with("invalid value: integer `") && !found.contains('-');
            let range = if is_large { largest(expected) } else { None };
            let range = range.map(|largest| format!(" to {largest}")).unwrap_or_default();
            format!("this must be {}{range}, not {}", expected_in_words(expected), found_in_words(found))
        }
        None => cut(message, MAX_MESSAGE),
    };
    (wrong, None)
}

/// The beginning of a value that may be long.
pub(crate) fn shortened(text: &str) -> String {
    cut(text, MAX_QUOTED)
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The known name that a misspelt one probably means.
fn meant<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let plain = |name: &str| name.replace(['_', '-'], "").to_ascii_lowercase();
    let same = known.iter().copied().find(|known| plain(known) == plain(name));
    same.or_else(|| nearest(name, known.iter().copied()))
}

/// The name that was meant, or all of them.
fn suggestion(meant: Option<&str>, known: &[&str]) -> String {
    match meant {
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

/// The largest number of a type.
fn largest(expected: &str) -> Option<u64> {
    match expected {
        "u8" => Some(u8::MAX.into()),
        "u16" => Some(u16::MAX.into()),
        "u32" => Some(u32::MAX.into()),
        "u64" | "usize" => Some(u64::MAX),
        _ => None,
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
            // serde puts the text between quotes, which stay.
            Some(("string", text)) if text.chars().count() > MAX_QUOTED + 2 => {
                format!("the text {}\"", shortened(text))
            }
            Some(("string", text)) => format!("the text {text}"),
            Some(("integer" | "boolean", value)) => value.trim_matches('`').to_owned(),
            _ => found.strip_prefix("floating point ").unwrap_or(found).trim_matches('`').to_owned(),
        },
    }
}

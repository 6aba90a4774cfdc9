//! JSON documents of the right structure with random values.

use fastrand::Rng;

/// A field of a document: its name, and values that it could have, as JSON.
pub(crate) type Field = (&'static str, &'static [&'static str]);

/// Values that are valid for no field.
const FOREIGN: [&str; 12] = [
    "null",
    "true",
    "0",
    "-1",
    "1e999",
    "18446744073709551616",
    "\"\"",
    "\"\\u0000\"",
    "\"\\ud83d\\ude00\"",
    "[]",
    "{}",
    "[{\"a\":[1]}]",
];

/// An object with some of these fields, mostly with a valid value.
pub(crate) fn object(random: &mut Rng, fields: &[Field]) -> String {
    let mut text = String::from("{");
    for (name, values) in fields {
        if random.u8(..10) < 4 {
            continue;
        }
        if text.len() > 1 {
            text.push(',');
        }
        let value = match random.u8(..12) {
            0 => FOREIGN[random.usize(..FOREIGN.len())],
            _ => random.choice(*values).copied().unwrap_or("null"),
        };
        text.push_str(&format!("\"{name}\":{value}"));
    }
    text + "}"
}

/// Samples of text.
pub(crate) fn texts(samples: &[&str]) -> Vec<Vec<u8>> {
    samples.iter().map(|text| text.as_bytes().to_vec()).collect()
}

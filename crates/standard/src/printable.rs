//! Makes text from a file safe to print: it must not move the cursor, break the line or reverse the text.

use std::fmt::Write;

/// The text with each control character replaced.
pub fn printable(text: &str) -> String {
    text.chars().map(|letter| if is_control_like(letter) { '\u{fffd}' } else { letter }).collect()
}

/// A JSON document with each such character escaped, which does not change its meaning.
pub fn printable_json(document: &str) -> String {
    let mut text = String::with_capacity(document.len());
    for letter in document.chars() {
        match letter {
            '\n' => text.push('\n'),
            // They only stand within strings, and none needs a surrogate. Writing to a string does not fail.
            letter if is_control_like(letter) => write!(text, "\\u{:04x}", u32::from(letter)).unwrap_or_default(),
            letter => text.push(letter),
        }
    }
    text
}

/// Control characters, line and paragraph separators, and what changes the direction of the text around it.
pub(crate) fn is_control_like(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_replaced_and_letters_stay() {
        let obeyed =
            "\x1b\n\r\t\x7f\u{85}\u{9b}\u{61c}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2066}\u{2069}";
        assert_eq!(printable(obeyed), "\u{fffd}".repeat(obeyed.chars().count()));
        let shown = "aä日😀e\u{301}\u{200d}\u{a0}…";
        assert_eq!(printable(shown), shown);
    }

    #[test]
    fn json_says_the_same_with_escapes() {
        let value = serde_json::json!({"a\u{202e}b": "\u{9b}31m\x1b\n\u{2028}ü"});
        let text = printable_json(&serde_json::to_string_pretty(&value).unwrap());
        assert!(text.is_ascii() || text.chars().all(|letter| letter == 'ü' || letter.is_ascii()), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}

//! Text: escaped, shortened and measured.

use std::borrow::Cow;

/// How wide a character is, as a part of the size of the writing. On the safe side: hardly any font's mean is wider.
const WIDTH: f64 = 0.6;

/// The text as it may stand in HTML and in XML, within quotes too. What neither allows at all becomes a question mark.
pub(super) fn escape(text: &str) -> Cow<'_, str> {
    let special = |c: char| matches!(c, '&' | '<' | '>' | '"' | '\'') || is_forbidden(c);
    if !text.contains(special) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c if is_forbidden(c) => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}

fn is_forbidden(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t')) || matches!(c, '\u{fffe}' | '\u{ffff}')
}

/// The text in at most `most` characters. The middle goes: names that belong together mostly differ at their end.
pub(super) fn shorten(text: &str, most: usize) -> Cow<'_, str> {
    let length = text.chars().count();
    if length <= most {
        return Cow::Borrowed(text);
    }
    let kept = most.saturating_sub(1);
    let (head, tail) = (kept.div_ceil(2), kept / 2);
    let head: String = text.chars().take(head).collect();
    let tail: String = text.chars().skip(length - tail).collect();
    Cow::Owned(format!("{}…{}", head.trim_end(), tail.trim_start()))
}

/// A command as HTML in which a line breaks between words only, and not between an option and its value.
pub(super) fn words(command: &str) -> String {
    let mut parts: Vec<String> = Vec::new();
    for word in command.split(' ') {
        match parts.last_mut() {
            Some(part) if part.starts_with("--") && !part.contains(' ') && !word.starts_with('-') => {
                *part = format!("{part} {word}");
            }
            _ => parts.push(word.to_owned()),
        }
    }
    let parts: Vec<_> = parts.iter().map(|part| format!("<span>{}</span>", escape(part))).collect();
    parts.join(" ")
}

/// A contender's name as HTML in which a line may break where a part of the name ends.
pub(super) fn breakable(name: &str) -> String {
    // None of these is a part of what an escaped letter looks like.
    escape(name).replace('=', "=<wbr/>").replace('+', "+<wbr/>").replace(',', ",<wbr/>")
}

/// How wide the text is at most, about, when it is written in this size.
pub(super) fn width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * WIDTH * size
}

/// How many characters fit.
pub(super) fn fitting(room: f64, size: f64) -> usize {
    (room / (WIDTH * size)).max(1.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_something_to_a_browser_is_escaped() {
        for (text, expected) in [
            ("plain", "plain"),
            ("<b>&\"'", "&lt;b&gt;&amp;&quot;&#39;"),
            ("a\u{0}b\u{1b}c\u{ffff}", "a\u{fffd}b\u{fffd}c\u{fffd}"),
            ("ä → 🦀", "ä → 🦀"),
        ] {
            assert_eq!(escape(text), expected);
        }
    }

    #[test]
    fn a_command_breaks_between_words_only() {
        assert_eq!(words("a '<b>'"), "<span>a</span> <span>&#39;&lt;b&gt;&#39;</span>");
    }

    #[test]
    fn a_long_name_keeps_its_beginning_and_its_end() {
        for (most, expected) in
            [(30, "exponential-full"), (16, "exponential-full"), (9, "expo…full"), (8, "expo…ull"), (1, "…"), (0, "…")]
        {
            assert_eq!(shorten("exponential-full", most), expected, "{most}");
        }
        assert_eq!(shorten("ääääää", 3), "ä…ä");
        assert_eq!(fitting(width("twelve chars", 10.0), 10.0), 12);
    }
}

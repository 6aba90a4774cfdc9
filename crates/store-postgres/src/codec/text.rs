//! Escaping of the NUL character, which PostgreSQL cannot hold in text.
//!
//! Error messages may quote a dependency's answer, so they may contain any character. NUL becomes U+0001 and `0`, and
//! U+0001 itself becomes U+0001 and `1`. Every other text is unchanged, so that people can read it in psql.

use std::borrow::Cow;

const MARK: char = '\u{1}';

pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    match text.contains(['\0', MARK]) {
        false => Cow::Borrowed(text),
        true => Cow::Owned(text.replace(MARK, "\u{1}1").replace('\0', "\u{1}0")),
    }
}

pub(crate) fn unescape(text: String) -> String {
    match text.contains(MARK) {
        false => text,
        true => text.replace("\u{1}0", "\0").replace("\u{1}1", "\u{1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back_and_none_holds_a_nul() {
        for text in ["", "plain", "\0", "\u{1}", "\u{1}0", "\u{1}\u{1}0\0", "a\0b\u{1}1\0"] {
            let escaped = escape(text).into_owned();
            assert!(!escaped.contains('\0'), "{text:?}");
            assert_eq!(unescape(escaped), text);
        }
    }
}

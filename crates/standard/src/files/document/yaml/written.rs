//! How far a scalar reaches: the parser's end of a quoted one lies behind the blanks and the comment that follow it.

use std::ops::Range;

use saphyr_parser::ScalarStyle;

/// The bytes of a scalar alone, out of those that the parser gave it.
pub(super) fn span(text: &str, span: Range<usize>, style: ScalarStyle) -> Range<usize> {
    let slice = &text[span.clone()];
    let length = match style {
        ScalarStyle::DoubleQuoted => closing(slice, '"', '\\'),
        ScalarStyle::SingleQuoted => closing(slice, '\'', '\''),
        _ => None,
    };
    span.start..span.start + length.unwrap_or_else(|| slice.trim_end().len())
}

/// The length up to and with the closing quote. In single quotes a quote is escaped by another one.
fn closing(slice: &str, quote: char, escape: char) -> Option<usize> {
    let open = slice.find(quote)? + quote.len_utf8();
    let mut letters = slice[open..].char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let escapes = letter == escape && (letter != quote || letters.peek().map(|next| next.1) == Some(quote));
        if escapes {
            letters.next();
        } else if letter == quote {
            return Some(open + at + quote.len_utf8());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scalar_ends_with_its_last_character() {
        for (text, style, expected) in [
            ("\"a\"  # c\"", ScalarStyle::DoubleQuoted, "\"a\""),
            ("\"a\\\"b\" ", ScalarStyle::DoubleQuoted, "\"a\\\"b\""),
            ("'it''s' # '", ScalarStyle::SingleQuoted, "'it''s'"),
            ("'' ", ScalarStyle::SingleQuoted, "''"),
            ("plain  ", ScalarStyle::Plain, "plain"),
            ("|\n  a\n", ScalarStyle::Literal, "|\n  a"),
        ] {
            assert_eq!(&text[span(text, 0..text.len(), style)], expected, "{text:?}");
        }
    }
}

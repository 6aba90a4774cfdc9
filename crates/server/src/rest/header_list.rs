//! Header fields that are lists, and texts in quotes.

/// The items of a comma-separated list, trimmed; a comma within quotes separates nothing.
pub(crate) fn items(list: &str) -> Vec<&str> {
    let mut items = Vec::new();
    let (mut start, mut quoted, mut escaped) = (0, false, false);
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' if !quoted => {
                items.push(list[start..at].trim_matches([' ', '\t']));
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(list[start..].trim_matches([' ', '\t']));
    items.retain(|item| !item.is_empty());
    items
}

/// The text within quotes (a structured-field string, RFC 9651); `None` if it is not well formed.
pub(crate) fn unquote(text: &str) -> Option<String> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    let mut value = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => value.push(chars.next().filter(|c| matches!(c, '"' | '\\'))?),
            '"' => return None,
            c => value.push(c),
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_within_quotes_separate_nothing() {
        assert_eq!(items(r#" a, b="x, y" ,, "c\",d" "#), ["a", r#"b="x, y""#, r#""c\",d""#]);
        assert_eq!(items(""), [""; 0]);
    }

    #[test]
    fn a_quoted_text_is_unquoted_once() {
        for (text, expected) in [
            (r#""key""#, Some("key")),
            (r#""a\"b\\c""#, Some(r#"a"b\c"#)),
            (r#""""#, Some("")),
            (r#"""#, None),
            (r#""a"b""#, None),
            (r#""a\n""#, None),
            (r#""a\""#, None),
            ("key", None),
        ] {
            assert_eq!(unquote(text).as_deref(), expected, "{text}");
        }
    }
}

//! The JSON form: the same bytes for two JSON texts that differ only in white space, in the order of names, and in how
//! the characters of a string are written.
//!
//! A value is its kind and its content; lengths and counts are 8 bytes, little-endian:
//!
//! | value | form |
//! | --- | --- |
//! | `null`, `true`, `false` | `n`, `t`, `f` |
//! | number | `#`, length, the literal as it was written |
//! | string | `"`, length, its characters in UTF-8 |
//! | array | `[`, count, the values |
//! | object | `{`, count, then name (as a string) and value, in the order of the names' UTF-8 bytes |
//!
//! Numbers are compared as they were written: `1.0` is not `1`. As floating-point numbers, as RFC 8785 has them,
//! 9007199254740993 and 9007199254740992 would be the same amount.

use std::borrow::Cow;

use serde::de::IgnoredAny;

/// The most nested arrays and objects. Deeper texts have no JSON form.
const DEPTH: usize = 128;

/// The JSON form of a text; `None` if it is not valid JSON, is nested too deeply, has a name twice in one object, or has
/// a string that is not valid Unicode (half of a surrogate pair).
pub fn json_form(text: &[u8]) -> Option<Vec<u8>> {
    serde_json::from_slice::<IgnoredAny>(text).ok()?;
    // The text is valid, so the reader below only has to find where values begin and end.
    let mut reader = Reader { rest: text };
    let mut form = Vec::with_capacity(text.len() + text.len() / 4);
    reader.value(DEPTH, &mut form)?;
    Some(form)
}

/// Reads valid JSON.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize, form: &mut Vec<u8>) -> Option<()> {
        match self.peek()? {
            b'{' => self.object(depth.checked_sub(1)?, form),
            b'[' => self.array(depth.checked_sub(1)?, form),
            b'"' => {
                put(form, b'"', self.string()?.as_bytes());
                Some(())
            }
            first @ (b'n' | b't' | b'f') => {
                self.literal();
                form.push(first);
                Some(())
            }
            _ => {
                put(form, b'#', self.literal());
                Some(())
            }
        }
    }

    fn object(&mut self, depth: usize, form: &mut Vec<u8>) -> Option<()> {
        let mut members: Vec<(Cow<'a, str>, Vec<u8>)> = Vec::new();
        self.items(b'}', |reader| {
            let name = reader.string()?;
            reader.skip(b':')?;
            let mut value = Vec::new();
            reader.value(depth, &mut value)?;
            members.push((name, value));
            Some(())
        })?;
        members.sort_by(|(one, _), (other, _)| one.as_bytes().cmp(other.as_bytes()));
        if members.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return None;
        }
        form.push(b'{');
        form.extend((members.len() as u64).to_le_bytes());
        for (name, value) in members {
            put(form, b'"', name.as_bytes());
            form.extend(value);
        }
        Some(())
    }

    fn array(&mut self, depth: usize, form: &mut Vec<u8>) -> Option<()> {
        form.push(b'[');
        let at = form.len();
        form.extend(0_u64.to_le_bytes());
        let mut count = 0_u64;
        self.items(b']', |reader| {
            count += 1;
            reader.value(depth, form)
        })?;
        form[at..at + 8].copy_from_slice(&count.to_le_bytes());
        Some(())
    }

    /// Reads what stands between an opening bracket and its closing one, item by item.
    fn items(&mut self, close: u8, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.peek()?;
        self.rest = &self.rest[1..];
        if self.peek()? == close {
            return self.skip(close);
        }
        loop {
            item(self)?;
            if self.peek()? == close {
                return self.skip(close);
            }
            self.skip(b',')?;
        }
    }

    /// A string's characters.
    fn string(&mut self) -> Option<Cow<'a, str>> {
        self.peek()?;
        let mut end = 1;
        while *self.rest.get(end)? != b'"' {
            end += if self.rest[end] == b'\\' { 2 } else { 1 };
        }
        let (quoted, rest) = self.rest.split_at_checked(end + 1)?;
        self.rest = rest;
        if quoted.contains(&b'\\') {
            return serde_json::from_slice::<String>(quoted).ok().map(Cow::Owned);
        }
        std::str::from_utf8(&quoted[1..end]).ok().map(Cow::Borrowed)
    }

    /// A number or a name such as `true`.
    fn literal(&mut self) -> &'a [u8] {
        let is_end = |byte: &u8| matches!(byte, b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r');
        let end = self.rest.iter().position(is_end).unwrap_or(self.rest.len());
        let (literal, rest) = self.rest.split_at(end);
        self.rest = rest;
        literal
    }

    /// The next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        let start = self.rest.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))?;
        self.rest = &self.rest[start..];
        self.rest.first().copied()
    }

    fn skip(&mut self, expected: u8) -> Option<()> {
        (self.peek()? == expected).then(|| self.rest = &self.rest[1..])
    }
}

fn put(form: &mut Vec<u8>, kind: u8, content: &[u8]) {
    form.push(kind);
    form.extend((content.len() as u64).to_le_bytes());
    form.extend(content);
}

#[cfg(test)]
mod tests {
    use super::json_form;

    fn same(one: &str, other: &str) -> bool {
        let (one, other) = (json_form(one.as_bytes()).unwrap(), json_form(other.as_bytes()).unwrap());
        one == other
    }

    #[test]
    fn white_space_the_order_of_names_and_escapes_do_not_count() {
        for (one, other) in [
            (r#"{"a":1,"b":[true,null]}"#, " { \"b\" : [ true , null ] ,\n\t\"a\" : 1 } "),
            (r#"{"a":{"x":1,"y":2}}"#, r#"{"a":{"y":2,"x":1}}"#),
            (r#""\u0041\/é""#, r#""A/\u00e9""#),
            (r#""\ud83d\ude00""#, "\"😀\""),
            ("[]", "[ ]"),
            ("{}", "{\r\n}"),
            (r#"{"\u0061":1}"#, r#"{"a":1}"#),
        ] {
            assert!(same(one, other), "{one} and {other}");
        }
    }

    #[test]
    fn everything_else_counts() {
        for (one, other) in [
            ("1", "1.0"),
            ("1e2", "100"),
            ("-0", "0"),
            ("9007199254740993", "9007199254740992"),
            ("[1,2]", "[2,1]"),
            ("[1,[2]]", "[[1],2]"),
            ("[12]", "[1,2]"),
            ("null", "\"null\""),
            ("1", "\"1\""),
            (r#"{"a":"b"}"#, r#"{"b":"a"}"#),
            (r#"{"a":null}"#, "{}"),
            ("[]", "{}"),
            (r#"["a","b"]"#, r#"["ab",""]"#),
            (r#"{"a":"é"}"#, "{\"a\":\"e\\u0301\"}"),
        ] {
            assert!(!same(one, other), "{one} and {other}");
        }
    }

    #[test]
    fn what_is_not_clearly_one_value_has_no_form() {
        let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(json_form(deep(128).as_bytes()).is_some());
        assert!(json_form(deep(129).as_bytes()).is_none());
        let mixed = format!("{}1{}", r#"{"a":["#.repeat(65), "]}".repeat(65));
        assert!(json_form(mixed.as_bytes()).is_none());
        for text in [
            "",
            " ",
            "{",
            "[1,]",
            "{\"a\":1,}",
            "01",
            "nul",
            "1 2",
            "'a'",
            "\"\u{1}\"",
            "NaN",
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"{"x":{"a":1,"b":2,"a":3}}"#,
            r#""\ud800""#,
            r#"{"\udc00":1}"#,
        ] {
            assert_eq!(json_form(text.as_bytes()), None, "{text}");
        }
        assert_eq!(json_form(b"\"\xff\""), None);
        assert_eq!(json_form(b"\xef\xbb\xbf1"), None, "a byte order mark");
    }

    #[test]
    fn the_form_is_as_documented() {
        let form = json_form(br#" {"b": -1.50, "a": ["x", true]} "#).unwrap();
        let count = |number: u64| number.to_le_bytes().to_vec();
        let expected = [
            b"{".to_vec(),
            count(2),
            b"\"".to_vec(),
            count(1),
            b"a".to_vec(),
            b"[".to_vec(),
            count(2),
            b"\"".to_vec(),
            count(1),
            b"x".to_vec(),
            b"t".to_vec(),
            b"\"".to_vec(),
            count(1),
            b"b".to_vec(),
            b"#".to_vec(),
            count(5),
            b"-1.50".to_vec(),
        ];
        assert_eq!(form, expected.concat());
    }
}

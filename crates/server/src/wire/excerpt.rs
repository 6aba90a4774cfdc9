//! Shortens texts of the caller for problem details, which must not be as large as the request.

/// The most bytes of a name that are shown.
const NAME: usize = 256;
/// The most bytes of a sentence that are shown.
const SENTENCE: usize = 1_024;
/// The bytes shown from the end of a sentence that is shortened: the end says what was expected.
const END: usize = 640;

/// A name, shortened at its end.
pub(crate) fn name(mut text: String) -> String {
    if text.len() > NAME {
        text.truncate(boundary(&text, NAME));
        text.shrink_to_fit();
        text.push('…');
    }
    text
}

/// A sentence, shortened in its middle.
pub(crate) fn sentence(text: String) -> String {
    if text.len() <= SENTENCE {
        return text;
    }
    let begin = &text[..boundary(&text, SENTENCE - END)];
    let end = &text[boundary(&text, text.len() - END)..];
    format!("{begin}… ({} bytes left out) …{end}", text.len() - begin.len() - end.len())
}

/// The last character boundary up to `at`.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_beginning() {
        assert_eq!(name("n".repeat(256)), "n".repeat(256));
        assert_eq!(name("n".repeat(257)), format!("{}…", "n".repeat(256)));
        // A character of two bytes is not cut in two.
        assert_eq!(name(format!("n{}", "ä".repeat(200))), format!("n{}…", "ä".repeat(127)));
    }

    #[test]
    fn a_sentence_keeps_both_ends() {
        assert_eq!(sentence("s".repeat(1_024)), "s".repeat(1_024));
        let long = format!("unknown field `{}`, expected `a` or `b`", "ä".repeat(10_000));
        let told = sentence(long.clone());
        assert!(told.starts_with("unknown field `ä") && told.ends_with("ä`, expected `a` or `b`"), "{told}");
        assert!(told.len() < 1_100 && told.contains("bytes left out"), "{told}");
    }
}

//! What is told of a text that a caller has sent: a problem must not be as large as what it is about.

/// The most bytes of a name that are told.
const NAME: usize = 256;
/// The most bytes of a sentence that are told.
const SENTENCE: usize = 1_024;
/// The bytes at the end of a sentence that are told when it is cut: there it says what was expected.
const END: usize = 640;

/// A name, cut at its end.
pub(crate) fn name(mut text: String) -> String {
    if text.len() > NAME {
        text.truncate(boundary(&text, NAME));
        text.shrink_to_fit();
        text.push('…');
    }
    text
}

/// A sentence, cut in its middle.
pub(crate) fn sentence(text: String) -> String {
    if text.len() <= SENTENCE {
        return text;
    }
    let begin = &text[..boundary(&text, SENTENCE - END)];
    let end = &text[boundary(&text, text.len() - END)..];
    format!("{begin}… ({} bytes left out) …{end}", text.len() - begin.len() - end.len())
}

/// The last place up to `at` where no character is cut in two.
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

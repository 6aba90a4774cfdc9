//! The frame of every page, and text with code in it.

use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("style.css");

/// A whole page.
pub(crate) fn page(title: &str, navigation: &Markup, main: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                nav {
                    a class="brand" href="/docs" { "Redrive" small { "API " (env!("CARGO_PKG_VERSION")) } }
                    (navigation)
                    a class="raw" href="/openapi.json" { "openapi.json" }
                }
                main { (main) }
            }
        }
    };
    page.into_string()
}

/// Text with `code` in backticks, as HTML.
pub(crate) fn prose(text: &str) -> Markup {
    html! {
        @for (at, part) in text.split('`').enumerate() {
            @if at % 2 == 0 { (part) } @else { code { (part) } }
        }
    }
}

/// What a heading is linked by.
pub(crate) fn anchor(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    format!("doc-{}", name.chars().map(plain).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_code_is_marked() {
        assert_eq!(prose("a <b> `c & d` e").into_string(), "a &lt;b&gt; <code>c &amp; d</code> e");
    }
}

//! The frame of every page, and text with code in it.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("search.js");

/// A browser applies this style and runs this script, and loads nothing. The search of a problem's page asks this server
/// for the reference.
pub(crate) static SECURITY_POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    format!(
        "default-src 'none'; style-src {}; script-src {}; connect-src 'self'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'",
        hash(STYLE),
        hash(SCRIPT)
    )
});

/// What links to other pages begin with. They are relative, so that they also work behind a proxy that serves the API under a
/// prefix.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Root(&'static str);

impl Root {
    /// Of a page such as `/docs`.
    pub(crate) const HERE: Root = Root("");
    /// Of a page such as `/problems/NAME`.
    pub(crate) const ABOVE: Root = Root("../");

    /// The link to a page, whose path begins with a slash.
    pub(crate) fn link(self, path: &str) -> String {
        format!("{}{}", self.0, path.trim_start_matches('/'))
    }
}

/// A whole page.
pub(crate) fn page(title: &str, root: Root, navigation: &Markup, main: &Markup) -> String {
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
                a class="skip" href="#main" { "Skip to the text" }
                div class="side" {
                    header class="bar" {
                        a class="brand" href=(root.link("/docs")) { "Redrive" small { "API " (env!("CARGO_PKG_VERSION")) } }
                        (search())
                        // A popover opens, and closes by Escape or a tap elsewhere, without a script.
                        button class="menu-button" type="button" popovertarget="menu" { "Menu" }
                    }
                    nav id="menu" popover aria-label="Contents" {
                        (navigation)
                        a class="raw" href=(root.link("/openapi.json")) { "openapi.json" }
                    }
                }
                main id="main" { (main) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

/// The search. It needs its script, which shows it.
fn search() -> Markup {
    html! {
        div class="search" role="search" hidden {
            label class="unseen" for="search" { "Search operations, fields, documents and problems" }
            input id="search" type="search" placeholder="Search" role="combobox" aria-expanded="false"
                aria-controls="results" aria-autocomplete="list" aria-keyshortcuts="/" autocomplete="off"
                autocapitalize="none" spellcheck="false" enterkeyhint="go";
            kbd aria-hidden="true" { "/" }
            p class="unseen" role="status" {}
            div class="panel" hidden {
                p class="message" hidden {}
                div id="results" role="listbox" aria-label="Matches" {}
                p class="keys" aria-hidden="true" {
                    span { kbd { "↑" } kbd { "↓" } "choose" }
                    span { kbd { "↵" } "open" }
                    span { kbd { "Esc" } "clear" }
                }
            }
        }
    }
}

/// Text with `code` in backticks, as HTML.
pub(crate) fn prose(text: &str) -> Markup {
    html! {
        @for (at, part) in text.split('`').enumerate() {
            @if at % 2 == 0 { (part) } @else { code { (part) } }
        }
    }
}

/// A path as code in which a line may break before a slash.
pub(crate) fn path(path: &str) -> Markup {
    html! {
        code {
            @for (at, part) in path.split('/').enumerate() {
                @if at > 0 {
                    @if at > 1 { wbr; }
                    "/"
                }
                (part)
            }
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

    #[test]
    fn a_path_may_break_before_every_slash_but_the_first() {
        assert_eq!(path("/a/{b}/c").into_string(), "<code>/a<wbr>/{b}<wbr>/c</code>");
    }
}

//! The frame of every page, and the small things of HTML.

const STYLE: &str = include_str!("style.css");

/// A whole page.
pub(crate) fn page(title: &str, navigation: &str, main: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>{title}</title><style>{STYLE}</style></head>\
         <body><nav><a class=\"brand\" href=\"/docs\">Redrive<small>API {version}</small></a>{navigation}\
         <a class=\"raw\" href=\"/openapi.json\">openapi.json</a></nav><main>{main}</main></body></html>\n",
        title = escape(title),
        version = env!("CARGO_PKG_VERSION"),
    )
}

/// Text as HTML.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Text with `code` in backticks, as HTML.
pub(crate) fn prose(text: &str) -> String {
    let mut html = String::with_capacity(text.len() + 32);
    for (at, part) in text.split('`').enumerate() {
        match at % 2 {
            0 => html.push_str(&escape(part)),
            _ => html.push_str(&format!("<code>{}</code>", escape(part))),
        }
    }
    html
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
        assert_eq!(prose("a <b> `c & d` e"), "a &lt;b&gt; <code>c &amp; d</code> e");
    }
}

//! Examples: the call as a curl command, the answer as JSON.

use maud::{Markup, html};

use crate::rest::route::{Document, Route};

/// The call and its answer, side by side with what they explain.
pub(crate) fn panel(route: &Route) -> Markup {
    html! {
        div class="code" {
            h4 { "Request" }
            pre { code { (curl_command(route)) } }
            @if !route.example.answer.is_empty() {
                h4 { "Answer" }
                pre { code { (highlight(route.example.answer)) } }
            }
        }
    }
}

/// The call, to be pasted into a shell.
pub(crate) fn curl_command(route: &Route) -> String {
    let mut command = String::from("curl");
    if route.request.is_none() && route.method != http::Method::GET {
        command.push_str(&format!(" -X {}", route.method));
    }
    command.push_str(&format!(" {}", quote(&format!("http://{}{}", super::HOST, route.example.target))));
    for header in route.example.headers {
        command.push_str(&format!(" \\\n  -H {}", quote(header)));
    }
    match &route.request {
        Some(Document::Json { example, .. }) => {
            command.push_str(&format!(" \\\n  -H 'content-type: application/json' \\\n  -d {}", quote(example)));
        }
        Some(Document::Bytes { example, .. }) => command.push_str(&format!(" \\\n  --data-binary {example}")),
        None => {}
    }
    command
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// JSON with its names, texts, numbers and words marked.
fn highlight(json: &str) -> Markup {
    let mut tokens = Vec::new();
    let mut rest = json;
    while let Some(first) = rest.chars().next() {
        let (length, class) = match first {
            '"' => {
                let length = quoted_length(rest);
                (length, if rest[length..].trim_start().starts_with(':') { "k" } else { "s" })
            }
            'a'..='z' => (rest.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(rest.len()), "w"),
            '0'..='9' | '-' => (rest.find(|c: char| !matches!(c, '0'..='9' | '-' | '.')).unwrap_or(rest.len()), "n"),
            other => (other.len_utf8(), ""),
        };
        tokens.push((class, &rest[..length]));
        rest = &rest[length..];
    }
    html! {
        @for (class, token) in tokens {
            @if class.is_empty() { (token) } @else { i class=(class) { (token) } }
        }
    }
}

/// How long the text in quotes is that `rest` begins with.
fn quoted_length(rest: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_marked_and_otherwise_unchanged() {
        let marked = highlight(r#"{ "a\"<": [-1.5, null, "x"] }"#);
        assert_eq!(
            marked.into_string(),
            "{ <i class=\"k\">&quot;a\\&quot;&lt;&quot;</i>: [<i class=\"n\">-1.5</i>, <i class=\"w\">null</i>, \
             <i class=\"s\">&quot;x&quot;</i>] }"
        );
    }
}

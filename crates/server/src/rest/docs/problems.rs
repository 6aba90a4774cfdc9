//! What the types of problems mean: a part of the reference, and pages of their own.

use super::html::{self, escape, prose};
use crate::rest::problem::{Kind, kind};

/// What a type is linked by within the reference.
pub(crate) fn anchor(name: &str) -> String {
    format!("problem-{name}")
}

/// The part of the reference.
pub(crate) fn section() -> String {
    let mut section = String::from(
        "<section class=\"group\" id=\"problems\"><h2>Problems</h2><p class=\"lead\">Every error is a problem detail \
         of one of these types.</p>",
    );
    for kind in kind::ALL {
        section.push_str(&format!("<article class=\"document\" id=\"{}\">{}</article>", anchor(kind.name), one(kind)));
    }
    section.push_str("</section>");
    section
}

/// The page that lists all types.
pub(crate) fn problem_list() -> String {
    html::page("Problems · Redrive", NAVIGATION, &section())
}

/// The page of one type.
pub(crate) fn problem_page(kind: &Kind) -> String {
    let main = format!("<section class=\"group\"><article class=\"document\">{}</article></section>", one(kind));
    html::page(&format!("{} · Redrive", kind.title), NAVIGATION, &main)
}

const NAVIGATION: &str = "<a class=\"nav-top\" href=\"/docs\">API reference</a><a href=\"/problems\">All problems</a>";

fn one(kind: &Kind) -> String {
    let class = if kind.status >= 500 { "bad" } else { "off" };
    format!(
        "<h3>{}</h3><p class=\"path\"><b class=\"status {class}\">{}</b><a href=\"{uri}\"><code>{uri}</code></a></p><p>{}</p>",
        escape(kind.title),
        kind.status,
        prose(kind.explanation),
        uri = kind.uri(),
    )
}

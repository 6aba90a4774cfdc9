//! What the types of problems mean: a part of the reference, and pages of their own.

use maud::{Markup, html};

use super::html::{self, Root, prose};
use crate::rest::problem::{Kind, kind};

/// What a type is linked by within the reference.
pub(crate) fn anchor(name: &str) -> String {
    format!("problem-{name}")
}

/// The part of the reference, for a page with these links.
pub(crate) fn section(root: Root) -> Markup {
    html! {
        section class="group" id="problem-types" {
            h2 { "Problems" }
            p class="lead" { "Every error is a problem detail of one of these types." }
            @for kind in kind::ALL {
                article class="document" id=(anchor(kind.name)) data-kind="Problems" { (one(kind, root)) }
            }
        }
    }
}

/// The page that lists all types.
pub(crate) fn problem_list() -> String {
    html::page("Problems · Redrive", Root::HERE, &navigation(Root::HERE), &section(Root::HERE))
}

/// The page of one type.
pub(crate) fn problem_page(kind: &Kind) -> String {
    let main = html! { section class="group" { article class="document" { (one(kind, Root::ABOVE)) } } };
    html::page(&format!("{} · Redrive", kind.title), Root::ABOVE, &navigation(Root::ABOVE), &main)
}

fn navigation(root: Root) -> Markup {
    html! {
        a class="nav-top" href=(root.link("/docs")) { "API reference" }
        a href=(root.link("/problems")) { "All problems" }
    }
}

fn one(kind: &Kind, root: Root) -> Markup {
    let class = if kind.status >= 500 { "bad" } else { "off" };
    let uri = kind.uri();
    html! {
        h3 { (kind.title) }
        p class="path" {
            b class={ "status " (class) } { (kind.status) }
            a href=(root.link(&uri)) { (html::path(&uri)) }
        }
        p { (prose(kind.explanation)) }
    }
}

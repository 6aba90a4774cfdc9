//! The API as pages to read: made from the table of routes and the schemas, self-contained, without scripts.

mod example;
mod fields;
mod html;
mod operation;
mod overview;
mod problems;

pub(crate) use problems::{problem_list, problem_page};

use std::sync::LazyLock;

use maud::{Markup, html};

use super::openapi;
use super::route::Group;
use super::routes::ROUTES;

/// Stands for the host in the page that is kept, and is replaced by the one that the reader came by.
const HOST: &str = "{host}";

static PAGE: LazyLock<String> = LazyLock::new(|| {
    let document = openapi::document();
    let schemas = &document["components"]["schemas"];
    let main = html! {
        (overview::section())
        @for group in Group::ALL {
            section class="group" id=(html::anchor(group.name())) {
                h2 { (group.name()) }
                p class="lead" { (html::prose(group.description())) }
                @for route in ROUTES.iter().filter(|route| route.group == group) {
                    (operation::section(route, &document))
                }
            }
        }
        (fields::documents(schemas))
        (problems::section())
    };
    html::page("Redrive API reference", &navigation(schemas), &main)
});

/// The reference, with examples for the host that the reader came by.
pub(crate) fn reference_page(host: Option<&str>) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    let host = host.filter(|host| !host.is_empty() && host.bytes().all(is_plain)).unwrap_or("localhost");
    PAGE.replace(HOST, host)
}

fn navigation(schemas: &serde_json::Value) -> Markup {
    html! {
        a class="nav-top" href="#overview" { "Overview" }
        @for group in Group::ALL {
            h3 { a href={ "#" (html::anchor(group.name())) } { (group.name()) } }
            @for route in ROUTES.iter().filter(|route| route.group == group) {
                a href={ "#" (route.id) } { (operation::verb(route)) (route.summary) }
            }
        }
        h3 { a href="#documents" { "Documents" } }
        @for (name, _) in schemas.as_object().into_iter().flatten() {
            a href={ "#" (html::anchor(name)) } { (name) }
        }
        h3 { a href="#problems" { "Problems" } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_within_the_page_leads_somewhere() {
        let page = reference_page(Some("127.0.0.1:7373"));
        for link in page.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(page.contains(&format!("id=\"{link}\"")), "#{link}");
        }
        assert!(page.contains("http://127.0.0.1:7373/retry-tasks"));
    }

    #[test]
    fn the_page_needs_no_network_and_no_script() {
        let page = reference_page(None);
        for forbidden in ["<script", "<link", "src=", "@import", "url("] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
    }

    #[test]
    fn a_host_that_is_none_is_not_shown() {
        for host in ["<script>", "a\"b", "", "a b"] {
            assert!(reference_page(Some(host)).contains("http://localhost/retry-tasks"), "{host:?}");
        }
    }
}

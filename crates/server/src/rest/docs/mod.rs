//! The API as pages to read: made from the table of routes and the schemas.
//!
//! A page loads nothing. It has one style and one script, both inside it, and the browser is told to apply no other
//! (`html::SECURITY_POLICY`). The script (`search.js`) adds the search; without it everything can be read and reached.

mod example;
mod fields;
mod html;
mod operation;
mod overview;
mod problems;

pub(crate) use html::SECURITY_POLICY;
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
        (problems::section(html::Root::HERE))
    };
    html::page("Redrive API reference", html::Root::HERE, &navigation(schemas), &main)
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
        h3 { a href="#problem-types" { "Problems" } }
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use sha2::{Digest as _, Sha256};

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
    fn links_between_pages_are_relative_to_each_page() {
        let problem = problem_page(crate::rest::problem::kind::ALL[0]);
        for (page, depth) in [(reference_page(None), ""), (problem_list(), ""), (problem, "../")] {
            let links = page.split(" href=\"").skip(1).filter_map(|rest| rest.split('"').next());
            let others: Vec<_> = links.filter(|link| !link.starts_with('#')).collect();
            for link in &others {
                let path = link.strip_prefix(depth).unwrap_or_else(|| panic!("{link} is not relative to its page"));
                assert!(["docs", "problems", "openapi.json"].contains(&path.split('/').next().unwrap()), "{link}");
            }
            assert!(others.len() > 2, "{others:?}");
        }
    }

    #[test]
    fn no_two_parts_of_the_page_have_the_same_id() {
        let page = reference_page(None);
        let mut ids = std::collections::BTreeSet::new();
        for id in page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(ids.insert(id), "{id} twice");
        }
        for id in ["submitTask.Idempotency-Key", "submitTask.body.targetUrl", "doc-submission.targetUrl"] {
            assert!(ids.contains(id), "{id}");
        }
    }

    #[test]
    fn a_page_loads_nothing_and_has_one_style_and_one_script_of_its_own() {
        let problem = problem_page(crate::rest::problem::kind::ALL[0]);
        for page in [reference_page(None), problem_list(), problem] {
            for forbidden in ["<link", "<img", "<iframe", "src=", "@import", "url(", "style=\"", " onclick="] {
                assert!(!page.contains(forbidden), "{forbidden}");
            }
            assert_eq!((page.matches("<style").count(), page.matches("<script").count()), (1, 1));
            for (tag, directive) in [("style", "style-src"), ("script", "script-src")] {
                let (_, rest) = page.split_once(&format!("<{tag}>")).unwrap();
                let (text, _) = rest.split_once(&format!("</{tag}>")).unwrap();
                let hash = STANDARD.encode(Sha256::digest(text));
                assert!(SECURITY_POLICY.contains(&format!("{directive} 'sha256-{hash}';")), "{tag}");
            }
        }
        assert!(SECURITY_POLICY.starts_with("default-src 'none';"), "what is not listed is forbidden");
    }

    #[test]
    fn a_host_that_is_none_is_not_shown() {
        for host in ["<script>", "a\"b", "", "a b"] {
            assert!(reference_page(Some(host)).contains("http://localhost/retry-tasks"), "{host:?}");
        }
    }
}

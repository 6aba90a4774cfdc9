//! The pages to read.

use crate::world::{Ask, World};

#[tokio::test]
async fn the_reference_is_a_page_and_the_root_leads_to_it() {
    let world = World::start().await;
    let root = world.get("/").await;
    assert_eq!((root.status, root.header("location")), (307, Some("/docs")));
    let page = world.ask(Ask::get("/docs").header("host", "retry.localhost:7373")).await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let document = redrive_server::rest::openapi_document();
    let text = page.text().replace("<wbr>", "");
    for (path, item) in document["paths"].as_object().unwrap() {
        assert!(text.contains(&format!("<code>{path}</code>")), "{path}");
        for operation in item.as_object().unwrap().values() {
            assert!(text.contains(&format!("id=\"{}\"", operation["operationId"].as_str().unwrap())));
        }
    }
}

#[tokio::test]
async fn every_type_of_problem_has_its_page() {
    let world = World::start().await;
    let document = redrive_server::rest::openapi_document().to_string();
    let mut types: Vec<&str> =
        document.split("\"/problems/").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    types.sort_unstable();
    types.dedup();
    assert!(types.len() > 15, "{types:?}");
    let list = world.get("/problems").await.text();
    for name in types.into_iter().filter(|name| !name.contains('{')) {
        let page = world.get(&format!("/problems/{name}")).await;
        assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")), "{name}");
        assert!(page.header("content-security-policy").unwrap().starts_with("default-src 'none'; "), "{name}");
        assert!(list.contains(&format!("href=\"problems/{name}\"")), "{name}");
    }
    world.get("/problems/none").await.problem(404, "not-found");
}

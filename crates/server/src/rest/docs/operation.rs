//! One operation of the reference.

use maud::{Markup, html};
use serde_json::Value;

use super::html::{anchor, path, prose};
use super::{example, fields};
use crate::rest::route::{ParameterLocation, Route};

/// What a route is, takes and answers; `document` is the OpenAPI document.
pub(crate) fn section(route: &Route, document: &Value) -> Markup {
    let operation = &document["paths"][route.path][route.method.as_str().to_lowercase()];
    let schemas = &document["components"]["schemas"];
    html! {
        article class="operation" id=(route.id) data-kind="Operations" {
            div class="text" {
                h3 { (route.summary) }
                p class="path" { (verb(route)) (path(route.path)) }
                p { (prose(route.description)) }
                (parameters(route, operation))
                (request(route, operation, schemas))
                (answers(operation))
            }
            (example::panel(route))
        }
    }
}

/// The method of a route, in its colour.
pub(crate) fn verb(route: &Route) -> Markup {
    let verb = route.method.as_str();
    html! { span class={ "verb " (verb.to_lowercase()) } { (verb) } }
}

fn parameters(route: &Route, operation: &Value) -> Markup {
    let rows = |location: ParameterLocation| {
        route.parameters.iter().enumerate().filter(move |(_, each)| each.location == location).map(|(at, parameter)| {
            let mut schema = operation["parameters"][at]["schema"].clone();
            if let Some(schema) = schema.as_object_mut() {
                schema.insert("description".into(), parameter.description.into());
            }
            fields::row(route.id, parameter.name, &schema, &html! {})
        })
    };
    html! {
        @for (location, title) in [(ParameterLocation::Path, "In the path"), (ParameterLocation::Query, "In the query"), (ParameterLocation::Header, "Headers")] {
            @if route.parameters.iter().any(|parameter| parameter.location == location) {
                h4 { (title) }
                dl class="fields" {
                    @for row in rows(location) { (row) }
                }
            }
        }
    }
}

fn request(route: &Route, operation: &Value, schemas: &Value) -> Markup {
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    html! {
        @if !schema.is_null() {
            h4 { "Document" }
            (fields::of(&format!("{}.body", route.id), schema, schemas))
        }
    }
}

fn answers(operation: &Value) -> Markup {
    let class = |status: &str| match status.as_bytes().first() {
        Some(b'2') => "good",
        Some(b'3') => "off",
        _ => "bad",
    };
    html! {
        h4 { "Answers" }
        dl class="answers" {
            @for (status, response) in operation["responses"].as_object().into_iter().flatten() {
                div {
                    dt { b class={ "status " (class(status)) } { (status) } }
                    dd {
                        @if class(status) == "bad" { (problems(response)) } @else { (answer(response)) }
                    }
                }
            }
        }
    }
}

fn answer(response: &Value) -> Markup {
    let schema = &response["content"]["application/json"]["schema"];
    html! {
        @if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
            span class="type" { a href={ "#" (anchor(name)) } { (name) } }
        }
        (prose(response["description"].as_str().unwrap_or_default()))
        @for (name, header) in response["headers"].as_object().into_iter().flatten() {
            div class="header" { code { (name) } " " (prose(header["description"].as_str().unwrap_or_default())) }
        }
    }
}

fn problems(response: &Value) -> Markup {
    let types = response["x-problem-types"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let links = types
        .filter_map(|path| path.rsplit('/').next())
        .map(|name| html! { a class="problem" href={ "#" (super::problems::anchor(name)) } { (name) } });
    fields::joined(links, " ")
}

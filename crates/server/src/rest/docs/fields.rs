//! Schemas as lists of fields.

use maud::{Markup, Render, html};
use serde_json::Value;

use super::html::{anchor, prose};

/// Every document of the API.
pub(crate) fn documents(schemas: &Value) -> Markup {
    html! {
        section class="group" id="documents" {
            h2 { "Documents" }
            p class="lead" { "What goes in and out, field by field." }
            @for (name, schema) in schemas.as_object().into_iter().flatten() {
                article class="document" id=(anchor(name)) data-kind="Documents" {
                    h3 { (name) }
                    p { (prose(text(schema, "description"))) }
                    @match schema.get("properties") {
                        Some(_) => (list(&anchor(name), schema)),
                        None => p class="type" { (type_of(schema)) },
                    }
                }
            }
        }
    }
}

/// The fields of a schema, which may only refer to another one; `owner` is what the links to them begin with.
pub(crate) fn of(owner: &str, schema: &Value, schemas: &Value) -> Markup {
    match reference(schema) {
        Some(name) => list(owner, &schemas[name]),
        None => list(owner, schema),
    }
}

fn list(owner: &str, schema: &Value) -> Markup {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return html! {} };
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    // Most fields of a request are optional, most fields of an answer are there: only the exception is marked.
    let is_request = schema.get("additionalProperties") == Some(&Value::Bool(false));
    let flag = |name: &str| match (is_request, required.contains(&name)) {
        (true, true) => html! { small class="required" { "required" } },
        (false, false) => html! { small { "may be left out" } },
        _ => html! {},
    };
    html! {
        dl class="fields" {
            @for (name, property) in properties { (row(owner, name, property, &flag(name))) }
        }
    }
}

/// One field or parameter of an operation or a document, linked as `#owner.name`.
pub(crate) fn row(owner: &str, name: &str, schema: &Value, flag: &Markup) -> Markup {
    let description = text(schema, "description");
    html! {
        div id={ (owner) "." (name) } data-kind="Fields" {
            dt { code { (name) } (flag) }
            dd class="type" { (type_of(schema)) }
            @if !description.is_empty() { dd { (prose(description)) } }
        }
    }
}

/// A schema's type in a few words, with links to what it refers to.
fn type_of(schema: &Value) -> Markup {
    if let Some(name) = reference(schema) {
        return html! { a href={ "#" (anchor(name)) } { (name) } };
    }
    for key in ["oneOf", "anyOf", "allOf"] {
        if let Some(options) = schema.get(key).and_then(Value::as_array) {
            return joined(options.iter().map(type_of), " or ");
        }
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return joined(values.iter().filter_map(Value::as_str).map(|value| html! { code { (value) } }), " ");
    }
    if let Some(value) = schema.get("const") {
        return html! { code { (value.as_str().unwrap_or_default()) } };
    }
    match schema.get("type") {
        Some(Value::String(name)) => named_type(name, schema),
        Some(Value::Array(names)) => {
            joined(names.iter().filter_map(Value::as_str).map(|name| named_type(name, schema)), " or ")
        }
        _ => "any".render(),
    }
}

/// Several pieces with a text between them.
pub(crate) fn joined(pieces: impl Iterator<Item = Markup>, between: &str) -> Markup {
    html! {
        @for (at, piece) in pieces.enumerate() {
            @if at > 0 { (between) }
            (piece)
        }
    }
}

fn named_type(name: &str, schema: &Value) -> Markup {
    let format = text(schema, "format");
    match name {
        "array" => html! { "list of " (schema.get("items").map_or_else(|| "any".render(), type_of)) },
        "object" => match schema.get("additionalProperties").filter(|values| values.is_object()) {
            Some(values) => html! { "object of " (type_of(values)) },
            None => "object".render(),
        },
        "string" if format == "date-time" => "RFC 3339 text".render(),
        "string" if format == "uuid" => "UUID".render(),
        "string" => "text".render(),
        "integer" => match (schema.get("minimum"), schema.get("maximum")) {
            (Some(least), Some(most)) if schema.get("default").is_some() => {
                format_args!("integer, {least} to {most}, {} by default", schema["default"]).render()
            }
            _ => "integer".render(),
        },
        other => other.render(),
    }
}

fn reference(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.rsplit('/').next()
}

fn text<'a>(schema: &'a Value, key: &str) -> &'a str {
    schema.get(key).and_then(Value::as_str).unwrap_or_default()
}

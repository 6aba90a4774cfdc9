//! Schemas as tables of fields.

use serde_json::Value;

use super::html::{anchor, escape, prose};

/// Every document of the API.
pub(crate) fn documents(schemas: &Value) -> String {
    let mut section = String::from(
        "<section class=\"group\" id=\"documents\"><h2>Documents</h2>\
         <p class=\"lead\">What goes in and out, field by field.</p>",
    );
    for (name, schema) in schemas.as_object().into_iter().flatten() {
        section.push_str(&format!("<article class=\"document\"><h3 id=\"{}\">{}</h3>", anchor(name), escape(name)));
        section.push_str(&format!("<p>{}</p>", prose(text(schema, "description"))));
        match schema.get("properties") {
            Some(_) => section.push_str(&table(schema)),
            None => section.push_str(&format!("<p class=\"type\">{}</p>", type_of(schema))),
        }
        section.push_str("</article>");
    }
    section.push_str("</section>");
    section
}

/// The fields of a schema, which may only refer to another one.
pub(crate) fn of(schema: &Value, schemas: &Value) -> String {
    match reference(schema) {
        Some(name) => table(&schemas[name]),
        None => table(schema),
    }
}

fn table(schema: &Value) -> String {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return String::new() };
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    // What comes in is mostly optional, what goes out is mostly there: the exception is worth a word.
    let comes_in = schema.get("additionalProperties") == Some(&Value::Bool(false));
    let mut table = String::from("<table class=\"fields\">");
    for (name, property) in properties {
        let flag = match (comes_in, required.contains(&name.as_str())) {
            (true, true) => "<small class=\"required\">required</small>",
            (false, false) => "<small>may be left out</small>",
            _ => "",
        };
        table.push_str(&row(name, property, flag));
    }
    table.push_str("</table>");
    table
}

/// One field or parameter.
pub(crate) fn row(name: &str, schema: &Value, flag: &str) -> String {
    format!(
        "<tr><th><code>{}</code>{flag}</th><td><span class=\"type\">{}</span>{}</td></tr>",
        escape(name),
        type_of(schema),
        prose(text(schema, "description")),
    )
}

/// A schema's type in a few words, with links to what it refers to.
fn type_of(schema: &Value) -> String {
    if let Some(name) = reference(schema) {
        return format!("<a href=\"#{}\">{}</a>", anchor(name), escape(name));
    }
    for key in ["oneOf", "anyOf", "allOf"] {
        if let Some(options) = schema.get(key).and_then(Value::as_array) {
            return options.iter().map(type_of).collect::<Vec<_>>().join(" or ");
        }
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let values: Vec<String> =
            values.iter().filter_map(Value::as_str).map(|value| format!("<code>{}</code>", escape(value))).collect();
        return values.join(" ");
    }
    if let Some(value) = schema.get("const") {
        return format!("<code>{}</code>", escape(value.as_str().unwrap_or_default()));
    }
    match schema.get("type") {
        Some(Value::String(name)) => named_type(name, schema),
        Some(Value::Array(names)) => {
            let names = names.iter().filter_map(Value::as_str).map(|name| named_type(name, schema));
            names.collect::<Vec<_>>().join(" or ")
        }
        _ => "any".into(),
    }
}

fn named_type(name: &str, schema: &Value) -> String {
    let format = text(schema, "format");
    match name {
        "array" => format!("list of {}", schema.get("items").map_or("any".into(), type_of)),
        "object" => match schema.get("additionalProperties").filter(|values| values.is_object()) {
            Some(values) => format!("object of {}", type_of(values)),
            None => "object".into(),
        },
        "string" if format == "date-time" => "RFC 3339 text".into(),
        "string" if format == "uuid" => "UUID".into(),
        "string" => "text".into(),
        "integer" => match (schema.get("minimum"), schema.get("maximum")) {
            (Some(least), Some(most)) if schema.get("default").is_some() => {
                format!("integer, {least} to {most}, {} by default", schema["default"])
            }
            _ => "integer".into(),
        },
        other => escape(other),
    }
}

fn reference(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.rsplit('/').next()
}

fn text<'a>(schema: &'a Value, key: &str) -> &'a str {
    schema.get(key).and_then(Value::as_str).unwrap_or_default()
}

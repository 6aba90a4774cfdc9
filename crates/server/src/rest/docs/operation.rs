//! One operation of the reference.

use serde_json::Value;

use super::html::{anchor, escape, prose};
use super::{example, fields};
use crate::rest::route::{Place, Route};

/// What a route is, takes and answers; `document` is the OpenAPI document.
pub(crate) fn section(route: &Route, document: &Value) -> String {
    let operation = &document["paths"][route.path][route.method.as_str().to_lowercase()];
    let schemas = &document["components"]["schemas"];
    let verb = route.method.as_str();
    format!(
        "<article class=\"operation\" id=\"{id}\"><div class=\"text\"><h3>{summary}</h3>\
         <p class=\"path\"><span class=\"verb {class}\">{verb}</span><code>{path}</code></p><p>{description}</p>\
         {parameters}{request}{answers}</div>{example}</article>",
        id = route.id,
        summary = escape(route.summary),
        class = verb.to_lowercase(),
        path = escape(route.path),
        description = prose(route.description),
        parameters = parameters(route, operation),
        request = request(operation, schemas),
        answers = answers(operation),
        example = example::panel(route),
    )
}

fn parameters(route: &Route, operation: &Value) -> String {
    let mut html = String::new();
    for (place, title) in [(Place::Path, "In the path"), (Place::Query, "In the query"), (Place::Header, "Headers")] {
        let mut rows = String::new();
        for (at, parameter) in route.parameters.iter().enumerate().filter(|(_, each)| each.place == place) {
            let mut schema = operation["parameters"][at]["schema"].clone();
            if let Some(schema) = schema.as_object_mut() {
                schema.insert("description".into(), parameter.description.into());
            }
            rows.push_str(&fields::row(parameter.name, &schema, ""));
        }
        if !rows.is_empty() {
            html.push_str(&format!("<h4>{title}</h4><table class=\"fields\">{rows}</table>"));
        }
    }
    html
}

fn request(operation: &Value, schemas: &Value) -> String {
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    if schema.is_null() {
        return String::new();
    }
    format!("<h4>Document</h4>{}", fields::of(schema, schemas))
}

fn answers(operation: &Value) -> String {
    let mut rows = String::new();
    for (status, response) in operation["responses"].as_object().into_iter().flatten() {
        let class = match status.as_bytes().first() {
            Some(b'2') => "good",
            Some(b'3') => "off",
            _ => "bad",
        };
        rows.push_str(&format!(
            "<tr><th><b class=\"status {class}\">{status}</b></th><td>{}</td></tr>",
            if class == "bad" { problems(response) } else { answer(response) },
        ));
    }
    format!("<h4>Answers</h4><table class=\"fields answers\">{rows}</table>")
}

fn answer(response: &Value) -> String {
    let mut html = String::new();
    let schema = &response["content"]["application/json"]["schema"];
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        html.push_str(&format!("<span class=\"type\"><a href=\"#{}\">{}</a></span>", anchor(name), escape(name)));
    }
    html.push_str(&prose(response["description"].as_str().unwrap_or_default()));
    for (name, header) in response["headers"].as_object().into_iter().flatten() {
        let description = prose(header["description"].as_str().unwrap_or_default());
        html.push_str(&format!("<div class=\"header\"><code>{}</code> {description}</div>", escape(name)));
    }
    html
}

fn problems(response: &Value) -> String {
    let types = response["x-problem-types"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let links = types
        .filter_map(|path| path.rsplit('/').next())
        .map(|name| format!("<a class=\"problem\" href=\"#{}\">{}</a>", super::problems::anchor(name), escape(name)));
    links.collect::<Vec<_>>().join(" ")
}

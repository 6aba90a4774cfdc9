//! The OpenAPI document: valid in itself, and true to what is served.

use serde_json::{Value, json};

use crate::world::{Ask, World};

/// Every operation: its path, its method and what the document says about it.
fn operations(document: &Value) -> Vec<(&str, &str, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    paths
        .iter()
        .flat_map(|(path, item)| item.as_object().unwrap().iter().map(move |(method, op)| (&**path, &**method, op)))
        .collect()
}

/// Every value in the document with the path to it.
fn walk<'v>(value: &'v Value, at: &str, visit: &mut impl FnMut(&str, &'v Value)) {
    visit(at, value);
    match value {
        Value::Object(members) => members.iter().for_each(|(name, inner)| walk(inner, &format!("{at}/{name}"), visit)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, inner)| walk(inner, &format!("{at}/{index}"), visit));
        }
        _ => {}
    }
}

#[tokio::test]
async fn the_served_document_is_the_generated_one() {
    let world = World::start().await;
    let answer = world.get("/openapi.json").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    assert_eq!(answer.json(), redrive_server::rest::openapi_document());
}

/// Each of these was refused by the server and permitted by the document.
#[tokio::test]
async fn what_is_refused_when_it_is_empty_must_not_be_empty_by_the_document() {
    // A value of these that is not valid is ignored.
    const NEVER_REFUSED: [&str; 4] = ["Prefer", "traceparent", "tracestate", "baggage"];
    let document = redrive_server::rest::openapi_document();
    for (path, method, operation) in operations(&document) {
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let (name, schema) = (parameter["name"].as_str().unwrap(), &parameter["schema"]);
            let is_free_text =
                schema["type"] == "string" && parameter["in"] != "path" && !NEVER_REFUSED.contains(&name);
            let is_bounded = ["pattern", "enum", "minLength"].iter().any(|word| !schema[word].is_null());
            assert!(!is_free_text || is_bounded, "{name} of {method} {path}");
        }
    }
    let upload = &document["paths"]["/blobs"]["post"]["requestBody"]["content"]["application/octet-stream"];
    assert_eq!(upload["schema"]["minLength"], 1);

    let world = World::start().await;
    for path in
        ["/retry-tasks?cursor=", "/retry-tasks?dependency=", "/retry-tasks?policyId=", "/retry-policies?cursor="]
    {
        world.get(path).await.problem(400, "invalid-parameter");
    }
    let late = "/retry-tasks?createdBefore=9223372036854775808";
    world.get(late).await.problem(400, "invalid-parameter");
    let empty = Ask::new("DELETE", "/retry-policies/default").header("if-match", "");
    world.ask(empty).await.problem(400, "invalid-parameter");
}

#[test]
fn the_document_has_what_openapi_3_1_asks_for() {
    let document = redrive_server::rest::openapi_document();
    assert_eq!(document["openapi"], "3.1.0");
    assert!(document["info"]["title"].is_string() && document["info"]["version"].is_string());
    let mut ids = Vec::new();
    for (path, method, operation) in operations(&document) {
        let place = format!("{method} {path}");
        assert!(["get", "post", "put", "delete"].contains(&method), "{place}");
        let id = operation["operationId"].as_str().unwrap();
        assert!(!ids.contains(&id), "{id} is there twice");
        ids.push(id);
        for required in ["summary", "description"] {
            assert!(!operation[required].as_str().unwrap().is_empty(), "{place} {required}");
        }
        let responses = operation["responses"].as_object().unwrap();
        assert!(responses.keys().any(|status| status.starts_with('2') || status.starts_with('3')), "{place}");
        for (status, response) in responses {
            assert!((100..600).contains(&status.parse::<u16>().unwrap()), "{place} {status}");
            assert!(!response["description"].as_str().unwrap().is_empty(), "{place} {status}");
        }
        if let Some(body) = operation.get("requestBody").filter(|_| path != "/blobs") {
            assert!(body["content"]["application/json"]["schema"].is_object(), "{place}");
            assert!(body["content"]["application/json"]["example"].is_object(), "{place}");
        }
    }
}

#[test]
fn every_reference_leads_to_a_schema_and_every_schema_is_referred_to() {
    let document = redrive_server::rest::openapi_document();
    let mut referred = Vec::new();
    walk(&document, "", &mut |at, value| {
        if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some_and(Value::is_object), "{reference} at {at}");
            referred.push(reference.rsplit('/').next().unwrap().to_owned());
        }
    });
    for name in document["components"]["schemas"].as_object().unwrap().keys() {
        assert!(referred.contains(name), "{name} is referred to by nothing");
    }
}

#[test]
fn every_schema_says_what_it_is() {
    let document = redrive_server::rest::openapi_document();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        assert!(schema["description"].is_string(), "{name}");
        let kinds = ["type", "oneOf", "anyOf", "enum", "$ref"];
        assert!(kinds.iter().any(|key| schema.get(*key).is_some()), "{name}");
        for (field, property) in schema["properties"].as_object().into_iter().flatten() {
            assert!(property["description"].is_string(), "{name}.{field}");
        }
        for required in schema["required"].as_array().into_iter().flatten() {
            assert!(schema["properties"].get(required.as_str().unwrap()).is_some(), "{name} {required}");
        }
    }
}

/// The bounds of a number, or of the numbers of a list, in a schema: the least and the most.
fn bounds(schema: &Value) -> (Value, Value) {
    (schema["minimum"].clone(), schema["maximum"].clone())
}

#[tokio::test]
async fn the_bounds_of_a_policys_fields_are_those_that_the_server_enforces() {
    let world = World::start().await;
    let document = redrive_server::rest::openapi_document();
    let properties = &document["components"]["schemas"]["PolicyInput"]["properties"];
    // Room for the largest values of the others.
    let roomy = json!({ "policyId": "p", "totalBudgetMs": 2_592_000_000_u64, "maxDelayMs": 2_592_000_000_u64 });
    let mut looked_at = 0;
    for (field, schema) in properties.as_object().unwrap() {
        let (is_list, numbers) = if schema["items"].is_object() { (true, &schema["items"]) } else { (false, schema) };
        let is_number =
            numbers["type"].to_string().contains("integer") || numbers["type"].to_string().contains("number");
        if !is_number {
            continue;
        }
        looked_at += 1;
        let (least, most) = bounds(numbers);
        let step = if numbers["type"].to_string().contains("number") { 0.001 } else { 1.0 };
        let above_most = json!(most.as_f64().unwrap() + step);
        let mut cases = vec![(most.clone(), true), (above_most, false)];
        match least.as_f64() {
            Some(least) => cases.extend([(json!(least), true), (json!(least - step), false)]),
            None => cases.extend([(json!(0.001), true), (numbers["exclusiveMinimum"].clone(), false)]),
        }
        for (value, is_valid) in cases {
            let value = if step == 1.0 { json!(value.as_f64().unwrap() as i64) } else { value };
            let mut policy = roomy.clone();
            policy[field] = if is_list { json!([value]) } else { value };
            match field.as_str() {
                "maxDelayMs" => policy["initialDelayMs"] = json!(1),
                "scheduleMs" => policy["backoff"] = json!("schedule"),
                "connectTimeoutMs" => policy["attemptTimeoutMs"] = json!(900_000),
                _ => {}
            }
            let answer = world.post("/retry-policies", &policy.to_string()).await;
            assert_eq!([200, 201].contains(&answer.status), is_valid, "{policy}: {}", answer.text());
        }
    }
    assert_eq!(looked_at, 11, "{properties:#}");
    let schedule = &properties["scheduleMs"];
    assert_eq!((&schedule["minItems"], &schedule["maxItems"]), (&json!(1), &json!(100)));
    for (length, is_valid) in [(0, false), (1, true), (100, true), (101, false)] {
        let policy = json!({ "policyId": "p", "backoff": "schedule", "scheduleMs": vec![1; length] });
        let answer = world.post("/retry-policies", &policy.to_string()).await;
        assert_eq!([200, 201].contains(&answer.status), is_valid, "{length}: {}", answer.text());
    }
}

#[test]
fn every_value_of_an_enum_is_explained() {
    let document = redrive_server::rest::openapi_document();
    for (name, value) in [
        ("TaskStatus", "IN_FLIGHT"),
        ("StatusReason", "dns-attempts"),
        ("AttemptOutcome", "overloaded"),
        ("ErrorKind", "not-sent"),
        ("WaitReason", "budget"),
        ("BreakerReason", "spentBudget"),
        ("DependencyStateName", "probing"),
        ("RecordState", "FAILED_RETRYABLE"),
    ] {
        let schema = &document["components"]["schemas"][name];
        let values = schema["enum"].as_array().unwrap();
        assert!(values.contains(&value.into()), "{name} {value}");
        for value in values {
            let explained = format!("`{}`: ", value.as_str().unwrap());
            assert!(schema["description"].as_str().unwrap().contains(&explained), "{name}: {explained}");
        }
    }
}

#[test]
fn every_path_parameter_is_declared_and_every_declared_one_is_in_the_path() {
    let document = redrive_server::rest::openapi_document();
    for (path, method, operation) in operations(&document) {
        let in_path: Vec<&str> = path.split('{').skip(1).filter_map(|rest| rest.split('}').next()).collect();
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        let mut names = Vec::new();
        for parameter in &parameters {
            let key = (parameter["in"].as_str().unwrap(), parameter["name"].as_str().unwrap());
            assert!(!names.contains(&key), "{method} {path} has {key:?} twice");
            assert!(["path", "query", "header"].contains(&key.0));
            assert!(parameter["schema"].is_object() && parameter["description"].is_string());
            names.push(key);
        }
        let declared: Vec<&str> =
            parameters.iter().filter(|each| each["in"] == "path").map(|each| each["name"].as_str().unwrap()).collect();
        assert_eq!(declared, in_path, "{method} {path}");
        assert!(parameters.iter().filter(|each| each["in"] == "path").all(|each| each["required"] == true));
    }
}

#[tokio::test]
async fn every_route_of_the_document_is_served_and_no_other_method_is() {
    let world = World::start().await;
    let document = redrive_server::rest::openapi_document();
    let paths = document["paths"].as_object().unwrap();
    for (path, item) in paths {
        let filled = path.replace("{name}", "internal-error").replace(['{', '}'], "x");
        // Its answer does not end otherwise.
        let filled = if path == "/events" { format!("{filled}?follow=false") } else { filled };
        for method in ["GET", "POST", "DELETE", "PUT", "PATCH"] {
            let answer = world.ask(Ask::new(method, &filled)).await;
            let is_unknown =
                answer.status == 405 || answer.status == 404 && answer.json()["type"] == "/problems/not-found";
            let served = item.get(method.to_lowercase()).is_some();
            assert_eq!(!is_unknown, served, "{method} {path}: {} {}", answer.status, answer.text());
        }
    }
}

/// The path with its parameters, for which there is a record or an event of the examples' execution if one is needed.
async fn prepared(world: &World, path: &str) -> String {
    let name = path.rsplit('/').next().unwrap();
    let filled = path.replace("{dependency}", "billing").replace("{consumer}", "billing");
    let filled = filled.replace("{operation}", "create-payment").replace("{key}", name).replace("{eventId}", name);
    let execution = r#""executionId":"7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2""#;
    let begin = match (path.starts_with("/idempotency-records/{"), path.contains("/{eventId}/")) {
        (true, _) if name != "reserve" => {
            let hash = "0".repeat(64);
            Some(Ask::post(
                &filled.replace(&format!("{name}/{name}"), &format!("{name}/reserve")),
                &format!(r#"{{"requestHash":"{hash}",{execution}}}"#),
            ))
        }
        (_, true) => {
            let event = filled.strip_suffix(&format!("/{name}")).unwrap();
            Some(Ask::post(event, &format!(r#"{{"mode":"begin",{execution}}}"#)))
        }
        _ => None,
    };
    if let Some(begin) = begin {
        let answer = world.ask(begin).await;
        assert_eq!(answer.status, 201, "{path}: {}", answer.text());
    }
    filled
}

#[tokio::test]
async fn the_examples_in_the_document_are_accepted() {
    let world = World::start().await;
    let document = redrive_server::rest::openapi_document();
    for (path, method, operation) in operations(&document) {
        let example = &operation["requestBody"]["content"]["application/json"]["example"];
        if example.is_null() {
            continue;
        }
        let filled = prepared(&world, path).await;
        let answer = world.ask(Ask::json(method, &filled, &example.to_string())).await;
        assert!([200, 201].contains(&answer.status), "{method} {path}: {}", answer.text());
        let shown = &operation["responses"][answer.status.to_string()]["content"]["application/json"]["example"];
        if path != "/retry-tasks/batch" {
            let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
            assert_eq!(keys(&answer.json()), keys(shown), "{method} {path}");
        }
    }
}

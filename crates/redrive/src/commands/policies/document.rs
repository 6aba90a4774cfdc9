//! Policies as files say them: TOML or JSON, one policy or several under `policies`.

use std::io::Read;
use std::path::Path;

use anyhow::{Context, bail};
use serde_json::{Map, Value};

/// The policies of a file, `-` being standard input.
pub(super) fn read(path: &Path) -> anyhow::Result<Vec<Value>> {
    let text = if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().lock().read_to_string(&mut text).context("cannot read standard input")?;
        text
    } else {
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?
    };
    parse(&text).with_context(|| format!("cannot use {}", path.display()))
}

fn parse(text: &str) -> anyhow::Result<Vec<Value>> {
    // No TOML document begins with a brace, and every JSON object does.
    let document: Map<String, Value> = if text.trim_start().starts_with('{') {
        serde_json::from_str(text).context("it is not JSON")?
    } else {
        toml::from_str(text).context("it is not TOML")?
    };
    let policies = match document.get("policies") {
        Some(_) if document.len() > 1 => bail!("beside `policies` there must be nothing else"),
        Some(Value::Array(policies)) => policies.clone(),
        Some(Value::Object(by_name)) => {
            by_name.iter().map(|(name, policy)| named(name, policy)).collect::<Result<_, _>>()?
        }
        Some(_) => bail!("`policies` must be a list or a table"),
        None => vec![Value::Object(document)],
    };
    if policies.is_empty() {
        bail!("there is no policy in it");
    }
    if let Some(nameless) = policies.iter().find(|policy| !policy["policyId"].is_string()) {
        bail!("a policy needs a policyId: {nameless}");
    }
    Ok(policies)
}

/// A policy whose name is its key: `[policies.webhooks]`.
fn named(name: &str, policy: &Value) -> anyhow::Result<Value> {
    let Value::Object(fields) = policy else { bail!("policies.{name} must be a table") };
    let mut fields = fields.clone();
    match fields.insert("policyId".into(), name.into()) {
        Some(other) if other != name => bail!("policies.{name} names itself {other}"),
        _ => Ok(Value::Object(fields)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_policy_or_several_in_either_language() {
        let webhooks = json!({"policyId": "webhooks", "maxAttempts": 3});
        for text in [
            "policyId = \"webhooks\"\nmaxAttempts = 3",
            "[[policies]]\npolicyId = \"webhooks\"\nmaxAttempts = 3",
            "[policies.webhooks]\nmaxAttempts = 3",
            r#"{"policyId": "webhooks", "maxAttempts": 3}"#,
            r#" {"policies": [{"policyId": "webhooks", "maxAttempts": 3}]}"#,
        ] {
            assert_eq!(parse(text).unwrap(), vec![webhooks.clone()], "{text}");
        }
    }

    #[test]
    fn what_is_no_policy_is_refused() {
        for text in [
            "",
            "{",
            "maxAttempts = 3",
            "policies = 3",
            "policies = []",
            "colour = \"red\"\n[[policies]]\npolicyId = \"a\"",
            "[policies.a]\npolicyId = \"b\"",
            "[policies]\na = 1",
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}

//! The policies of a file, for commands that use them.

use std::sync::Arc;

use redrive_core::PolicyId;
use redrive_core::policy::{Context, Policy, Spec};
use serde_json::Value as Json;

use crate::files::content::{DocumentPart, NamedPolicy, POLICY_ID, content};
use crate::files::document::{self, Step};
use crate::files::problem::{Problem, distinct};
use crate::files::shape::{self, PartialValue, ShapeError};
use crate::files::source::{Location, Source};

/// A policy of a file. Its fields are known and have the right types.
#[derive(Debug)]
pub struct FilePolicy {
    /// Its name.
    pub name: String,
    /// Its fields.
    pub spec: Spec,
    part: DocumentPart,
    source: Arc<Source>,
}

/// The policies of a file, or all problems; services are ignored.
pub fn policies(source: &Arc<Source>) -> Result<Vec<FilePolicy>, Vec<Problem>> {
    let content = content(source, &document::read(source)?);
    let mut problems = content.problems;
    let mut written = Vec::new();
    for NamedPolicy { name, part } in content.policies {
        if let Err(wrong) = PolicyId::try_new(&name) {
            problems.push(not_a_name(location(source, &part, &[]), &wrong));
        }
        let (spec, errors) = shape::read::<Spec>(&mut PartialValue::new(part.json.clone()), Context::Event);
        problems.extend(errors.into_iter().map(|wrong| located(source, &part, &[], wrong)));
        written.extend(spec.map(|spec| FilePolicy { name, spec, part, source: Arc::clone(source) }));
    }
    if !problems.is_empty() {
        return Err(distinct(problems));
    }
    if written.is_empty() {
        return Err(vec![Problem::new(source.location(None), "the file has no policy")]);
    }
    Ok(written)
}

impl FilePolicy {
    /// Its fields as they are written, with its `policyId`: the document for a server.
    pub fn document(&self) -> Json {
        let mut fields = self.part.json.clone();
        fields[POLICY_ID] = self.name.as_str().into();
        fields
    }

    /// The resolved policy, or the values that no server would accept, each with its location.
    pub fn resolve(&self) -> Result<Policy, Vec<Problem>> {
        Policy::resolve(&self.spec).map_err(|invalid| {
            let problem = |problem: &redrive_core::policy::FieldProblem| {
                let path: Vec<Step> = problem.field.split('.').map(|name| Step::Field(name.to_owned())).collect();
                Problem::new(location(&self.source, &self.part, &path), problem.to_string())
            };
            distinct(invalid.problems.iter().map(problem).collect())
        })
    }
}

/// The problem of an invalid policy name.
pub(crate) fn not_a_name(location: Location, wrong: &impl std::fmt::Display) -> Problem {
    Problem::new(location, format!("this is not a valid name of a policy: {wrong}"))
}

/// A shape error of a part, or of the value at `inside` of it, with its location.
pub(crate) fn located(source: &Arc<Source>, part: &DocumentPart, inside: &[Step], wrong: ShapeError) -> Problem {
    let path = [inside, &wrong.at].concat();
    let name = wrong.is_name.then(|| part.node.key_span_at(&path)).flatten();
    let location = name.map_or_else(|| location(source, part, &path), |name| source.location(Some(name)));
    Problem::new(location, wrong.wrong)
}

/// The location of a path from a part on.
pub(crate) fn location(source: &Arc<Source>, part: &DocumentPart, path: &[Step]) -> Location {
    source.location(Some(part.span_at(path)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(name: &str, text: &str) -> Result<Vec<Json>, Vec<String>> {
        let source = Source::try_new(name, text.as_bytes().to_vec()).unwrap();
        let written = policies(&source).map_err(|problems| problems.iter().map(ToString::to_string).collect());
        written.map(|written: Vec<FilePolicy>| written.iter().map(FilePolicy::document).collect())
    }

    #[test]
    fn one_policy_or_several_in_any_language() {
        let webhooks = json!({"policyId": "webhooks", "maxAttempts": 3});
        for text in [
            "policyId = \"webhooks\"\nmaxAttempts = 3",
            "policyId = \"webhooks\"\nmaxAttempts = 3\nversion = 7\ncreatedAt = 1\nversions = []\nfindings = []",
            "policyId = \"webhooks\"\nmaxAttempts = 3\nx-owner = \"team\"\n[[timetable]]\nattempt = 1",
            "x-common = { a = 1 }\n[policies.webhooks]\nmaxAttempts = 3\n[policies.webhooks.x-owner]\nname = \"team\"",
            r#"{"policies": [{"policyId": "webhooks", "maxAttempts": 3, "version": 1}], "nextCursor": null}"#,
            "[[policies]]\npolicyId = \"webhooks\"\nmaxAttempts = 3",
            "[policies.webhooks]\nmaxAttempts = 3",
            "[policies.webhooks]\npolicyId = \"webhooks\"\nmaxAttempts = 3",
            "[policies.webhooks]\nmaxAttempts = 3\n[[services]]\nname = \"a\"",
            r#"{"policyId": "webhooks", "maxAttempts": 3}"#,
            r#" {"policies": [{"policyId": "webhooks", "maxAttempts": 3}]}"#,
            "policyId: webhooks\nmaxAttempts: 3\n",
            "policies:\n- policyId: webhooks\n  maxAttempts: 3\n",
            "policies:\n  webhooks: {maxAttempts: 3}\n",
        ] {
            assert_eq!(read("-", text).unwrap(), std::slice::from_ref(&webhooks), "{text}");
        }
    }

    #[test]
    fn what_is_no_policy_is_refused_at_its_place() {
        for (text, expected) in [
            ("", "-: the file has no policy"),
            ("{", "-:1:1: this is not JSON: EOF while parsing an object"),
            ("maxAttempts = 3", "-:1:1: a policy needs a policyId"),
            ("policyId = 3", "-:1:12: a policyId must be text"),
            ("policies = 3", "-:1:12: policies must be a list, or a table by name"),
            ("policies = []", "-: the file has no policy"),
            ("services = []", "-: the file has no policy"),
            ("services = {}", "-: the file has no policy"),
            ("services = 3", "-:1:12: services must be a list, or a table by name"),
            ("policyId = \"a b\"", "-:1:12: this is not a valid name of a policy: "),
            ("nextCursor = \"a\"\n[[services]]\nname = \"a\"", "-:1:1: nextCursor is not known here; "),
            ("[policies.a]\nbackof = \"x\"", "-:2:1: there is no field backof; did you mean backoff?"),
            ("[policies.a]\nmaxAttempts = \"3\"", "-:2:15: this must be a whole number from 0, not the text \"3\""),
            ("[polices.a]\nmaxAttempts = 3", "-:1:2: polices is not known here; did you mean policies?"),
            (
                "colour = \"red\"\n[[policies]]\npolicyId = \"a\"",
                "-:1:1: colour is not known here; a file has policies and services",
            ),
            ("[policies.a]\npolicyId = \"b\"", "-:2:12: the policy a names itself \"b\""),
            ("[policies]\na = 1", "-:2:5: a policy must be a table, not a number"),
            ("[1, 2]", "-:1:1: a file must be a table, not a list"),
            ("[[policies]]\nmaxAttempts = 3", "-:1:1: a policy needs a policyId"),
        ] {
            let problems = read("-", text).unwrap_err();
            assert_eq!(problems.len(), 1, "{problems:?}");
            assert!(problems[0].starts_with(expected), "{text:?}: {problems:?}");
        }
    }

    #[test]
    fn a_value_that_no_server_takes_is_refused_at_its_place() {
        let source = Source::try_new("a.toml", b"policyId = \"a\"\nmaxAttempts = 0".to_vec()).unwrap();
        let problems = policies(&source).unwrap()[0].resolve().unwrap_err();
        assert_eq!(problems[0].to_string(), "a.toml:2:15: maxAttempts must be 1 to 100, got 0");
    }
}

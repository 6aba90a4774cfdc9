//! What is in a document: its policies and its services, one by one, each with its path.
//!
//! Not here: whether a policy's fields are right (`shape`), what they mean (`redrive_core`).

use std::ops::Range;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::document::{self, Entry, Node, Step, Value};
use crate::nearest::nearest;
use crate::problem::Problem;
use crate::source::Source;

const POLICIES: &str = "policies";
const SERVICES: &str = "services";
const POLICY_ID: &str = "policyId";

/// What the server shows a policy with besides its fields. It is ignored, so that what was shown can be written back.
const SHOWN_ONLY: [&str; 3] = ["version", "createdAt", "versions"];

/// The content of one document, as far as it could be told apart.
#[derive(Debug, Default)]
pub(crate) struct Content {
    /// The policies, in the order of the file.
    pub(crate) policies: Vec<Named>,
    /// The services, in the order of the file.
    pub(crate) services: Vec<Part>,
    /// What could not be told apart.
    pub(crate) problems: Vec<Problem>,
}

impl Content {
    /// Whether nothing was there, not even something wrong.
    pub(crate) fn is_empty(&self) -> bool {
        self.policies.is_empty() && self.services.is_empty() && self.problems.is_empty()
    }
}

/// A part of a document.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// The part as it is written.
    pub(crate) node: Node,
    /// What stands for it as a whole: its name.
    pub(crate) name_span: Range<usize>,
    /// Where it is, in words that stay the same when lines move.
    pub(crate) lasting_path: String,
    /// The fields that it has to say something with.
    pub(crate) json: Json,
}

impl Part {
    /// What in the file a path from this part on speaks of.
    pub(crate) fn span_at(&self, path: &[Step]) -> Range<usize> {
        self.node.span_at(path).unwrap_or_else(|| self.name_span.clone())
    }
}

/// A policy with its name.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    /// The policy's name.
    pub(crate) name: String,
    /// Its fields, without the name.
    pub(crate) part: Part,
}

/// The policies of a file, each with its `policyId` and its fields as they are written; services are passed over.
pub fn policies(source: &Arc<Source>) -> Result<Vec<Json>, Vec<Problem>> {
    let content = content(source, &document::read(source)?);
    if !content.problems.is_empty() {
        return Err(content.problems);
    }
    if content.policies.is_empty() {
        return Err(vec![Problem::new(source.spot(None), "there is no policy in it")]);
    }
    let with_id = |policy: Named| {
        let mut fields = policy.part.json;
        fields[POLICY_ID] = policy.name.into();
        fields
    };
    Ok(content.policies.into_iter().map(with_id).collect())
}

/// Tells the parts of a document apart.
pub(crate) fn content(source: &Arc<Source>, document: &Node) -> Content {
    let mut reader = Reader { source, content: Content::default() };
    match &document.value {
        Value::Table(entries) if is_single_policy(entries) => reader.policy(document, None),
        Value::Table(entries) => reader.sections(entries),
        _ => reader.problem(&document.span, format!("a file must be a table, not {}", document.kind())),
    }
    reader.content
}

/// A document without sections is one policy, unless one of its keys is the slip of a section's name.
fn is_single_policy(entries: &[Entry]) -> bool {
    let is_section = |entry: &Entry| {
        let holds_parts = matches!(entry.node.value, Value::List(_) | Value::Table(_));
        [POLICIES, SERVICES].contains(&entry.key.as_str()) || (holds_parts && section_meant(&entry.key).is_some())
    };
    !entries.is_empty() && !entries.iter().any(is_section)
}

fn section_meant(key: &str) -> Option<&'static str> {
    nearest(key, [POLICIES, SERVICES].into_iter())
}

struct Reader<'a> {
    source: &'a Arc<Source>,
    content: Content,
}

impl Reader<'_> {
    fn problem(&mut self, span: &Range<usize>, wrong: impl Into<String>) {
        self.content.problems.push(Problem::new(self.source.spot(Some(span.clone())), wrong));
    }

    fn sections(&mut self, entries: &[Entry]) {
        for entry in entries {
            match (entry.key.as_str(), &entry.node.value) {
                (POLICIES, Value::List(items)) => items.iter().for_each(|item| self.policy(item, None)),
                (POLICIES, Value::Table(by_name)) => {
                    by_name.iter().for_each(|policy| self.policy(&policy.node, Some(policy)));
                }
                (SERVICES, Value::List(items)) => items.iter().zip(0..).for_each(|(item, at)| self.service(item, at)),
                (POLICIES, _) => self.problem(&entry.node.span, "policies must be a list, or a table by name"),
                (SERVICES, _) => self.problem(&entry.node.span, "services must be a list"),
                (key, _) => {
                    let meant = match section_meant(key) {
                        Some(meant) => format!("did you mean {meant}?"),
                        None => "a file has policies and services".into(),
                    };
                    self.problem(&entry.key_span, format!("{key} means nothing here; {meant}"));
                }
            }
        }
    }

    /// One policy; `keyed` if it stands under its name.
    fn policy(&mut self, node: &Node, keyed: Option<&Entry>) {
        if !matches!(node.value, Value::Table(_)) {
            return self.problem(&node.span, format!("a policy must be a table, not {}", node.kind()));
        }
        let own = node.entry(POLICY_ID);
        let (name, name_span) = match (keyed, own.map(|own| (own.node.as_text(), &own.node.span))) {
            (_, Some((None, span))) => return self.problem(span, "a policyId must be text"),
            (Some(keyed), Some((Some(other), span))) if other != keyed.key => {
                return self.problem(span, format!("the policy {} names itself {other:?}", keyed.key));
            }
            (Some(keyed), _) => (keyed.key.clone(), keyed.key_span.clone()),
            (None, Some((Some(name), span))) => (name.to_owned(), span.clone()),
            (None, None) => return self.problem(&node.span, "a policy needs a policyId"),
        };
        let mut json = node.to_json();
        if let Json::Object(fields) = &mut json {
            fields.retain(|field, _| field != POLICY_ID && !SHOWN_ONLY.contains(&field.as_str()));
        }
        let part = Part { node: node.clone(), name_span, lasting_path: format!("/{POLICIES}/{name}"), json };
        self.content.policies.push(Named { name, part });
    }

    fn service(&mut self, node: &Node, at: usize) {
        if !matches!(node.value, Value::Table(_)) {
            return self.problem(&node.span, format!("a service must be a table, not {}", node.kind()));
        }
        let name = node.name();
        let name_span = name.map_or_else(|| node.span.clone(), |name| name.span.clone());
        let name = name.and_then(Node::as_text).map_or_else(|| at.to_string(), str::to_owned);
        let lasting_path = format!("/{SERVICES}/{name}");
        self.content.services.push(Part { node: node.clone(), name_span, lasting_path, json: node.to_json() });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(name: &str, text: &str) -> Result<Vec<Json>, Vec<String>> {
        let source = Source::try_new(name, text.as_bytes().to_vec()).unwrap();
        policies(&source).map_err(|problems| problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn one_policy_or_several_in_any_language() {
        let webhooks = json!({"policyId": "webhooks", "maxAttempts": 3});
        for text in [
            "policyId = \"webhooks\"\nmaxAttempts = 3",
            "policyId = \"webhooks\"\nmaxAttempts = 3\nversion = 7\ncreatedAt = 1",
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
            ("", "-: there is no policy in it"),
            ("{", "-:1:1: this is not JSON: EOF while parsing an object"),
            ("maxAttempts = 3", "-:1:1: a policy needs a policyId"),
            ("policyId = 3", "-:1:12: a policyId must be text"),
            ("policies = 3", "-:1:12: policies must be a list, or a table by name"),
            ("policies = []", "-: there is no policy in it"),
            ("services = []", "-: there is no policy in it"),
            ("services = {}", "-:1:12: services must be a list"),
            ("[polices.a]\nmaxAttempts = 3", "-:1:2: polices means nothing here; did you mean policies?"),
            (
                "colour = \"red\"\n[[policies]]\npolicyId = \"a\"",
                "-:1:1: colour means nothing here; a file has policies and services",
            ),
            ("[policies.a]\npolicyId = \"b\"", "-:2:12: the policy a names itself \"b\""),
            ("[policies]\na = 1", "-:2:5: a policy must be a table, not a number"),
            ("[1, 2]", "-:1:1: a file must be a table, not a list"),
            ("[[policies]]\nmaxAttempts = 3", "-:1:1: a policy needs a policyId"),
        ] {
            assert_eq!(read("-", text).unwrap_err(), [expected], "{text:?}");
        }
    }

    #[test]
    fn every_part_that_is_wrong_is_named() {
        let text = "policies:\n  - 3\n  - maxAttempts: 3\nservices:\n  - x\n";
        let source = Source::try_new("a.yaml", text.as_bytes().to_vec()).unwrap();
        let content = content(&source, &document::read(&source).unwrap());
        let problems: Vec<_> = content.problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            problems,
            [
                "a.yaml:2:5: a policy must be a table, not a number",
                "a.yaml:3:5: a policy needs a policyId",
                "a.yaml:5:5: a service must be a table, not text",
            ]
        );
    }
}

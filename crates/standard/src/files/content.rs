//! Splits a document into its policies and services.
//!
//! Not here: whether a policy's fields are right (`shape`), what they mean (`redrive_core`).

use std::ops::Range;
use std::sync::Arc;

use redrive_core::policy::SHOWN_BESIDE;
use serde_json::Value as Json;

use crate::files::document::{Entry, Node, Step, Value};
use crate::files::problem::Problem;
use crate::files::shape::shortened;
use crate::files::source::Source;
use crate::nearest::nearest;

const POLICIES: &str = "policies";
const SERVICES: &str = "services";
const NAME: &str = "name";
pub(crate) const POLICY_ID: &str = "policyId";

/// The member that the server shows beside a list of policies.
const NEXT_CURSOR: &str = "nextCursor";

/// Fields whose names begin so are ignored: they are free for other tools.
const EXTENSION: &str = "x-";

/// The content of one document, as far as it could be read.
#[derive(Debug, Default)]
pub(crate) struct Content {
    /// The policies, in the order of the file.
    pub(crate) policies: Vec<NamedPolicy>,
    /// The services, in the order of the file.
    pub(crate) services: Vec<DocumentPart>,
    /// What could not be read.
    pub(crate) problems: Vec<Problem>,
}

impl Content {
    /// Whether the document has neither content nor problems.
    pub(crate) fn is_empty(&self) -> bool {
        self.policies.is_empty() && self.services.is_empty() && self.problems.is_empty()
    }
}

/// A part of a document.
#[derive(Debug, Clone)]
pub(crate) struct DocumentPart {
    /// The part of the tree.
    pub(crate) node: Node,
    /// The bytes of its name.
    pub(crate) name_span: Range<usize>,
    /// Its path by names, which stays the same when lines move.
    pub(crate) lasting_path: String,
    /// Its fields, without extensions.
    pub(crate) json: Json,
}

impl DocumentPart {
    /// The bytes of a path within this part.
    pub(crate) fn span_at(&self, path: &[Step]) -> Range<usize> {
        self.node.span_at(path).unwrap_or_else(|| self.name_span.clone())
    }
}

/// A policy with its name.
#[derive(Debug, Clone)]
pub(crate) struct NamedPolicy {
    /// The policy's name.
    pub(crate) name: String,
    /// Its fields, without the name.
    pub(crate) part: DocumentPart,
}

/// Splits a document into its parts.
pub(crate) fn content(source: &Arc<Source>, document: &Node) -> Content {
    let mut reader = Reader { source, content: Content::default() };
    match &document.value {
        Value::Table(entries) if is_single_policy(entries) => reader.policy(document, None),
        Value::Table(entries) => reader.sections(entries),
        _ => reader.problem(&document.span, format!("a file must be a table, not {}", document.kind())),
    }
    reader.content
}

/// A document without sections is one policy, unless one of its keys is a misspelt section.
fn is_single_policy(entries: &[Entry]) -> bool {
    let is_section = |entry: &Entry| {
        let holds_parts = matches!(entry.node.value, Value::List(_) | Value::Table(_));
        [POLICIES, SERVICES].contains(&entry.key.as_str()) || (holds_parts && section_meant(&entry.key).is_some())
    };
    let mut entries = entries.iter().filter(|entry| !is_extension(&entry.key)).peekable();
    entries.peek().is_some() && !entries.any(is_section)
}

fn is_extension(key: &str) -> bool {
    key.starts_with(EXTENSION)
}

/// The value as JSON, without extensions.
fn meaning(node: &Node) -> Json {
    match &node.value {
        Value::List(items) => items.iter().map(meaning).collect(),
        Value::Table(entries) => {
            let entries = entries.iter().filter(|entry| !is_extension(&entry.key));
            Json::Object(entries.map(|entry| (entry.key.clone(), meaning(&entry.node))).collect())
        }
        _ => node.to_json(),
    }
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
        self.content.problems.push(Problem::new(self.source.location(Some(span.clone())), wrong));
    }

    fn sections(&mut self, entries: &[Entry]) {
        let has_policies = entries.iter().any(|entry| entry.key == POLICIES);
        for entry in entries {
            match (entry.key.as_str(), &entry.node.value) {
                (POLICIES, Value::List(items)) => items.iter().for_each(|item| self.policy(item, None)),
                (POLICIES, Value::Table(by_name)) => {
                    by_name.iter().for_each(|policy| self.policy(&policy.node, Some(policy)));
                }
                (SERVICES, Value::List(items)) => {
                    items.iter().zip(0..).for_each(|(item, at)| self.service(item, at, None));
                }
                (SERVICES, Value::Table(by_name)) => {
                    by_name.iter().zip(0..).for_each(|(service, at)| self.service(&service.node, at, Some(service)));
                }
                (section @ (POLICIES | SERVICES), _) => {
                    self.problem(&entry.node.span, format!("{section} must be a list, or a table by name"));
                }
                (NEXT_CURSOR, _) if has_policies => {}
                (key, _) if is_extension(key) => {}
                (key, _) => {
                    let meant = match section_meant(key) {
                        Some(meant) => format!("did you mean {meant}?"),
                        None => "a file has policies and services".into(),
                    };
                    self.problem(&entry.key_span, format!("{} is not known here; {meant}", shortened(key)));
                }
            }
        }
    }

    /// The name of a part and its bytes: its key if it has one, or else its name field.
    fn name(&mut self, node: &Node, kind: &str, field: &str, keyed: Option<&Entry>) -> Option<(String, Range<usize>)> {
        let own = node.entry(field).and_then(|own| own.node.as_text().map(|name| (name, own.node.span.clone())));
        let Some(keyed) = keyed else { return own.map(|(name, span)| (name.to_owned(), span)) };
        if let Some((other, span)) = own.filter(|(name, _)| *name != keyed.key) {
            let wrong = format!("the {kind} {} names itself {:?}", shortened(&keyed.key), shortened(other));
            self.problem(&span, wrong);
        }
        Some((keyed.key.clone(), keyed.key_span.clone()))
    }

    /// Reads a policy; `keyed` is its entry if it is under its name.
    fn policy(&mut self, node: &Node, keyed: Option<&Entry>) {
        if !matches!(node.value, Value::Table(_)) {
            return self.problem(&node.span, format!("a policy must be a table, not {}", node.kind()));
        }
        if let Some(own) = node.entry(POLICY_ID).filter(|own| own.node.as_text().is_none()) {
            self.problem(&own.node.span, "a policyId must be text");
        }
        let Some((name, name_span)) = self.name(node, "policy", POLICY_ID, keyed) else {
            if node.entry(POLICY_ID).is_none() {
                self.problem(&node.span, "a policy needs a policyId");
            }
            return;
        };
        let mut json = meaning(node);
        if let Json::Object(fields) = &mut json {
            fields.retain(|field, _| field != POLICY_ID && !SHOWN_BESIDE.contains(&field.as_str()));
        }
        let part = DocumentPart { node: node.clone(), name_span, lasting_path: format!("/{POLICIES}/{name}"), json };
        self.content.policies.push(NamedPolicy { name, part });
    }

    /// Reads a service; `keyed` is its entry if it is under its name. A missing name is reported with its other fields.
    fn service(&mut self, node: &Node, at: usize, keyed: Option<&Entry>) {
        if !matches!(node.value, Value::Table(_)) {
            return self.problem(&node.span, format!("a service must be a table, not {}", node.kind()));
        }
        let named = self.name(node, "service", NAME, keyed);
        let mut json = meaning(node);
        if let (Some((name, _)), None | Some(Json::String(_))) = (&named, json.get(NAME)) {
            json[NAME] = name.as_str().into();
        }
        let (name, name_span) = named.unwrap_or_else(|| (at.to_string(), node.span.clone()));
        let lasting_path = format!("/{SERVICES}/{name}");
        self.content.services.push(DocumentPart { node: node.clone(), name_span, lasting_path, json });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::document;

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

//! From a path to its bytes in the text.

use std::ops::Range;

use super::{Node, Value};

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Step {
    /// The value with this name.
    Field(String),
    /// The element with this number, from 0.
    Index(usize),
    /// The element of a list that is written so, such as `404`.
    Item(String),
}

/// The paths of findings are those of the rules.
impl From<&crate::rules::Step> for Step {
    fn from(step: &crate::rules::Step) -> Self {
        match step {
            crate::rules::Step::Field(name) => Step::Field((*name).to_owned()),
            crate::rules::Step::Index(at) => Step::Index(*at),
            crate::rules::Step::Item(written) => Step::Item(written.clone()),
        }
    }
}

/// The fields that name an element of a list. A whole element is shown by its name.
const NAMES: [&str; 2] = ["policyId", "name"];

/// The names under which a field is known besides its own.
const ALIASES: [(&str, &str); 2] = [("backoff", "backoffType"), ("jitterType", "jitter")];

impl Node {
    /// The bytes of `path`: of the value if it is a single one, or of its key. If something is missing, those of the
    /// nearest value around it; nothing if that is this node itself.
    pub fn span_at(&self, path: &[Step]) -> Option<Range<usize>> {
        let mut node = self;
        let mut shown = None;
        for step in path {
            let Some((next, key_span)) = node.step(step) else { break };
            node = next;
            shown = Some(node.own_span(key_span));
        }
        shown
    }

    /// The bytes of the key at `path`, if it has one.
    pub fn key_span_at(&self, path: &[Step]) -> Option<Range<usize>> {
        let (last, before) = path.split_last()?;
        let parent = before.iter().try_fold(self, |node, step| node.step(step).map(|(next, _)| next))?;
        parent.step(last)?.1.cloned()
    }

    /// The path in words that stay the same when lines and elements move: elements of lists by their names, where they
    /// have one.
    pub fn lasting_path(&self, path: &[Step]) -> String {
        let mut node = Some(self);
        let mut words = String::new();
        for step in path {
            node = node.and_then(|node| node.step(step)).map(|(next, _)| next);
            words.push('/');
            match (node.and_then(Node::name).and_then(Node::as_text), step) {
                (Some(name), Step::Index(_)) => words.push_str(name),
                (_, Step::Index(at)) => words.push_str(&at.to_string()),
                (_, Step::Field(name) | Step::Item(name)) => words.push_str(name),
            }
        }
        words
    }

    /// The name of an element of a list.
    pub(crate) fn name(&self) -> Option<&Node> {
        NAMES.iter().find_map(|name| self.entry(name)).map(|entry| &entry.node)
    }

    fn step(&self, step: &Step) -> Option<(&Node, Option<&Range<usize>>)> {
        match (step, &self.value) {
            (Step::Field(name), Value::Table(_)) => {
                let alias = || ALIASES.iter().find(|(own, _)| own == name).and_then(|(_, alias)| self.entry(alias));
                let entry = self.entry(name).or_else(alias)?;
                Some((&entry.node, Some(&entry.key_span)))
            }
            (Step::Index(at), Value::List(items)) => items.get(*at).map(|item| (item, None)),
            (Step::Item(written), Value::List(items)) => {
                items.iter().find(|item| item.is_written(written)).map(|item| (item, None))
            }
            _ => None,
        }
    }

    /// A single value is shown itself, a table by its key or by its name.
    fn own_span(&self, key_span: Option<&Range<usize>>) -> Range<usize> {
        match (&self.value, key_span) {
            (Value::Table(_) | Value::Null, Some(key_span)) => key_span.clone(),
            (Value::Table(_), None) => self.name().map_or_else(|| self.span.clone(), |name| name.span.clone()),
            _ => self.span.clone(),
        }
    }

    fn is_written(&self, written: &str) -> bool {
        match &self.value {
            Value::Text(text) => text == written,
            Value::Number(number) => number.to_string() == written,
            _ => false,
        }
    }
}

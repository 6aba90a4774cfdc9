//! A value without its mistakes, and the paths that cannot be checked any more.

use std::collections::{HashMap, HashSet};

use redrive_core::policy::Context;
use serde_json::Value;

use crate::files::document::Step;

/// Replaces a missing name.
const NO_NAME: &str = "(no name)";

/// A value without the parts that could not be read, and the paths of those.
#[derive(Debug, Clone)]
pub(crate) struct PartialValue {
    value: Value,
    /// For each list that lost elements, by its path: the original numbers of those that are left.
    left: HashMap<Vec<Step>, Vec<usize>>,
    /// The paths of removed or misspelt values: they cannot be checked.
    doubtful: HashSet<Vec<Step>>,
    /// The paths that lead to those.
    around: HashSet<Vec<Step>>,
    is_without_context: bool,
}

impl PartialValue {
    /// The whole value.
    pub(crate) fn new(value: Value) -> Self {
        PartialValue {
            value,
            left: HashMap::new(),
            doubtful: HashSet::new(),
            around: HashSet::new(),
            is_without_context: false,
        }
    }

    /// The remaining value.
    pub(crate) fn value(&self) -> &Value {
        &self.value
    }

    /// Whether the context could not be read and was replaced.
    pub(crate) fn is_without_context(&self) -> bool {
        self.is_without_context
    }

    /// The path in the original value of what is now at `at`.
    pub(crate) fn original(&self, at: &[Step]) -> Vec<Step> {
        let mut path = Vec::with_capacity(at.len());
        for step in at {
            let step = match step {
                Step::Index(index) => {
                    Step::Index(self.left.get(&path).and_then(|left| left.get(*index)).copied().unwrap_or(*index))
                }
                step => step.clone(),
            };
            path.push(step);
        }
        path
    }

    /// Whether a finding at `path` (in the original value) may only follow from a mistake in it or around it.
    pub(crate) fn is_doubtful(&self, path: &[Step]) -> bool {
        self.around.contains(path) || (0..=path.len()).any(|length| self.doubtful.contains(&path[..length]))
    }

    /// Whether the value at this path was removed.
    pub(super) fn was_removed(&self, path: &[Step]) -> bool {
        self.doubtful.contains(path)
    }

    /// Marks `path` as not checkable.
    pub(super) fn doubt(&mut self, path: Vec<Step>) {
        self.around.extend((0..path.len()).map(|length| path[..length].to_vec()));
        self.doubtful.insert(path);
    }

    /// Removes the value at `at`; whether it was there.
    pub(crate) fn remove(&mut self, at: &[Step]) -> bool {
        let Some((last, before)) = at.split_last() else { return false };
        let (list, original) = (self.original(before), self.original(at));
        let was_there = match (find(&mut self.value, before), last) {
            (Some(Value::Object(fields)), Step::Field(name)) => fields.remove(name).is_some(),
            (Some(Value::Array(items)), Step::Index(at)) if *at < items.len() => {
                self.left.entry(list).or_insert_with(|| (0..items.len()).collect()).remove(*at);
                items.remove(*at);
                true
            }
            _ => false,
        };
        self.doubt(original);
        was_there
    }

    /// Replaces the field `name` of the table at `at`, if there is a replacement for this name.
    pub(super) fn replace(&mut self, at: &[Step], name: &str, context: Context) -> bool {
        let value = match name {
            "name" => NO_NAME,
            "context" => context.as_str(),
            _ => return false,
        };
        let original = [&self.original(at)[..], &[Step::Field(name.to_owned())]].concat();
        let Some(Value::Object(fields)) = find(&mut self.value, at) else { return false };
        fields.insert(name.to_owned(), value.into());
        self.is_without_context |= name == "context";
        self.doubt(original);
        true
    }

    /// Puts a part that was read separately at `at`. Nothing around it may have been removed yet.
    pub(crate) fn put(&mut self, at: &[Step], part: PartialValue) {
        let inside = |path: &[Step]| [at, path].concat();
        self.left.extend(part.left.iter().map(|(path, left)| (inside(path), left.clone())));
        part.doubtful.iter().for_each(|path| self.doubt(inside(path)));
        self.is_without_context |= part.is_without_context;
        if let Some(value) = find(&mut self.value, at) {
            *value = part.value;
        }
    }
}

fn find<'a>(value: &'a mut Value, at: &[Step]) -> Option<&'a mut Value> {
    at.iter().try_fold(value, |value, step| match step {
        Step::Field(name) => value.get_mut(name),
        Step::Index(at) => value.get_mut(at),
        Step::Item(_) => None,
    })
}

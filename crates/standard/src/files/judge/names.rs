//! Checks names: of policies that do not exist, and of services and dependencies that occur twice or have none.

use std::collections::HashMap;

use redrive_core::policy::{Context, Spec};

use super::{File, Judge};
use crate::files::content::DocumentPart;
use crate::files::document::Step;
use crate::files::problem::Problem;
use crate::files::shape::{PartialValue, context_meant, shortened};
use crate::nearest::nearest;
use crate::rules::{PolicyChoice, Service};

/// The policy that every server has.
const DEFAULT: &str = "default";

/// The most unknown names for which a suggestion is looked for.
const MAX_SUGGESTIONS: usize = 50;

/// The most policies that one name is compared with.
const MAX_CANDIDATES: usize = 1_000;

impl Judge {
    /// Reports policies that a service names and that do not exist.
    pub(super) fn check_policies_exist(
        &mut self,
        file: &File,
        part: &DocumentPart,
        service: &Service,
        rest: &PartialValue,
    ) {
        for (at, dependency) in service.dependencies.iter().enumerate() {
            let Some(PolicyChoice::Named(name)) = &dependency.policy else { continue };
            if self.policies.contains_key(name) || preset(name).is_some() {
                continue;
            }
            let meant = self.policy_meant(name);
            let shown = shortened(name);
            let wrong = match meant {
                Some(meant) => format!("there is no policy {shown} in any of the files; did you mean {meant}?"),
                None => format!("there is no policy {shown} in any of the files, and no preset of that name"),
            };
            let path = rest.original(&policy_of(at));
            self.verdict.problems.push(Problem::new(file.location(part, &path), wrong));
        }
    }

    /// The policy of the files that was probably meant, or else the preset.
    fn policy_meant(&mut self, name: &str) -> Option<String> {
        self.suggestions += 1;
        if self.suggestions > MAX_SUGGESTIONS {
            return None;
        }
        let mut known: Vec<&str> = self.policies.keys().map(String::as_str).collect();
        known.sort_unstable();
        known.truncate(MAX_CANDIDATES);
        let presets = || Context::ALL.iter().map(|context| context.as_str()).chain([DEFAULT]);
        let meant = nearest(name, known.into_iter()).or_else(|| context_meant(name));
        meant.or_else(|| nearest(name, presets())).map(str::to_owned)
    }

    /// Reports services and dependencies without a name, or with one that is taken.
    pub(super) fn check_names(&mut self, file: &File, part: &DocumentPart) {
        if let Some(name) = part.json["name"].as_str() {
            let location = file.location(part, &[]);
            let wrong = match self.services.get(name) {
                _ if name.is_empty() => Some("a service's name must not be empty".into()),
                Some(first) => Some(format!("there is a service {} already, at {first}", shortened(name))),
                None => None,
            };
            match wrong {
                Some(wrong) => self.verdict.problems.push(Problem::new(location, wrong)),
                None => drop(self.services.insert(name.to_owned(), location)),
            }
        }
        let dependencies = part.json["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut named = HashMap::new();
        for (at, dependency) in dependencies.iter().enumerate() {
            let Some(name) = dependency["name"].as_str() else { continue };
            let path = [Step::Field("dependencies".into()), Step::Index(at), Step::Field("name".into())];
            let location = file.location(part, &path);
            let wrong = match named.get(name) {
                _ if name.is_empty() => "a dependency's name must not be empty".into(),
                Some(first) => format!("the service has a dependency {} already, at {first}", shortened(name)),
                None => {
                    named.insert(name, location);
                    continue;
                }
            };
            self.verdict.problems.push(Problem::new(location, wrong));
        }
    }
}

/// The path from a service to the policy of the dependency with this number.
pub(super) fn policy_of(dependency: usize) -> [Step; 3] {
    [Step::Field("dependencies".into()), Step::Index(dependency), Step::Field("policy".into())]
}

/// The policy that a name stands for where no file says it: a context's preset, or the one that every server has.
pub(super) fn preset(name: &str) -> Option<Spec> {
    let context = Context::from_name(name);
    (name == DEFAULT || context.is_some()).then(|| Spec { context, ..Spec::default() })
}

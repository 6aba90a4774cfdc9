//! Judges a service: what is left of it, with the policies that it names.

use crate::rules::{self, Dependency, Finding, PolicyChoice, Service};
use redrive_core::policy::{Context, Spec};
use serde_json::Value as Json;

use super::names::{policy_of, preset};
use super::{File, Judge, Known, Reading, common, impossible, problems_of, sound, words_of};
use crate::files::content::Part;
use crate::files::document::Step;
use crate::files::problem::Problem;
use crate::files::shape::{self, Misshapen, Rest};
use crate::files::verdict::Subject;

impl Judge {
    pub(super) fn service(&mut self, file: &File, part: &Part) {
        let (reading, problems) = Reading::of(|context| read(file, part, context));
        self.verdict.problems.extend(problems);
        self.names_are_its_own(file, part);
        let Reading { values, rest } = &reading;
        let Some(service) = values.first() else { return };
        self.policies_are_known(file, part, service, rest);
        let contexts = 0..if self.is_without_context(service, rest) { Context::ALL.len() } else { 1 };
        let found = contexts.map(|context| match reading.value(context) {
            Some(service) => self.findings(service, context),
            None => Vec::new(),
        });
        let findings = common(found, words_of);
        let inline = (0..service.dependencies.len()).flat_map(|at| {
            let specs = values.iter().filter_map(|service| inline(service.dependencies.get(at)?));
            impossible(specs, &rest.original(&policy_of(at)))
        });
        let (findings, impossible) = sound(findings, inline.collect(), rest);
        self.impossible(file, part, impossible);
        for (finding, path) in findings {
            let dependency = dependency(service, &finding).map(|dependency| dependency.name.clone());
            self.found(file, part, Subject::Service { name: service.name.clone(), dependency }, finding, &path);
        }
    }

    /// Whether a context is unknown, here or in a policy that is named.
    fn is_without_context(&self, service: &Service, rest: &Rest) -> bool {
        let named = service.dependencies.iter().filter_map(|dependency| self.named(dependency));
        rest.is_without_context() || named.into_iter().any(|known| known.reading.rest.is_without_context())
    }

    /// The policy of the files that a dependency names.
    fn named(&self, dependency: &Dependency) -> Option<&Known> {
        match &dependency.policy {
            Some(PolicyChoice::Named(name)) => self.policies.get(name),
            _ => None,
        }
    }

    /// What a service breaks, where the context with this number stands in for unknown ones.
    fn findings(&self, service: &Service, context: usize) -> Vec<Finding> {
        let policies = |name: &str| match self.policies.get(name) {
            Some(known) => known.reading.value(context).cloned(),
            None => preset(name),
        };
        let mut findings = rules::check_service(service, &policies, self.today);
        findings.retain(|finding| !self.may_follow_from_a_mistake(service, finding, context));
        findings
    }

    /// Whether a finding of a policy that stands elsewhere speaks of a field that could not be read there.
    fn may_follow_from_a_mistake(&self, service: &Service, finding: &Finding, context: usize) -> bool {
        let [_, _, rules::Step::Field("policy")] = finding.at[..] else { return false };
        let Some(dependency) = dependency(service, finding) else { return false };
        let Some(Known { reading, .. }) = self.named(dependency) else { return false };
        let Some(spec) = reading.value(context) else { return false };
        let there = rules::check_policy(spec, dependency.context.or(Some(service.context)), self.today);
        there.iter().any(|other| {
            let path: Vec<Step> = other.at.iter().map(Step::from).collect();
            other.check == finding.check && reading.rest.is_doubtful(&reading.rest.original(&path))
        })
    }
}

/// Reads a service. Policies whose fields stand in it are read on their own: serde, given a choice, only says that
/// nothing fits.
fn read(file: &File, part: &Part, context: Context) -> (Option<Service>, Rest, Vec<Problem>) {
    let mut rest = Rest::new(part.json.clone());
    let mut problems = Vec::new();
    let dependencies = part.json["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (at, dependency) in dependencies.iter().enumerate() {
        let outer = policy_of(at);
        let (is_read, misshapen) = match &dependency["policy"] {
            Json::Null | Json::String(_) => continue,
            fields @ Json::Object(_) => {
                let mut inner = Rest::new(fields.clone());
                let (spec, misshapen) = shape::read::<Spec>(&mut inner, context);
                rest.put(&outer, inner);
                (spec.is_some(), misshapen)
            }
            _ => (false, vec![Misshapen::value("this must be the name of a policy, or a table of its fields")]),
        };
        if !is_read {
            rest.take_out(&outer);
        }
        problems.extend(problems_of(file, part, &outer, misshapen));
    }
    let (service, misshapen) = shape::read(&mut rest, context);
    problems.extend(problems_of(file, part, &[], misshapen));
    (service, rest, problems)
}

/// The policy of a dependency whose fields stand there.
fn inline(dependency: &Dependency) -> Option<&Spec> {
    match &dependency.policy {
        Some(PolicyChoice::Inline(spec)) => Some(spec),
        _ => None,
    }
}

/// The dependency that a finding is about.
fn dependency<'a>(service: &'a Service, finding: &Finding) -> Option<&'a Dependency> {
    match finding.at[..] {
        [rules::Step::Field("dependencies"), rules::Step::Index(at), ..] => service.dependencies.get(at),
        _ => None,
    }
}

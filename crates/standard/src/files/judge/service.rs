//! Checks a service, as far as it could be read, with the policies that it names.

use redrive_core::policy::{Context, Spec};
use serde_json::Value as Json;

use super::names::{policy_of, preset};
use super::{File, Judge, KnownPolicy, PartialReading, common, finding_key, invalid_values, problems_of, reliable};
use crate::files::content::DocumentPart;
use crate::files::document::Step;
use crate::files::problem::Problem;
use crate::files::shape::{self, PartialValue, ShapeError};
use crate::files::verdict::Subject;
use crate::rules::{self, Dependency, Finding, PolicyChoice, Service};

impl Judge {
    pub(super) fn service(&mut self, file: &File, part: &DocumentPart) {
        let (reading, problems) = PartialReading::of(|context| read(file, part, context));
        self.verdict.problems.extend(problems);
        self.check_names(file, part);
        let PartialReading { values, rest } = &reading;
        let Some(service) = values.first() else { return };
        self.check_policies_exist(file, part, service, rest);
        let contexts = 0..if self.is_without_context(service, rest) { Context::ALL.len() } else { 1 };
        let found = contexts.map(|context| match reading.value(context) {
            Some(service) => self.findings(service, context),
            None => Vec::new(),
        });
        let findings = common(found, finding_key);
        let inline = (0..service.dependencies.len()).flat_map(|at| {
            let specs = values.iter().filter_map(|service| inline(service.dependencies.get(at)?));
            invalid_values(specs, &rest.original(&policy_of(at)))
        });
        let (findings, invalid) = reliable(findings, inline.collect(), rest);
        self.report_invalid(file, part, invalid);
        for (finding, path) in findings {
            let dependency = dependency(service, &finding).map(|dependency| dependency.name.clone());
            self.add_finding(file, part, Subject::Service { name: service.name.clone(), dependency }, finding, &path);
        }
    }

    /// Whether a context is unknown, here or in a policy that is named.
    fn is_without_context(&self, service: &Service, rest: &PartialValue) -> bool {
        let named = service.dependencies.iter().filter_map(|dependency| self.named(dependency));
        rest.is_without_context() || named.into_iter().any(|known| known.reading.rest.is_without_context())
    }

    /// The policy of the files that a dependency names.
    fn named(&self, dependency: &Dependency) -> Option<&KnownPolicy> {
        match &dependency.policy {
            Some(PolicyChoice::Named(name)) => self.policies.get(name),
            _ => None,
        }
    }

    /// The findings of a service, with this context in place of unknown ones.
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
        let Some(KnownPolicy { reading, .. }) = self.named(dependency) else { return false };
        let Some(spec) = reading.value(context) else { return false };
        let there = rules::check_policy(spec, dependency.context.or(Some(service.context)), self.today);
        there.iter().any(|other| {
            let path: Vec<Step> = other.at.iter().map(Step::from).collect();
            other.check == finding.check && reading.rest.is_doubtful(&reading.rest.original(&path))
        })
    }
}

/// Reads a service. Inline policies are read separately, because serde reports no details for an untagged choice.
fn read(file: &File, part: &DocumentPart, context: Context) -> (Option<Service>, PartialValue, Vec<Problem>) {
    let mut rest = PartialValue::new(part.json.clone());
    let mut problems = Vec::new();
    let dependencies = part.json["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (at, dependency) in dependencies.iter().enumerate() {
        let outer = policy_of(at);
        let (is_read, errors) = match &dependency["policy"] {
            Json::Null | Json::String(_) => continue,
            fields @ Json::Object(_) => {
                let mut inner = PartialValue::new(fields.clone());
                let (spec, errors) = shape::read::<Spec>(&mut inner, context);
                rest.put(&outer, inner);
                (spec.is_some(), errors)
            }
            _ => (false, vec![ShapeError::value("this must be the name of a policy, or a table of its fields")]),
        };
        if !is_read {
            rest.remove(&outer);
        }
        problems.extend(problems_of(file, part, &outer, errors));
    }
    let (service, errors) = shape::read(&mut rest, context);
    problems.extend(problems_of(file, part, &[], errors));
    (service, rest, problems)
}

/// The inline policy of a dependency.
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

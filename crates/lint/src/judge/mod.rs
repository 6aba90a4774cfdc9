//! Judges several files as one set: a service in one may name a policy of another.

use std::collections::HashMap;
use std::sync::Arc;

use redrive_core::lint::{self, Finding, PolicyChoice, Service};
use redrive_core::policy::{Context, Policy, Spec};
use redrive_core::{Date, PolicyId};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use crate::content::{Content, Named, Part, content};
use crate::document::{self, Step};
use crate::nearest::nearest;
use crate::problem::Problem;
use crate::shape;
use crate::source::{Source, Spot};
use crate::verdict::{Fingerprints, Found, Subject, Verdict};

/// The policy that every server has.
const DEFAULT: &str = "default";

/// Judges these files, or what could be read of them, as of `today`.
pub fn judge(files: Vec<Result<Arc<Source>, Problem>>, today: Date) -> Verdict {
    let verdict = Verdict { files: files.len(), ..Verdict::default() };
    let mut judge = Judge { today, verdict, fingerprints: Fingerprints::default(), policies: HashMap::new() };
    let order: Vec<Arc<Source>> = files.iter().map(source_of).collect();
    let files: Vec<File> = files.into_iter().filter_map(|file| judge.read(file)).collect();
    for file in &files {
        file.content.policies.iter().for_each(|policy| judge.remember(file, policy));
    }
    for file in &files {
        file.content.policies.iter().for_each(|policy| judge.policy(file, policy));
        file.content.services.iter().for_each(|service| judge.service(file, service));
    }
    judge.finish(&order)
}

fn source_of(file: &Result<Arc<Source>, Problem>) -> Arc<Source> {
    match file {
        Ok(source) => Arc::clone(source),
        Err(problem) => Arc::clone(&problem.spot.source),
    }
}

/// A file that could be read.
struct File {
    source: Arc<Source>,
    content: Content,
}

impl File {
    /// The spot of a path from one of its parts on.
    fn spot(&self, part: &Part, path: &[Step]) -> Spot {
        self.source.spot(Some(part.span_at(path)))
    }
}

struct Judge {
    today: Date,
    verdict: Verdict,
    fingerprints: Fingerprints,
    /// The policies by name; nothing where what is written is none.
    policies: HashMap<String, Known>,
}

/// A policy that a service can name.
struct Known {
    spec: Option<Spec>,
    /// Where it was first written.
    spot: Spot,
}

impl Judge {
    fn read(&mut self, file: Result<Arc<Source>, Problem>) -> Option<File> {
        let read = file.map_err(|problem| vec![problem]).and_then(|source| Ok((document::read(&source)?, source)));
        let (document, source) = match read {
            Ok(read) => read,
            Err(problems) => {
                self.verdict.problems.extend(problems);
                return None;
            }
        };
        let mut content = content(&source, &document);
        if content.is_empty() {
            // Silence would be taken for praise.
            self.verdict.problems.push(Problem::new(source.spot(None), "there is no policy and no service in it"));
        }
        self.verdict.problems.append(&mut content.problems);
        self.verdict.policies += content.policies.len();
        self.verdict.services += content.services.len();
        Some(File { source, content })
    }

    /// Notes a policy under its name, before any service asks for it.
    fn remember(&mut self, file: &File, policy: &Named) {
        let spot = file.spot(&policy.part, &[]);
        if let Err(wrong) = PolicyId::try_new(&policy.name) {
            self.verdict.problems.push(Problem::new(spot.clone(), format!("this cannot be a policy's name: {wrong}")));
        }
        if let Some(first) = self.policies.get(&policy.name) {
            let wrong = format!("there is a policy {} already, at {}", policy.name, first.spot);
            self.verdict.problems.push(Problem::new(spot, wrong));
            return;
        }
        let spec = self.shaped(file, &policy.part);
        self.policies.insert(policy.name.clone(), Known { spec, spot });
    }

    /// What a part says, if it has the shape of a `T`; what keeps it from that is noted.
    fn shaped<T: DeserializeOwned>(&mut self, file: &File, part: &Part) -> Option<T> {
        self.shaped_at(file, part, &part.json, &[])
    }

    /// The same of a value inside of a part.
    fn shaped_at<T: DeserializeOwned>(&mut self, file: &File, part: &Part, json: &Json, at: &[Step]) -> Option<T> {
        let misshapen = match shape::read(json) {
            Ok(read) => return Some(read),
            Err(misshapen) => misshapen,
        };
        for wrong in misshapen {
            let path = [at, &wrong.at].concat();
            let name = wrong.is_name.then(|| part.node.key_span_at(&path)).flatten();
            let spot = name.map_or_else(|| file.spot(part, &path), |name| file.source.spot(Some(name)));
            self.verdict.problems.push(Problem::new(spot, wrong.wrong));
        }
        None
    }

    fn policy(&mut self, file: &File, policy: &Named) {
        let own = file.spot(&policy.part, &[]);
        let known = self.policies.get(&policy.name).filter(|known| known.spot == own);
        let Some(spec) = known.and_then(|known| known.spec.clone()) else { return };
        let findings = lint::policy(&spec, None, self.today);
        self.impossible(file, &policy.part, &[], &spec, &findings);
        let subject = Subject::Policy(policy.name.clone());
        findings.into_iter().for_each(|finding| self.found(file, &policy.part, subject.clone(), finding));
    }

    /// What no server would accept is a problem, unless a finding says the same of the same field, and better.
    fn impossible(&mut self, file: &File, part: &Part, at: &[Step], spec: &Spec, findings: &[Finding]) {
        let (_, problems) = Policy::resolve_as_far_as_possible(spec);
        for problem in problems {
            let is_said = |finding: &Finding| !finding.is_permitted() && finding.path() == problem.field;
            if findings.iter().any(is_said) {
                continue;
            }
            let steps = problem.field.split('.').map(|name| Step::Field(name.to_owned()));
            let spot = file.spot(part, &at.iter().cloned().chain(steps).collect::<Vec<_>>());
            self.verdict.problems.push(Problem::new(spot, problem.to_string()));
        }
    }

    fn service(&mut self, file: &File, part: &Part) {
        let inline_is_right = self.inline_policies(file, part);
        let Some(service) = self.shaped::<Service>(file, &without_wrong(part, &inline_is_right)) else { return };
        if inline_is_right.contains(&false) {
            return;
        }
        self.names(file, part, &service);
        let policies = |name: &str| match self.policies.get(name) {
            Some(known) => known.spec.clone(),
            None => preset(name),
        };
        let findings = lint::service(&service, &policies, self.today);
        for (at, dependency) in service.dependencies.iter().enumerate() {
            if let Some(PolicyChoice::Inline(spec)) = &dependency.policy {
                self.impossible(file, part, &policy_of(at), spec, &within(&findings, at));
            }
        }
        for finding in findings {
            let subject = Subject::Service { name: service.name.clone(), dependency: dependency(&service, &finding) };
            self.found(file, part, subject, finding);
        }
    }

    /// Whether each dependency's policy, where its fields stand there, has the right ones. They are read here because
    /// serde, given a choice, only says that nothing fits.
    fn inline_policies(&mut self, file: &File, part: &Part) -> Vec<bool> {
        let dependencies = part.json["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut right = Vec::with_capacity(dependencies.len());
        for (at, dependency) in dependencies.iter().enumerate() {
            let fields = &dependency["policy"];
            let is_right = !fields.is_object() || self.shaped_at::<Spec>(file, part, fields, &policy_of(at)).is_some();
            right.push(is_right);
        }
        right
    }

    /// That every policy that a service names is there.
    fn names(&mut self, file: &File, part: &Part, service: &Service) {
        for (at, dependency) in service.dependencies.iter().enumerate() {
            let Some(PolicyChoice::Named(name)) = &dependency.policy else { continue };
            if self.policies.contains_key(name) || preset(name).is_some() {
                continue;
            }
            let mut known: Vec<&str> = self.policies.keys().map(String::as_str).collect();
            known.sort_unstable();
            known.extend(Context::ALL.iter().map(|context| context.as_str()));
            let wrong = match nearest(name, known.into_iter().chain([DEFAULT])) {
                Some(meant) => format!("there is no policy {name} in any of the files; did you mean {meant}?"),
                None => format!("there is no policy {name} in any of the files, and no preset of that name"),
            };
            self.verdict.problems.push(Problem::new(file.spot(part, &policy_of(at)), wrong));
        }
    }

    fn found(&mut self, file: &File, part: &Part, subject: Subject, finding: Finding) {
        let path: Vec<Step> = finding.at.iter().map(Step::from).collect();
        let lasting = format!("{}{}", part.lasting_path, part.node.lasting_path(&path));
        let fingerprint = self.fingerprints.of(finding.check.id, file.source.name(), &lasting);
        let found = Found { finding, spot: file.spot(part, &path), subject, fingerprint };
        self.verdict.findings.push(found);
    }

    /// Everything in the order in which people read: file by file, from top to bottom.
    fn finish(mut self, order: &[Arc<Source>]) -> Verdict {
        let file = |spot: &Spot| order.iter().position(|source| Arc::ptr_eq(source, &spot.source));
        let place = |spot: &Spot| (file(spot), spot.span.as_ref().map(|span| span.start));
        self.verdict.findings.sort_by_key(|found| place(&found.spot));
        self.verdict.problems.sort_by_key(|problem| place(&problem.spot));
        self.verdict
    }
}

/// The path from a service to the policy of the dependency with this number.
fn policy_of(dependency: usize) -> [Step; 3] {
    [Step::Field("dependencies".into()), Step::Index(dependency), Step::Field("policy".into())]
}

/// The policy that a name stands for where no file says it: a context's preset, or the one that every server has.
fn preset(name: &str) -> Option<Spec> {
    let context = Context::from_name(name);
    (name == DEFAULT || context.is_some()).then(|| Spec { context, ..Spec::default() })
}

/// The dependency that a finding is about.
fn dependency(service: &Service, finding: &Finding) -> Option<String> {
    match finding.at[..] {
        [lint::Step::Field("dependencies"), lint::Step::Index(at), ..] => {
            service.dependencies.get(at).map(|dependency| dependency.name.clone())
        }
        _ => None,
    }
}

/// A service without the policies that were found wrong already.
fn without_wrong(part: &Part, right: &[bool]) -> Part {
    let mut part = part.clone();
    if let Some(Json::Array(dependencies)) = part.json.get_mut("dependencies") {
        for (dependency, _) in dependencies.iter_mut().zip(right).filter(|(_, right)| !**right) {
            dependency["policy"] = Json::Null;
        }
    }
    part
}

/// The findings of the policy of the dependency with this number, told as of the policy itself.
fn within(findings: &[Finding], at: usize) -> Vec<Finding> {
    let outer = [lint::Step::Field("dependencies"), lint::Step::Index(at), lint::Step::Field("policy")];
    let inside = findings.iter().filter(|finding| finding.at.starts_with(&outer));
    inside.map(|finding| Finding { at: finding.at[outer.len()..].to_vec(), ..finding.clone() }).collect()
}

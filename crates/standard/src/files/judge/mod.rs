//! Checks several files as one set: a service in one may name a policy of another.
//!
//! A policy or service with mistakes is checked without them, and findings that might only follow from a mistake are
//! left out. If the context could not be read, only findings that hold in every context are reported.

mod names;
mod service;

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use redrive_core::policy::{Context, FieldProblem, Policy, Spec};
use redrive_core::{Date, PolicyId};

use crate::files::content::{Content, DocumentPart, NamedPolicy, content};
use crate::files::document::{self, Step};
use crate::files::file_policy::{located, location, not_a_name};
use crate::files::problem::{Problem, distinct};
use crate::files::shape::{self, PartialValue, ShapeError};
use crate::files::source::{Location, Source};
use crate::files::verdict::{Fingerprints, LocatedFinding, Subject, Verdict};
use crate::rules::{self, Finding};

/// Checks these files, as far as they could be read, as of `today`. A file that is given twice is checked once.
pub fn judge(files: Vec<Result<Arc<Source>, Problem>>, today: Date) -> Verdict {
    let mut given = HashSet::new();
    let files: Vec<_> = files.into_iter().filter(|file| given.insert(source_of(file).path())).collect();
    let mut judge = Judge::new(files.len(), today);
    let order: Vec<Arc<Source>> = files.iter().map(source_of).collect();
    let files: Vec<File> = files.into_iter().filter_map(|file| judge.read(file)).collect();
    for file in &files {
        file.content.policies.iter().for_each(|policy| judge.register(file, policy));
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
        Err(problem) => Arc::clone(&problem.location.source),
    }
}

/// A file that could be read.
struct File {
    source: Arc<Source>,
    content: Content,
}

impl File {
    /// The location of a path within one of its parts.
    fn location(&self, part: &DocumentPart, path: &[Step]) -> Location {
        location(&self.source, part, path)
    }
}

struct Judge {
    today: Date,
    verdict: Verdict,
    fingerprints: Fingerprints,
    /// The policies by name.
    policies: HashMap<String, KnownPolicy>,
    /// The services by name: where each was first written.
    services: HashMap<String, Location>,
    /// For how many unknown names another one was looked for.
    suggestions: usize,
}

/// A policy that a service can name.
struct KnownPolicy {
    reading: PartialReading<Spec>,
    /// Where it was first written.
    location: Location,
}

/// A part of a document, read without its mistakes.
struct PartialReading<T> {
    /// The value: one for each possible context if the context could not be read, none if too little is left.
    values: Vec<T>,
    /// The parts that were left out, the same for each value.
    rest: PartialValue,
}

impl<T> PartialReading<T> {
    /// Reads a part, with every context if its own is unknown, and returns its problems.
    fn of(read: impl Fn(Context) -> (Option<T>, PartialValue, Vec<Problem>)) -> (Self, Vec<Problem>) {
        let (value, rest, problems) = read(Context::ALL[0]);
        let others = if rest.is_without_context() { &Context::ALL[1..] } else { &[] };
        let others = others.iter().filter_map(|context| read(*context).0);
        (PartialReading { values: value.into_iter().chain(others).collect(), rest }, problems)
    }

    /// The value with this context, by its number, in place of an unknown one.
    fn value(&self, context: usize) -> Option<&T> {
        self.values.get(context).or(self.values.first())
    }
}

impl Judge {
    fn new(files: usize, today: Date) -> Self {
        Judge {
            today,
            verdict: Verdict { files, ..Verdict::default() },
            fingerprints: Fingerprints::default(),
            policies: HashMap::new(),
            services: HashMap::new(),
            suggestions: 0,
        }
    }

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
            // Without a problem, an empty file would look as if it had been checked.
            self.verdict.problems.push(Problem::new(source.location(None), "the file has no policy and no service"));
        }
        self.verdict.problems.append(&mut content.problems);
        self.verdict.policies += content.policies.len();
        self.verdict.services += content.services.len();
        Some(File { source, content })
    }

    /// Registers a policy under its name, before services are checked.
    fn register(&mut self, file: &File, policy: &NamedPolicy) {
        let location = file.location(&policy.part, &[]);
        if let Err(wrong) = PolicyId::try_new(&policy.name) {
            self.verdict.problems.push(not_a_name(location.clone(), &wrong));
        }
        if let Some(first) = self.policies.get(&policy.name) {
            let wrong = format!("there is a policy {} already, at {}", policy.name, first.location);
            self.verdict.problems.push(Problem::new(location, wrong));
            return;
        }
        let (reading, problems) = read(file, policy);
        self.verdict.problems.extend(problems);
        self.policies.insert(policy.name.clone(), KnownPolicy { reading, location });
    }

    fn policy(&mut self, file: &File, policy: &NamedPolicy) {
        let own = file.location(&policy.part, &[]);
        let second;
        let reading = match self.policies.get(&policy.name) {
            Some(known) if known.location == own => &known.reading,
            // A second policy of the same name: no service refers to it, but it is checked.
            _ => {
                let (reading, problems) = read(file, policy);
                self.verdict.problems.extend(problems);
                second = reading;
                &second
            }
        };
        let PartialReading { values, rest } = reading;
        let findings = common(values.iter().map(|spec| rules::check_policy(spec, None, self.today)), finding_key);
        let (findings, invalid) = reliable(findings, invalid_values(values.iter(), &[]), rest);
        let subject = Subject::Policy(policy.name.clone());
        self.report_invalid(file, &policy.part, invalid);
        findings
            .into_iter()
            .for_each(|(finding, path)| self.add_finding(file, &policy.part, subject.clone(), finding, &path));
    }

    /// Reports values that no server would accept.
    fn report_invalid(&mut self, file: &File, part: &DocumentPart, invalid: Vec<InvalidValue>) {
        let problem = |one: InvalidValue| Problem::new(file.location(part, &one.path), one.problem.to_string());
        self.verdict.problems.extend(invalid.into_iter().map(problem));
    }

    fn add_finding(&mut self, file: &File, part: &DocumentPart, subject: Subject, mut finding: Finding, path: &[Step]) {
        // Elements are counted as the file has them, also those that could not be read.
        for (step, written) in finding.at.iter_mut().zip(path) {
            if let (rules::Step::Index(at), Step::Index(written)) = (step, written) {
                *at = *written;
            }
        }
        let lasting = format!("{}{}", part.lasting_path, part.node.lasting_path(path));
        let fingerprint = self.fingerprints.of(finding.check.id, &file.source.path(), &lasting);
        let found = LocatedFinding { finding, location: file.location(part, path), subject, fingerprint };
        self.verdict.findings.push(found);
    }

    /// Everything in the order in which people read: file by file, from top to bottom.
    fn finish(mut self, order: &[Arc<Source>]) -> Verdict {
        let file = |location: &Location| order.iter().position(|source| Arc::ptr_eq(source, &location.source));
        let place = |location: &Location| (file(location), location.span.as_ref().map(|span| span.start));
        self.verdict.findings.sort_by_cached_key(|found| place(&found.location));
        self.verdict.problems = distinct(self.verdict.problems);
        self.verdict.problems.sort_by_cached_key(|problem| place(&problem.location));
        self.verdict
    }
}

/// Reads a policy without its mistakes, and returns them.
fn read(file: &File, policy: &NamedPolicy) -> (PartialReading<Spec>, Vec<Problem>) {
    PartialReading::of(|context| {
        let mut rest = PartialValue::new(policy.part.json.clone());
        let (spec, errors) = shape::read::<Spec>(&mut rest, context);
        (spec, rest, problems_of(file, &policy.part, &[], errors))
    })
}

fn problems_of(file: &File, part: &DocumentPart, inside: &[Step], errors: Vec<ShapeError>) -> Vec<Problem> {
    errors.into_iter().map(|wrong| located(&file.source, part, inside, wrong)).collect()
}

/// The items that are found in every context; `key` identifies them.
fn common<T, K: Hash + Eq>(mut found: impl Iterator<Item = Vec<T>>, key: impl Fn(&T) -> K) -> Vec<T> {
    let mut all = found.next().unwrap_or_default();
    for other in found {
        let other: HashSet<K> = other.iter().map(&key).collect();
        all.retain(|one| other.contains(&key(one)));
    }
    all
}

/// The key of a finding: its check, path and text.
fn finding_key(finding: &Finding) -> (&'static str, String, String) {
    (finding.check.id, finding.path(), finding.wrong.clone())
}

/// A value that no server would accept.
struct InvalidValue {
    problem: FieldProblem,
    /// Its path within the part.
    path: Vec<Step>,
}

/// The invalid values of the policy at `outer`, in every context.
fn invalid_values<'a>(specs: impl Iterator<Item = &'a Spec>, outer: &[Step]) -> Vec<InvalidValue> {
    let found = specs.map(|spec| Policy::resolve_as_far_as_possible(spec).1);
    let problems = common(found, |problem| (problem.field, problem.message.clone()));
    let problems = problems.into_iter().map(|problem| {
        let inner = problem.field.split('.').map(|name| Step::Field(name.to_owned()));
        InvalidValue { path: outer.iter().cloned().chain(inner).collect(), problem }
    });
    problems.collect()
}

/// Fields whose findings describe an invalid value better than the problem does.
const COVERED_BY_FINDINGS: [&str; 3] = ["maxAttempts", "totalBudgetMs", "attemptTimeoutMs"];

/// Fields that are checked with a valid substitute if the value is invalid: such findings are left out.
const CHECKED_WITH_SUBSTITUTE: [&str; 4] = ["scheduleMs", "multiplier", "maxDelayMs", "jitterRatio"];

/// The findings with their paths in the file, and the invalid values. Left out is what may only follow from a mistake,
/// and what the other list describes better.
fn reliable(
    findings: Vec<Finding>,
    mut invalid: Vec<InvalidValue>,
    rest: &PartialValue,
) -> (Vec<(Finding, Vec<Step>)>, Vec<InvalidValue>) {
    invalid.retain(|one| !rest.is_doubtful(&one.path));
    let others = invalid.iter().filter(|one| CHECKED_WITH_SUBSTITUTE.contains(&one.problem.field));
    let others: HashSet<&[Step]> = others.map(|one| &one.path[..]).collect();
    let mut reliable = Vec::with_capacity(findings.len());
    for finding in findings {
        let path = rest.original(&finding.at.iter().map(Step::from).collect::<Vec<_>>());
        if !rest.is_doubtful(&path) && !others.contains(&path[..]) {
            reliable.push((finding, path));
        }
    }
    let said = reliable.iter().filter(|(finding, _)| !finding.is_permitted());
    let said: HashSet<&[Step]> = said.map(|(_, path)| &path[..]).collect();
    invalid.retain(|one| !(COVERED_BY_FINDINGS.contains(&one.problem.field) && said.contains(&one.path[..])));
    (reliable, invalid)
}

//! Judges several files as one set: a service in one may name a policy of another.
//!
//! What is left of a policy or a service without its mistakes is judged, except where a finding might only follow from
//! one of them. Where it is the context that could not be read, only that is found which any context would find.

mod names;
mod service;

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use crate::rules::{self, Finding};
use redrive_core::policy::{Context, FieldProblem, Policy, Spec};
use redrive_core::{Date, PolicyId};

use crate::files::content::{Content, Named, Part, content};
use crate::files::document::{self, Step};
use crate::files::problem::{Problem, distinct};
use crate::files::shape::{self, Misshapen, Rest};
use crate::files::source::{Source, Spot};
use crate::files::verdict::{Fingerprints, Found, Subject, Verdict};
use crate::files::written::{located, not_a_name, spot};

/// Judges these files, or what could be read of them, as of `today`. A file that is given twice is judged once.
pub fn judge(files: Vec<Result<Arc<Source>, Problem>>, today: Date) -> Verdict {
    let mut given = HashSet::new();
    let files: Vec<_> = files.into_iter().filter(|file| given.insert(source_of(file).path())).collect();
    let mut judge = Judge::new(files.len(), today);
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
        spot(&self.source, part, path)
    }
}

struct Judge {
    today: Date,
    verdict: Verdict,
    fingerprints: Fingerprints,
    /// The policies by name.
    policies: HashMap<String, Known>,
    /// The services by name: where each was first written.
    services: HashMap<String, Spot>,
    /// For how many unknown names another one was looked for.
    suggestions: usize,
}

/// A policy that a service can name.
struct Known {
    reading: Reading<Spec>,
    /// Where it was first written.
    spot: Spot,
}

/// What a part says without its mistakes.
struct Reading<T> {
    /// One value; one for each context where it could not be read; none if too little is left.
    values: Vec<T>,
    /// What was taken out, the same for each.
    rest: Rest,
}

impl<T> Reading<T> {
    /// Reads a part, with each context that may stand in for one that is unknown, and says what is wrong with it.
    fn of(read: impl Fn(Context) -> (Option<T>, Rest, Vec<Problem>)) -> (Self, Vec<Problem>) {
        let (value, rest, problems) = read(Context::ALL[0]);
        let others = if rest.is_without_context() { &Context::ALL[1..] } else { &[] };
        let others = others.iter().filter_map(|context| read(*context).0);
        (Reading { values: value.into_iter().chain(others).collect(), rest }, problems)
    }

    /// The value where the context with this number stands in for an unknown one.
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
            self.verdict.problems.push(not_a_name(spot.clone(), &wrong));
        }
        if let Some(first) = self.policies.get(&policy.name) {
            let wrong = format!("there is a policy {} already, at {}", policy.name, first.spot);
            self.verdict.problems.push(Problem::new(spot, wrong));
            return;
        }
        let (reading, problems) = read(file, policy);
        self.verdict.problems.extend(problems);
        self.policies.insert(policy.name.clone(), Known { reading, spot });
    }

    fn policy(&mut self, file: &File, policy: &Named) {
        let own = file.spot(&policy.part, &[]);
        let second;
        let reading = match self.policies.get(&policy.name) {
            Some(known) if known.spot == own => &known.reading,
            // One of a name that is taken: no service means it, and it is judged all the same.
            _ => {
                let (reading, problems) = read(file, policy);
                self.verdict.problems.extend(problems);
                second = reading;
                &second
            }
        };
        let Reading { values, rest } = reading;
        let findings = common(values.iter().map(|spec| rules::check_policy(spec, None, self.today)), words_of);
        let (findings, impossible) = sound(findings, impossible(values.iter(), &[]), rest);
        let subject = Subject::Policy(policy.name.clone());
        self.impossible(file, &policy.part, impossible);
        findings
            .into_iter()
            .for_each(|(finding, path)| self.found(file, &policy.part, subject.clone(), finding, &path));
    }

    /// What no server would accept is a problem.
    fn impossible(&mut self, file: &File, part: &Part, impossible: Vec<Impossible>) {
        let problem = |one: Impossible| Problem::new(file.spot(part, &one.path), one.problem.to_string());
        self.verdict.problems.extend(impossible.into_iter().map(problem));
    }

    fn found(&mut self, file: &File, part: &Part, subject: Subject, mut finding: Finding, path: &[Step]) {
        // Elements are counted as the file has them, also those that could not be read.
        for (step, written) in finding.at.iter_mut().zip(path) {
            if let (rules::Step::Index(at), Step::Index(written)) = (step, written) {
                *at = *written;
            }
        }
        let lasting = format!("{}{}", part.lasting_path, part.node.lasting_path(path));
        let fingerprint = self.fingerprints.of(finding.check.id, &file.source.path(), &lasting);
        let found = Found { finding, spot: file.spot(part, path), subject, fingerprint };
        self.verdict.findings.push(found);
    }

    /// Everything in the order in which people read: file by file, from top to bottom.
    fn finish(mut self, order: &[Arc<Source>]) -> Verdict {
        let file = |spot: &Spot| order.iter().position(|source| Arc::ptr_eq(source, &spot.source));
        let place = |spot: &Spot| (file(spot), spot.span.as_ref().map(|span| span.start));
        self.verdict.findings.sort_by_cached_key(|found| place(&found.spot));
        self.verdict.problems = distinct(self.verdict.problems);
        self.verdict.problems.sort_by_cached_key(|problem| place(&problem.spot));
        self.verdict
    }
}

/// What a policy says without its mistakes, and these.
fn read(file: &File, policy: &Named) -> (Reading<Spec>, Vec<Problem>) {
    Reading::of(|context| {
        let mut rest = Rest::new(policy.part.json.clone());
        let (spec, misshapen) = shape::read::<Spec>(&mut rest, context);
        (spec, rest, problems_of(file, &policy.part, &[], misshapen))
    })
}

fn problems_of(file: &File, part: &Part, inside: &[Step], misshapen: Vec<Misshapen>) -> Vec<Problem> {
    misshapen.into_iter().map(|wrong| located(&file.source, part, inside, wrong)).collect()
}

/// What is found whichever context it is; `key` tells one from another.
fn common<T, K: Hash + Eq>(mut found: impl Iterator<Item = Vec<T>>, key: impl Fn(&T) -> K) -> Vec<T> {
    let mut all = found.next().unwrap_or_default();
    for other in found {
        let other: HashSet<K> = other.iter().map(&key).collect();
        all.retain(|one| other.contains(&key(one)));
    }
    all
}

/// What tells a finding from another one.
fn words_of(finding: &Finding) -> (&'static str, String, String) {
    (finding.check.id, finding.path(), finding.wrong.clone())
}

/// A value that no server would take.
struct Impossible {
    problem: FieldProblem,
    /// Where it is, from the part that is judged.
    path: Vec<Step>,
}

/// The impossible values of the policy at `outer`, whichever context it has.
fn impossible<'a>(specs: impl Iterator<Item = &'a Spec>, outer: &[Step]) -> Vec<Impossible> {
    let found = specs.map(|spec| Policy::resolve_as_far_as_possible(spec).1);
    let problems = common(found, |problem| (problem.field, problem.message.clone()));
    let problems = problems.into_iter().map(|problem| {
        let inner = problem.field.split('.').map(|name| Step::Field(name.to_owned()));
        Impossible { path: outer.iter().cloned().chain(inner).collect(), problem }
    });
    problems.collect()
}

/// The fields whose findings speak of the value as it is written, and say better what is wrong with an impossible one.
const SAID_BETTER: [&str; 3] = ["maxAttempts", "totalBudgetMs", "attemptTimeoutMs"];

/// The fields of which findings speak as if a possible value stood there.
const JUDGED_AS_POSSIBLE: [&str; 4] = ["scheduleMs", "multiplier", "maxDelayMs", "jitterRatio"];

/// The findings, each with its path in the file, and the impossible values, without what may only follow from a mistake
/// and what is said better by the other.
fn sound(
    findings: Vec<Finding>,
    mut impossible: Vec<Impossible>,
    rest: &Rest,
) -> (Vec<(Finding, Vec<Step>)>, Vec<Impossible>) {
    impossible.retain(|one| !rest.is_doubtful(&one.path));
    let others = impossible.iter().filter(|one| JUDGED_AS_POSSIBLE.contains(&one.problem.field));
    let others: HashSet<&[Step]> = others.map(|one| &one.path[..]).collect();
    let mut sound = Vec::with_capacity(findings.len());
    for finding in findings {
        let path = rest.original(&finding.at.iter().map(Step::from).collect::<Vec<_>>());
        if !rest.is_doubtful(&path) && !others.contains(&path[..]) {
            sound.push((finding, path));
        }
    }
    let said = sound.iter().filter(|(finding, _)| !finding.is_permitted());
    let said: HashSet<&[Step]> = said.map(|(_, path)| &path[..]).collect();
    impossible.retain(|one| !(SAID_BETTER.contains(&one.problem.field) && said.contains(&one.path[..])));
    (sound, impossible)
}

//! Contenders as people write them: `[LABEL:]POLICY[,FIELD=VALUE]…[+GUARD]…`.

use redrive_core::guards::budget::Drain;
use redrive_core::guards::{breaker, budget, concurrency};
use redrive_core::policy::{Context, Policy, Spec};
use redrive_scenario::{Contender, Guards, fixed_concurrency};
use redrive_standard::files::FilePolicy;
use redrive_standard::nearest;
use serde_json::{Map, Value};

use super::{Args, wrong};
use crate::commands::pairs::override_field;
use crate::commands::policies::document;

/// The default contenders: each is better than the one before. The last one has the guards that a service has by default.
const INSTRUCTIVE: [&str; 4] = [
    "fixed 1 s:backoff=fixed,initialDelayMs=1000,jitterType=NONE",
    "no jitter:default,jitterType=NONE",
    "full jitter:default",
    "with guards:default+budget+breaker+concurrency",
];

/// The contenders that were asked for.
pub(super) fn all(args: &Args) -> anyhow::Result<Vec<Contender>> {
    let named = match &args.file {
        Some(file) => document::written(&[file]).map_err(|error| wrong(format!("{error:#}")))?,
        None => Vec::new(),
    };
    let contenders = texts(args)
        .into_iter()
        .map(|text| one(text, &named).map_err(|why| wrong(format!("contender {text:?}: {why}"))));
    let mut contenders = contenders.collect::<Result<Vec<_>, _>>()?;
    for contender in &mut contenders {
        let guards = &mut contender.guards;
        guards.budget = guards.budget.or(args.budget.then(budget::Settings::default));
        guards.breaker = guards.breaker.or(args.breaker.then(breaker::Settings::default));
        guards.concurrency = guards.concurrency.or(args.concurrency.map(fixed_concurrency));
    }
    for (at, contender) in contenders.iter().enumerate() {
        if contenders[..at].iter().any(|other| other.name == contender.name) {
            return Err(wrong(format!(
                "two contenders are called {:?}: give them a label, as in a:default",
                contender.name
            )));
        }
    }
    Ok(contenders)
}

/// The contenders as they were written, or the instructive ones.
pub(super) fn texts(args: &Args) -> Vec<&str> {
    if args.contenders.is_empty() { INSTRUCTIVE.to_vec() } else { args.contenders.iter().map(String::as_str).collect() }
}

/// The label, if there is one, and what it stands for.
pub(super) fn labelled(text: &str) -> (Option<&str>, &str) {
    match text.split_once(':') {
        // A colon behind an equals sign belongs to a value.
        Some((label, rest)) if !label.contains('=') => (Some(label.trim()), rest),
        _ => (None, text),
    }
}

fn one(text: &str, named: &[FilePolicy]) -> Result<Contender, String> {
    let (label, rest) = labelled(text);
    let mut parts = rest.split('+');
    let spec = spec(parts.next().unwrap_or_default(), named)?;
    let policy = Policy::resolve(&spec).map_err(|invalid| invalid.to_string())?;
    let mut guards = Guards::default();
    for guard in parts {
        add(&mut guards, guard)?;
    }
    let name = label.unwrap_or(rest);
    if name.is_empty() {
        return Err("the label is empty".into());
    }
    Ok(Contender { guards, ..Contender::new(name, policy) })
}

/// The fields of a policy: a name, then changes; either may be missing.
fn spec(text: &str, named: &[FilePolicy]) -> Result<Spec, String> {
    let mut base = Spec::default();
    let mut changes = Map::new();
    for (at, item) in items(text).into_iter().enumerate() {
        if at == 0 && !item.contains('=') {
            base = by_name(item, named)?;
        } else {
            let (field, value) = override_field(item)?;
            if changes.insert(field.clone(), value).is_some() {
                return Err(format!("{field} is given twice"));
            }
        }
    }
    let changes: Spec = serde_json::from_value(Value::Object(changes)).map_err(|error| error.to_string())?;
    Ok(base.overridden_by(&changes))
}

fn by_name(name: &str, named: &[FilePolicy]) -> Result<Spec, String> {
    if name.is_empty() {
        return Err("a policy is missing, such as default".into());
    }
    if let Some(policy) = named.iter().find(|policy| policy.name == name) {
        return Ok(policy.spec.clone());
    }
    if name == "default" {
        return Ok(Spec::default());
    }
    match Context::from_name(name) {
        Some(context) => Ok(Spec { context: Some(context), ..Spec::default() }),
        None => {
            let presets = ["default"].into_iter().chain(Context::ALL.map(Context::as_str));
            let known: Vec<_> = presets.chain(named.iter().map(|policy| policy.name.as_str())).collect();
            let meant = nearest(name, known.iter().copied()).map(|meant| format!("; did you mean {meant}?"));
            Err(format!("there is no policy {name:?}; there are {}{}", known.join(", "), meant.unwrap_or_default()))
        }
    }
}

fn add(guards: &mut Guards, text: &str) -> Result<(), String> {
    let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    let twice = match (name, value) {
        ("budget", drain) => {
            let drain = drain.map_or(Some(Drain::default()), Drain::from_name);
            let drain = drain.ok_or("budget may be earned or strict, as in +budget=strict")?;
            guards.budget.replace(budget::Settings { drain, ..budget::Settings::default() }).is_some()
        }
        ("breaker", None) => guards.breaker.replace(breaker::Settings::default()).is_some(),
        ("breaker", Some(_)) => return Err("breaker takes no value: write +breaker".into()),
        ("concurrency", None) => guards.concurrency.replace(concurrency::Settings::default()).is_some(),
        ("concurrency", Some(number)) => {
            let limit = number.parse().ok().filter(|limit| *limit > 0);
            let limit = limit.ok_or("concurrency must be a number above zero, as in +concurrency=20")?;
            guards.concurrency.replace(fixed_concurrency(limit)).is_some()
        }
        _ => {
            return Err(format!(
                "there is no guard {text:?}; there are budget, budget=strict, breaker, concurrency and concurrency=N"
            ));
        }
    };
    if twice { Err(format!("{name} is given twice")) } else { Ok(()) }
}

/// The parts between commas, but not those within brackets: `scheduleMs=[1000,5000]` is one.
fn items(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let separates = |letter: char| {
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    };
    text.split(separates).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use redrive_core::backoff::Backoff;
    use redrive_core::jitter::Jitter;
    use redrive_standard::files::Source;

    use super::*;

    fn parsed(text: &str) -> Contender {
        one(text, &[]).unwrap()
    }

    #[test]
    fn a_contender_is_a_policy_with_changes_guards_and_a_label() {
        assert_eq!(parsed("default"), Contender::new("default", Policy::default()));
        let naive = parsed("naive:backoff=fixed,initialDelayMs=200,jitterType=NONE");
        assert_eq!(naive.name, "naive");
        assert_eq!(naive.policy.backoff, Backoff::Fixed { delay: Duration::from_millis(200) });
        assert_eq!((naive.policy.jitter, naive.guards), (Jitter::None, Guards::default()));
        let sync = parsed("sync,maxAttempts=2+budget+breaker+concurrency=20");
        assert_eq!(sync.name, "sync,maxAttempts=2+budget+breaker+concurrency=20");
        assert_eq!((sync.policy.context, sync.policy.max_attempts), (Some(Context::Sync), 2));
        assert_eq!(sync.guards.concurrency, Some(fixed_concurrency(20)));
        assert_eq!(sync.guards.budget, Some(budget::Settings::default()));
        assert_eq!(sync.guards.breaker, Some(breaker::Settings::default()));
        assert_eq!(parsed("default+concurrency").guards.concurrency, Some(concurrency::Settings::default()));
        for (text, drain) in [("", Drain::Earned), ("=earned", Drain::Earned), ("=strict", Drain::Strict)] {
            let budget = parsed(&format!("default+budget{text}")).guards.budget;
            assert_eq!(budget, Some(budget::Settings { drain, ..budget::Settings::default() }), "{text}");
        }
        let schedule = parsed("backoff=schedule,scheduleMs=[1000,5000],maxAttempts=4");
        let delays = [1, 5].map(Duration::from_secs).to_vec();
        assert_eq!((schedule.policy.backoff, schedule.policy.max_attempts), (Backoff::Schedule { delays }, 4));
    }

    #[test]
    fn what_is_no_contender_is_refused_with_what_is_wrong() {
        for (text, why) in [
            ("", "a policy is missing, such as default"),
            ("+budget", "a policy is missing, such as default"),
            (
                "snyc",
                "there is no policy \"snyc\"; there are default, sync, event, webhook, webhook-patient, batch, grpc",
            ),
            ("dafault", "grpc; did you mean default?"),
            ("default+budgte", "there is no guard \"budgte\"; there are budget, budget=strict, breaker, concurrency"),
            ("default+concurrency=0", "concurrency must be a number above zero"),
            ("default+concurrency=", "concurrency must be a number above zero, as in +concurrency=20"),
            ("default+budget=3", "budget may be earned or strict, as in +budget=strict"),
            ("default+breaker=3", "breaker takes no value: write +breaker"),
            ("default+budget+budget=strict", "budget is given twice"),
            ("default+breaker+breaker", "breaker is given twice"),
            ("default+concurrency+concurrency=2", "concurrency is given twice"),
            ("default,maxAttemps=3", "there is no field \"maxAttemps\"; did you mean maxAttempts?"),
            ("default,maxAttempts=three", "maxAttempts: must be a whole number, not \"three\""),
            ("default,multiplier=two", "multiplier: must be a number, not \"two\""),
            ("default,jitterType=full", "jitterType: there is no full; there are FULL, EQUAL"),
            ("default,maxAttempts", "must be FIELD=VALUE"),
            ("default,maxAttempts=0", "maxAttempts must be"),
            ("default,maxAttempts=2,maxAttempts=3", "maxAttempts is given twice"),
            ("default,colour=red", "there is no field \"colour\"; there are context, maxAttempts, backoff"),
            (":default", "the label is empty"),
        ] {
            let error = one(text, &[]).unwrap_err();
            assert!(error.contains(why), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_policy_of_the_file_comes_before_a_preset() {
        let file = Source::try_new("policies.toml", b"[policies.sync]\nmaxAttempts = 9".to_vec()).unwrap();
        let named = redrive_standard::files::policies(&file).unwrap();
        assert_eq!(one("sync", &named).unwrap().policy.max_attempts, 9);
        assert!(one("other", &named).unwrap_err().ends_with("grpc, sync"));
    }

    #[test]
    fn the_instructive_ones_are_contenders() {
        let contenders = INSTRUCTIVE.map(parsed);
        let Guards { budget, breaker, concurrency } = contenders[3].guards;
        let service = redrive_core::guards::Settings::default();
        assert_eq!((budget, breaker), (service.budget, service.breaker));
        assert_eq!(concurrency, Some(service.concurrency));
        assert_eq!(
            contenders.map(|contender| contender.name),
            ["fixed 1 s", "no jitter", "full jitter", "with guards"]
        );
    }
}

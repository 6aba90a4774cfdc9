//! The settings of alerts: when they fire, and who is told.
//!
//! Rules and sinks are sections of the file, or words:
//!
//! ```toml
//! [alerts.rules.retry-rate]
//! fire = 0.2
//! clear = 0.1
//!
//! [alerts.sinks.on-call]
//! kind = "slack"
//! url = "https://hooks.slack.com/services/…"
//! severity = "warning"
//! ```
//!
//! As words these are `retry-rate=0.2:0.1` and `on-call=slack:https://hooks.slack.com/services/…`.

use std::ops::RangeInclusive;
use std::time::Duration;

use redrive_core::alerts::{Rule, Rules, Severity, Signal};
use redrive_server::alerts::{Settings, SinkKind, SinkName, SinkSettings, Target};
use toml::{Table, Value};

use super::given::{Expected, Given};
use super::named::{Name, each, words};
use super::value::{duration, text};
use super::{Config, Setting, duration_text};

/// The most sinks.
const MOST_SINKS: usize = 10;

const DAY: Duration = Duration::from_secs(86_400);
const TIMES: RangeInclusive<Duration> = Duration::ZERO..=DAY;
const REPEATS: RangeInclusive<Duration> = Duration::from_secs(60)..=Duration::from_secs(30 * 86_400);

/// The word that turns a rule off.
const OFF: &str = "off";

pub(super) const WAIT: Setting = Setting {
    key: "alerts.wait",
    variable: "REDRIVE_ALERTS_WAIT",
    flag: "alerts-wait",
    value_name: "DURATION",
    meaning: "how long the first notification about a rule waits for more alerts of the same rule (for dead letters at most 15s)",
    repeats: false,
    read: |config, given| given.duration(TIMES).map(|wait| config.alerts.timing.wait = wait),
    show: |config| duration(config.alerts.timing.wait),
};

pub(super) const INTERVAL: Setting = Setting {
    key: "alerts.interval",
    variable: "REDRIVE_ALERTS_INTERVAL",
    flag: "alerts-interval",
    value_name: "DURATION",
    meaning: "the time between two notifications about a rule while its alerts change (for dead letters at most 15s)",
    repeats: false,
    read: |config, given| given.duration(TIMES).map(|interval| config.alerts.timing.interval = interval),
    show: |config| duration(config.alerts.timing.interval),
};

pub(super) const REPEAT: Setting = Setting {
    key: "alerts.repeat",
    variable: "REDRIVE_ALERTS_REPEAT",
    flag: "alerts-repeat",
    value_name: "DURATION",
    meaning: "the time after which sinks are told again of what still fires (an Alertmanager every 5m at the latest)",
    repeats: false,
    read: |config, given| given.duration(REPEATS).map(|repeat| config.alerts.timing.repeat = repeat),
    show: |config| duration(config.alerts.timing.repeat),
};

pub(super) const RULES: Setting = Setting {
    key: "alerts.rules",
    variable: "REDRIVE_ALERTS_RULES",
    flag: "alert-rules",
    value_name: "NAME=off|FIRE:CLEAR",
    meaning: "rules of alerts that differ from their defaults: NAME=off, NAME=FIRE or NAME=FIRE:CLEAR (in the variable: \
        separated by ','); in the file a section for each, [alerts.rules.NAME] with enabled, fire, clear, window, wait, keep \
        and severity; docs/alerts.md lists the rules",
    repeats: true,
    read: |config, given| read_rules(given).map(|rules| config.alerts.rules = rules),
    show: |config| show_rules(&config.alerts.rules),
};

pub(super) const SINKS: Setting = Setting {
    key: "alerts.sinks",
    variable: "REDRIVE_ALERTS_SINKS",
    flag: "alert-sinks",
    value_name: "NAME=KIND:URL",
    meaning: "who is told of alerts: NAME=alertmanager:URL, NAME=webhook:URL or NAME=slack:URL (in the variable: separated by \
        ','); in the file a section for each, [alerts.sinks.NAME] with kind, url, authorization, rules and severity",
    repeats: true,
    read: |config, given| read_sinks(given).map(|sinks| config.alerts.sinks = sinks),
    show: |config| words(config.alerts.sinks.iter().map(|sink| format!("{}={}:***", sink.name, sink.kind.as_str()))),
};

impl Name for SinkName {
    fn read(text: &str) -> Result<Self, Expected> {
        SinkName::try_new(text)
            .ok_or_else(|| format!("the sink {text:?} must have a name of 1 to 32 lower-case letters, digits and '-'"))
    }
}

/// The name of a rule.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct RuleName(Signal);

impl std::fmt::Display for RuleName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.as_str())
    }
}

impl Name for RuleName {
    fn read(text: &str) -> Result<Self, Expected> {
        Signal::from_name(text).map(RuleName).ok_or_else(|| {
            let names = Signal::ALL.map(Signal::as_str);
            match redrive_standard::nearest(text, names.into_iter()) {
                Some(meant) => format!("there is no rule {text:?}; did you mean {meant}?"),
                None => format!("there is no rule {text:?}; there are {}", names.join(", ")),
            }
        })
    }
}

/// What was given of a rule; the rest stays as it is by default.
#[derive(Default)]
struct RuleChange {
    is_enabled: Option<bool>,
    fire: Option<f64>,
    clear: Option<f64>,
    window: Option<Duration>,
    wait: Option<Duration>,
    keep: Option<Duration>,
    severity: Option<Severity>,
}

impl RuleChange {
    fn apply(self, signal: Signal) -> Result<Rule, Expected> {
        let rule = Rule::default_of(signal);
        if self.window.is_some() && !signal.has_window() {
            return Err("has no window: its value is that of the moment".into());
        }
        let changed = |clear| Rule {
            signal,
            is_enabled: self.is_enabled.unwrap_or(rule.is_enabled),
            fire: self.fire.unwrap_or(rule.fire),
            clear,
            window: self.window.unwrap_or(rule.window),
            wait: self.wait.unwrap_or(rule.wait),
            keep: self.keep.unwrap_or(rule.keep),
            severity: self.severity.unwrap_or(rule.severity),
        };
        let changed = match (self.clear, self.fire) {
            (Some(clear), _) => changed(clear),
            // The default may be on the wrong side of a value that was given.
            (None, Some(fire)) if changed(rule.clear).validate().is_err() => changed(fire),
            (None, _) => changed(rule.clear),
        };
        changed.validate().map(|()| changed).map_err(|invalid| invalid.to_string())
    }
}

fn read_rules(given: &Given) -> Result<Rules, Expected> {
    let changes = each::<RuleName, RuleChange>(given, rule_word, rule_section)?;
    let mut rules = Rules::default();
    for (RuleName(signal), change) in changes {
        rules.set(change.apply(signal).map_err(|wrong| format!("{}: {wrong}", signal.as_str()))?);
    }
    Ok(rules)
}

fn rule_word(word: &str) -> Result<RuleChange, Expected> {
    if word == OFF {
        return Ok(RuleChange { is_enabled: Some(false), ..RuleChange::default() });
    }
    let number = |text: &str| Given::Plain(text.to_owned()).fraction();
    let (fire, clear) = word.split_once(':').map_or((word, None), |(fire, clear)| (fire, Some(clear)));
    let wanted = |wrong| format!("{wrong}, or {OFF}");
    Ok(RuleChange {
        fire: Some(number(fire).map_err(wanted)?),
        clear: clear.map(number).transpose().map_err(wanted)?,
        ..RuleChange::default()
    })
}

fn rule_section(fields: &[(String, Given)]) -> Result<RuleChange, Expected> {
    let mut change = RuleChange::default();
    for (name, value) in fields {
        let read =
            match name.as_str() {
                "enabled" => value.truth().map(|is_enabled| change.is_enabled = Some(is_enabled)),
                "fire" => value.fraction().map(|fire| change.fire = Some(fire)),
                "clear" => value.fraction().map(|clear| change.clear = Some(clear)),
                "window" => value.duration(TIMES).map(|window| change.window = Some(window)),
                "wait" => value.duration(TIMES).map(|wait| change.wait = Some(wait)),
                "keep" => value.duration(TIMES).map(|keep| change.keep = Some(keep)),
                "severity" => severity(value).map(|severity| change.severity = Some(severity)),
                _ => Err("is not a setting of a rule; there are enabled, fire, clear, window, wait, keep and severity"
                    .into()),
            };
        read.map_err(|wrong| format!("{name} {wrong}"))?;
    }
    Ok(change)
}

fn severity(given: &Given) -> Result<Severity, Expected> {
    given.one_of(&Severity::ALL.map(|severity| (severity.as_str(), severity)))
}

/// The rules that are not as by default, each with what is different.
fn show_rules(rules: &Rules) -> Value {
    let changed = rules.iter().filter(|rule| **rule != Rule::default_of(rule.signal));
    Value::Table(changed.map(|rule| (rule.signal.as_str().to_owned(), Value::Table(differences(rule)))).collect())
}

fn differences(rule: &Rule) -> Table {
    let default = Rule::default_of(rule.signal);
    let fields = [
        ("enabled", Value::Boolean(rule.is_enabled), rule.is_enabled != default.is_enabled),
        ("fire", Value::Float(rule.fire), rule.fire != default.fire),
        ("clear", Value::Float(rule.clear), rule.clear != default.clear),
        ("window", duration(rule.window), rule.window != default.window),
        ("wait", duration(rule.wait), rule.wait != default.wait),
        ("keep", duration(rule.keep), rule.keep != default.keep),
        ("severity", text(rule.severity.as_str()), rule.severity != default.severity),
    ];
    fields.into_iter().filter(|(_, _, differs)| *differs).map(|(name, value, _)| (name.to_owned(), value)).collect()
}

/// What was given of a sink, apart from its name.
struct Sink {
    kind: SinkKind,
    target: Target,
    signals: Vec<Signal>,
    least_severity: Severity,
}

fn read_sinks(given: &Given) -> Result<Vec<SinkSettings>, Expected> {
    // Checked here, because the general error would show the word, which may be a secret.
    if let Ok(words) = given.words(|word| Ok(word.to_owned()))
        && words.iter().any(|word| !word.contains('='))
    {
        return Err("must be NAME=KIND:URL".into());
    }
    let sinks = each::<SinkName, Sink>(given, sink_word, sink_section)?;
    if sinks.len() > MOST_SINKS {
        return Err(format!("must be at most {MOST_SINKS} sinks"));
    }
    let sink = |(name, Sink { kind, target, signals, least_severity })| SinkSettings {
        name,
        kind,
        target,
        signals,
        least_severity,
    };
    Ok(sinks.into_iter().map(sink).collect())
}

fn sink_word(word: &str) -> Result<Sink, Expected> {
    let kinds = SinkKind::ALL.map(SinkKind::as_str).join(", ");
    let parts = word.split_once(':').and_then(|(kind, url)| Some((SinkKind::from_name(kind)?, url)));
    let (kind, url) = parts.ok_or_else(|| format!("must be KIND:URL, with one of the kinds {kinds}"))?;
    let target = Target { url: url_of(url)?, authorization: None };
    Ok(Sink { kind, target, signals: Vec::new(), least_severity: Severity::Info })
}

fn sink_section(fields: &[(String, Given)]) -> Result<Sink, Expected> {
    let (mut kind, mut url, mut authorization) = (None, None, None);
    let (mut signals, mut least_severity) = (Vec::new(), Severity::Info);
    for (name, value) in fields {
        let read = match name.as_str() {
            "kind" => value.one_of(&SinkKind::ALL.map(|kind| (kind.as_str(), kind))).map(|given| kind = Some(given)),
            "url" => value.text().and_then(url_of).map(|given| url = Some(given)),
            "authorization" => value.text().and_then(header).map(|given| authorization = Some(given)),
            "rules" => value.words(told_rule).map(|given| signals = given),
            "severity" => severity(value).map(|given| least_severity = given),
            _ => Err("is not a setting of a sink; there are kind, url, authorization, rules and severity".into()),
        };
        read.map_err(|wrong| format!("{name} {wrong}"))?;
    }
    let kind = kind.ok_or("kind must be given")?;
    let url = url.ok_or("url must be given")?;
    Ok(Sink { kind, target: Target { url, authorization }, signals, least_severity })
}

/// A rule that sinks are told of.
fn told_rule(word: &str) -> Result<Signal, Expected> {
    match RuleName::read(word)?.0 {
        signal if signal.is_local() => Err(format!("{word} is told to no sink: it is about sinks")),
        signal => Ok(signal),
    }
}

/// A URL that a notification can be sent to. Errors never contain it.
fn url_of(text: &str) -> Result<String, Expected> {
    let url: hyper::Uri = text.parse().map_err(|_| "must be an absolute URL: https://HOST/PATH")?;
    let is_http = matches!(url.scheme_str(), Some("http" | "https"));
    match url.authority() {
        Some(authority) if authority.as_str().contains('@') => {
            Err("must not contain a user and password; set authorization, such as \"Bearer …\", instead".into())
        }
        Some(_) if is_http => Ok(text.to_owned()),
        _ => Err("must be an absolute URL: https://HOST/PATH".into()),
    }
}

fn header(text: &str) -> Result<String, Expected> {
    match hyper::header::HeaderValue::from_str(text) {
        Ok(_) if !text.trim().is_empty() => Ok(text.to_owned()),
        _ => Err("must be the value of a header, such as \"Bearer …\"".into()),
    }
}

/// What is wrong with the settings of alerts as a whole: each with its key.
pub(super) fn problems(config: &Config) -> Vec<(&'static str, String)> {
    let Settings { timing, .. } = &config.alerts;
    let wrong = format!("must be at least alerts.interval ({})", duration_text(timing.interval));
    (timing.repeat < timing.interval).then_some((REPEAT.key, wrong)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(setting: &Setting, given: &Given) -> Result<Settings, Expected> {
        let mut config = Config::default();
        (setting.read)(&mut config, given).map(|()| config.alerts)
    }

    fn section(fields: &[(&str, Given)]) -> Given {
        Given::Section(fields.iter().map(|(name, value)| (name.to_string(), value.clone())).collect())
    }

    fn fraction(written: &str) -> Given {
        Given::Other { kind: "a fraction", written: written.into() }
    }

    fn plain(text: &str) -> Given {
        Given::Plain(text.into())
    }

    fn quoted(text: &str) -> Given {
        Given::Quoted(text.into())
    }

    #[test]
    fn rules_are_words_or_sections_and_the_rest_stays_as_by_default() {
        let rule = |signal| Rule::default_of(signal);
        let expected = [
            Rule { fire: 0.2, clear: 0.1, ..rule(Signal::RetryRate) },
            Rule { is_enabled: false, ..rule(Signal::DependencyPaused) },
            // The default of `clear` would be above it.
            Rule { fire: 0.002, clear: 0.002, ..rule(Signal::DeadLetterRate) },
        ];
        let words = plain("retry-rate=0.2:0.1, dependency-paused=off,dead-letter-rate=0.002");
        let sections = section(&[
            ("retry-rate", section(&[("fire", fraction("0.2")), ("clear", fraction("0.1"))])),
            ("dependency-paused", section(&[("enabled", Given::Truth(false))])),
            ("dead-letter-rate", section(&[("fire", fraction("0.002"))])),
        ]);
        for given in [words, sections] {
            let rules = read(&RULES, &given).unwrap().rules;
            for expected in &expected {
                assert_eq!(rules.of(expected.signal), expected, "{given}");
            }
            let others = rules.iter().filter(|rule| expected.iter().all(|other| other.signal != rule.signal));
            others.for_each(|rule| assert_eq!(*rule, Rule::default_of(rule.signal)));
            let config = Config { alerts: Settings { rules, ..Settings::default() }, ..Config::default() };
            let shown = RULES.written(&config);
            assert_eq!(
                shown,
                "{ dead-letter-rate = { clear = 0.002, fire = 0.002 }, dependency-paused = { enabled = false }, \
                 retry-rate = { clear = 0.1, fire = 0.2 } }"
            );
        }
        let whole = section(&[
            ("fire", Given::Whole(5)),
            ("window", quoted("15m")),
            ("wait", quoted("1m")),
            ("keep", quoted("2m")),
            ("severity", quoted("critical")),
        ]);
        let rules = read(&RULES, &section(&[("dead-letter-growth", whole)])).unwrap().rules;
        let minutes = |minutes: u64| Duration::from_secs(minutes * 60);
        let expected = Rule {
            signal: Signal::DeadLetterGrowth,
            is_enabled: true,
            fire: 5.0,
            clear: 0.0,
            window: minutes(15),
            wait: minutes(1),
            keep: minutes(2),
            severity: Severity::Critical,
        };
        assert_eq!(*rules.of(Signal::DeadLetterGrowth), expected);
    }

    #[test]
    fn sinks_are_words_or_sections_and_their_addresses_are_not_shown() {
        let words = plain("ops=alertmanager:http://127.0.0.1:9093, on-call=slack:https://hooks.example/T1/s3cret");
        let settings = read(&SINKS, &words).unwrap();
        let seen: Vec<_> =
            settings.sinks.iter().map(|sink| (sink.name.as_str(), sink.kind, &sink.target.url)).collect();
        assert_eq!(seen[0].0, "on-call");
        assert_eq!((seen[1].1, seen[1].2.as_str()), (SinkKind::Alertmanager, "http://127.0.0.1:9093"));
        let config = Config { alerts: settings, ..Config::default() };
        assert_eq!(SINKS.written(&config), r#"["on-call=slack:***", "ops=alertmanager:***"]"#);
        assert!(!format!("{config:?}").contains("s3cret"));

        let fields = section(&[
            ("kind", quoted("webhook")),
            ("url", quoted("https://hooks.example/")),
            ("authorization", quoted("Bearer s3cret")),
            ("rules", Given::Many(vec!["dead-letter".into(), "breaker-open".into()])),
            ("severity", quoted("warning")),
        ]);
        let sinks = read(&SINKS, &section(&[("ops", fields)])).unwrap().sinks;
        let expected = SinkSettings {
            name: SinkName::try_new("ops").unwrap(),
            kind: SinkKind::Webhook,
            target: Target { url: "https://hooks.example/".into(), authorization: Some("Bearer s3cret".into()) },
            signals: vec![Signal::DeadLetter, Signal::BreakerOpen],
            least_severity: Severity::Warning,
        };
        assert_eq!(sinks, [expected]);
    }

    #[test]
    fn what_is_wrong_is_said_with_the_name_that_it_is_about_and_without_the_secret() {
        let sink = |field: &str, value| section(&[("ops", section(&[(field, value)]))]);
        let rule = |name: &str, field: &str, value| section(&[(name, section(&[(field, value)]))]);
        for (setting, given, expected) in [
            (&RULES, plain("retry-rates=0.2"), "there is no rule \"retry-rates\"; did you mean retry-rate?"),
            (&RULES, plain("retry-rate=high"), "the value of retry-rate must be a number of at least 0, or off"),
            (&RULES, plain("retry-rate=0.1:0.2"), "retry-rate: clear must be at or below fire"),
            (&RULES, plain("second-attempt-success=0.6:0.5"), "second-attempt-success: clear must be at or above fire"),
            (&RULES, rule("retry-rate", "colour", Given::Whole(1)), "retry-rate.colour is not a setting of a rule"),
            (&RULES, rule("retry-rate", "fire", quoted("0.1")), "retry-rate.fire must be a number of at least 0"),
            (&RULES, rule("retry-rate", "fire", fraction("-0.1")), "retry-rate.fire must be a number of at least 0"),
            (&RULES, rule("retry-rate", "window", quoted("2h")), "retry-rate: window must be from 1 minute to 1 hour"),
            (&RULES, rule("breaker-open", "window", quoted("5m")), "breaker-open: has no window"),
            (
                &RULES,
                rule("retry-rate", "severity", quoted("high")),
                "retry-rate.severity must be info or warning or critical",
            ),
            (&SINKS, plain("https://hooks.example/s3cret"), "must be NAME=KIND:URL"),
            (
                &SINKS,
                plain("ops=https://hooks.example/s3cret"),
                "the value of ops must be KIND:URL, with one of the kinds",
            ),
            (&SINKS, plain("Ops=slack:https://hooks.example/s3cret"), "the sink \"Ops\" must have a name"),
            (&SINKS, plain("ops=slack:/s3cret"), "the value of ops must be an absolute URL"),
            (&SINKS, plain("ops=slack:ftp://s3cret"), "the value of ops must be an absolute URL"),
            (&SINKS, plain("ops=slack:https://me:s3cret@h/"), "the value of ops must not contain a user and password"),
            (&SINKS, sink("url", quoted("https://h/")), "ops.kind must be given"),
            (&SINKS, sink("kind", quoted("slack")), "ops.url must be given"),
            (&SINKS, sink("kind", quoted("mail")), "ops.kind must be alertmanager or webhook or slack"),
            (&SINKS, sink("authorization", quoted("s3cret\n")), "ops.authorization must be the value of a header"),
            (&SINKS, sink("rules", quoted("retry")), "ops.rules there is no rule"),
            (&SINKS, sink("to", quoted("me")), "ops.to is not a setting of a sink"),
        ] {
            let wrong = read(setting, &given).unwrap_err();
            assert!(wrong.starts_with(expected), "{given}: {wrong}");
            assert!(!wrong.contains("s3cret"), "{wrong}");
        }
        let many = (0..=MOST_SINKS).map(|n| format!("s{n}=slack:https://h/")).collect::<Vec<_>>();
        assert_eq!(read(&SINKS, &Given::Many(many)), Err("must be at most 10 sinks".into()));
    }
}

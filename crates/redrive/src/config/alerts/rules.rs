//! Rules that differ from their defaults.

use std::fmt;
use std::time::Duration;

use redrive_core::alerts::{Rule, Rules, Severity, Signal};
use toml::{Table, Value};

use super::{TIMES, severity};
use crate::config::given::{Expected, Given};
use crate::config::named::{Name, each};
use crate::config::value::{duration, text};

/// The word that turns a rule off.
const OFF: &str = "off";

/// The name of a rule.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RuleName(pub(super) Signal);

impl fmt::Display for RuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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

pub(super) fn read(given: &Given) -> Result<Rules, Expected> {
    let changes = each::<RuleName, RuleChange>(given, word, section)?;
    let mut rules = Rules::default();
    for (RuleName(signal), change) in changes {
        rules.set(change.apply(signal).map_err(|wrong| format!("{}: {wrong}", signal.as_str()))?);
    }
    Ok(rules)
}

fn word(word: &str) -> Result<RuleChange, Expected> {
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

fn section(fields: &[(String, Given)]) -> Result<RuleChange, Expected> {
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

/// The rules that are not as by default, each with what is different.
pub(super) fn show(rules: &Rules) -> Value {
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

//! The settings of idempotency records and inboxes.
//!
//! Operations and consumers with settings of their own are sections of the file, or words:
//!
//! ```toml
//! [idempotency.operations.create-payment]
//! financial = true
//! retention = "30d"
//!
//! [idempotency.consumers.billing]
//! window = "14d"
//! ```
//!
//! As words these are `create-payment=financial:30d` and `billing=14d`.

use std::ops::RangeInclusive;
use std::time::Duration;

use redrive_core::{Consumer, OperationName};
use redrive_server::Standard;
use redrive_server::idempotency::{OperationSettings, Settings};

use super::given::{Expected, Given};
use super::named::{Name, each, words};
use super::value::duration;
use super::{Config, Setting, duration_text};

/// The retentions that can be configured.
const RETENTIONS: RangeInclusive<Duration> = Duration::from_secs(60)..=*Settings::RETENTIONS.end();

const FINANCIAL: &str = "financial";

pub(super) const RETENTION: Setting = Setting {
    key: "idempotency.retention",
    variable: "REDRIVE_IDEMPOTENCY_RETENTION",
    flag: "idempotency-retention",
    value_name: "DURATION",
    meaning: "how long an idempotency record is kept after its end, unless its request asks for another time",
    repeats: false,
    read: |config, given| given.duration(RETENTIONS).map(|retention| config.idempotency.retention = retention),
    show: |config| duration(config.idempotency.retention),
};

pub(super) const FINANCIAL_RETENTION: Setting = Setting {
    key: "idempotency.financial_retention",
    variable: "REDRIVE_IDEMPOTENCY_FINANCIAL_RETENTION",
    flag: "financial-retention",
    value_name: "DURATION",
    meaning: "how long a record of a financial operation is kept after its end; no request may ask for less",
    repeats: false,
    read: |config, given| {
        given.duration(RETENTIONS).map(|retention| config.idempotency.financial_retention = retention)
    },
    show: |config| duration(config.idempotency.financial_retention),
};

pub(super) const LEASE: Setting = Setting {
    key: "idempotency.lease",
    variable: "REDRIVE_IDEMPOTENCY_LEASE",
    flag: "idempotency-lease",
    value_name: "DURATION",
    meaning: "how long no other execution may take over a record or an event, unless its request asks for another time",
    repeats: false,
    read: |config, given| given.duration(Settings::LEASES).map(|lease| config.idempotency.lease = lease),
    show: |config| duration(config.idempotency.lease),
};

pub(super) const INBOX_WINDOW: Setting = Setting {
    key: "idempotency.inbox_window",
    variable: "REDRIVE_IDEMPOTENCY_INBOX_WINDOW",
    flag: "inbox-window",
    value_name: "DURATION",
    meaning: "how long the id of an event is kept, unless its request asks for another time",
    repeats: false,
    read: |config, given| given.duration(RETENTIONS).map(|window| config.idempotency.inbox_window = window),
    show: |config| duration(config.idempotency.inbox_window),
};

pub(super) const OPERATIONS: Setting = Setting {
    key: "idempotency.operations",
    variable: "REDRIVE_IDEMPOTENCY_OPERATIONS",
    flag: "idempotency-operations",
    value_name: "NAME=financial|DURATION",
    meaning: "operations that are financial or have a retention of their own: NAME=financial, NAME=DURATION or \
        NAME=financial:DURATION (in the variable: separated by ','); in the file also a section for each, \
        [idempotency.operations.NAME] with financial and retention",
    repeats: true,
    read: |config, given| {
        each(given, read_operation, operation_section).map(|operations| config.idempotency.operations = operations)
    },
    show: |config| words(config.idempotency.operations.iter().filter_map(|(name, own)| operation_word(name, own))),
};

pub(super) const CONSUMERS: Setting = Setting {
    key: "idempotency.consumers",
    variable: "REDRIVE_IDEMPOTENCY_CONSUMERS",
    flag: "inbox-consumers",
    value_name: "NAME=DURATION",
    meaning: "consumers whose event ids are kept for a time of their own: NAME=DURATION (in the variable: separated by \
        ','); in the file also a section for each, [idempotency.consumers.NAME] with window",
    repeats: true,
    read: |config, given| {
        each(given, read_window, consumer_section).map(|consumers| config.idempotency.consumers = consumers)
    },
    show: |config| {
        words(config.idempotency.consumers.iter().map(|(name, window)| format!("{name}={}", duration_text(*window))))
    },
};

impl Name for OperationName {
    fn read(text: &str) -> Result<Self, Expected> {
        OperationName::try_new(text).map_err(|invalid| format!("the operation {text:?} {invalid}"))
    }
}

impl Name for Consumer {
    fn read(text: &str) -> Result<Self, Expected> {
        Consumer::try_new(text).map_err(|invalid| format!("the consumer {text:?} {invalid}"))
    }
}

fn read_operation(value: &str) -> Result<OperationSettings, Expected> {
    let (is_financial, retention) = match value.split_once(':') {
        Some((FINANCIAL, retention)) => (true, Some(retention)),
        None if value == FINANCIAL => (true, None),
        _ => (false, Some(value)),
    };
    let retention = retention.map(read_window).transpose();
    let retention = retention.map_err(|wrong| format!("{wrong}, or {FINANCIAL}, or {FINANCIAL}:DURATION"))?;
    Ok(OperationSettings { retention, is_financial })
}

fn read_window(value: &str) -> Result<Duration, Expected> {
    Given::Plain(value.to_owned()).duration(RETENTIONS)
}

fn operation_section(fields: &[(String, Given)]) -> Result<OperationSettings, Expected> {
    let mut own = OperationSettings::default();
    for (name, value) in fields {
        let read = match name.as_str() {
            "retention" => value.duration(RETENTIONS).map(|retention| own.retention = Some(retention)),
            FINANCIAL => value.truth().map(|is_financial| own.is_financial = is_financial),
            _ => Err(format!("is not a setting of an operation; there are retention and {FINANCIAL}")),
        };
        read.map_err(|wrong| format!("{name} {wrong}"))?;
    }
    Ok(own)
}

fn consumer_section(fields: &[(String, Given)]) -> Result<Duration, Expected> {
    let mut window = None;
    for (name, value) in fields {
        let read = match name.as_str() {
            "window" => value.duration(RETENTIONS).map(|given| window = Some(given)),
            _ => Err("is not a setting of a consumer; there is window".into()),
        };
        read.map_err(|wrong| format!("{name} {wrong}"))?;
    }
    window.ok_or_else(|| "window must be given".into())
}

/// `None` if it has nothing of its own: then it is like every other operation.
fn operation_word(name: &OperationName, own: &OperationSettings) -> Option<String> {
    match (own.is_financial, own.retention.map(duration_text)) {
        (true, None) => Some(format!("{name}={FINANCIAL}")),
        (true, Some(retention)) => Some(format!("{name}={FINANCIAL}:{retention}")),
        (false, Some(retention)) => Some(format!("{name}={retention}")),
        (false, None) => None,
    }
}

/// The settings that the retry standard does not allow where it is enforced: each with its key and what would be right.
pub(super) fn problems(config: &Config) -> Vec<(&'static str, String)> {
    let Settings { retention, financial_retention, inbox_window, operations, consumers, .. } = &config.idempotency;
    if config.standard != Standard::Enforce {
        return Vec::new();
    }
    let (key, window) = (Settings::STANDARD_RETENTION, Settings::STANDARD_WINDOW);
    let own_retentions = operations.iter().filter_map(|(name, own)| Some((name.to_string(), own.retention?)));
    let windows = consumers.iter().map(|(name, window)| (name.to_string(), *window));
    let one = |setting, kept: &Duration, least| (setting, String::new(), *kept, least);
    let all = [
        one("idempotency.retention", retention, key),
        one("idempotency.financial_retention", financial_retention, key),
        one("idempotency.inbox_window", inbox_window, window),
    ]
    .into_iter()
    .chain(own_retentions.map(|(name, kept)| ("idempotency.operations", name, kept, key)))
    .chain(windows.map(|(name, kept)| ("idempotency.consumers", name, kept, window)));
    all.filter(|(_, _, kept, least)| kept < least)
        .map(|(setting, name, _, least)| {
            let name = if name.is_empty() { name } else { format!("{name} ") };
            (setting, format!("{name}must be at least {} with standard = \"enforce\" (R-6)", duration_text(least)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn operation(name: &str, retention: Option<Duration>, is_financial: bool) -> (OperationName, OperationSettings) {
        (OperationName::try_new(name).unwrap(), OperationSettings { retention, is_financial })
    }

    fn read(setting: &Setting, given: &Given) -> Result<Config, Expected> {
        let mut config = Config::default();
        (setting.read)(&mut config, given).map(|()| config)
    }

    fn section(fields: &[(&str, Given)]) -> Given {
        Given::Section(fields.iter().map(|(name, value)| (name.to_string(), value.clone())).collect())
    }

    #[test]
    fn operations_are_words_or_sections_and_are_shown_as_words() {
        let words = Given::Plain("pay=financial, refund=financial:30d,export=2d".into());
        let quoted = |text: &str| Given::Quoted(text.into());
        let sections = section(&[
            ("pay", section(&[("financial", Given::Truth(true))])),
            ("refund", section(&[("financial", Given::Truth(true)), ("retention", quoted("30d"))])),
            ("export", section(&[("retention", quoted("2d"))])),
        ]);
        let expected: BTreeMap<_, _> = [
            operation("pay", None, true),
            operation("refund", Some(30 * DAY), true),
            operation("export", Some(2 * DAY), false),
        ]
        .into();
        for given in [words, sections] {
            let config = read(&OPERATIONS, &given).unwrap();
            assert_eq!(config.idempotency.operations, expected, "{given}");
            let shown = Given::Many(
                (OPERATIONS.show)(&config)
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|word| word.as_str().unwrap().into())
                    .collect(),
            );
            assert_eq!(read(&OPERATIONS, &shown).unwrap(), config, "{shown}");
        }
    }

    #[test]
    fn consumers_are_words_or_sections() {
        let window = |days| section(&[("window", Given::Quoted(days))]);
        for given in [Given::Many(vec!["billing=14d".into()]), section(&[("billing", window("14d".into()))])] {
            let config = read(&CONSUMERS, &given).unwrap();
            assert_eq!(config.idempotency.window_of(&Consumer::try_new("billing").unwrap()), 14 * DAY, "{given}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_the_name_that_it_is_about() {
        let plain = |text: &str| Given::Plain(text.into());
        for (setting, given, expected) in [
            (&OPERATIONS, plain("pay"), "\"pay\" must be NAME=VALUE"),
            (&OPERATIONS, plain("a b=2d"), "the operation \"a b\" must be letters"),
            (&OPERATIONS, plain("pay=2d,pay=3d"), "pay must be given only once"),
            (&OPERATIONS, plain("pay=5s"), "the value of pay must be from 1m to 90d, or financial"),
            (&OPERATIONS, plain("pay=cheap"), "the value of pay must be a duration"),
            (&OPERATIONS, Given::Whole(5), "must be a list of strings"),
            (&OPERATIONS, section(&[("pay", Given::Truth(true))]), "pay must be a section"),
            (
                &OPERATIONS,
                section(&[("pay", section(&[("colour", Given::Whole(1))]))]),
                "pay.colour is not a setting of an operation",
            ),
            (
                &OPERATIONS,
                section(&[("pay", section(&[("financial", Given::Whole(1))]))]),
                "pay.financial must be true or false",
            ),
            (
                &OPERATIONS,
                section(&[("pay", section(&[("retention", Given::Whole(1))]))]),
                "pay.retention must be a duration with its unit",
            ),
            (&CONSUMERS, section(&[("billing", section(&[]))]), "billing.window must be given"),
            (&CONSUMERS, plain("billing=91d"), "the value of billing must be from 1m to 90d"),
        ] {
            let wrong = read(setting, &given).unwrap_err();
            assert!(wrong.starts_with(expected), "{given}: {wrong}");
        }
    }

    #[test]
    fn where_the_standard_is_enforced_short_retentions_and_windows_are_problems() {
        let mut config = Config { standard: Standard::Enforce, ..Config::default() };
        assert_eq!(problems(&config), []);
        let short = DAY - Duration::from_secs(1);
        config.idempotency = Settings {
            retention: short,
            financial_retention: short,
            inbox_window: 6 * DAY,
            operations: [operation("a", Some(short), false), operation("b", Some(DAY), false)].into(),
            consumers: [(Consumer::try_new("c").unwrap(), 6 * DAY)].into(),
            ..Settings::default()
        };
        let day = "must be at least 1d with standard = \"enforce\" (R-6)".to_owned();
        let week = "must be at least 7d with standard = \"enforce\" (R-6)".to_owned();
        let expected = [
            ("idempotency.retention", day.clone()),
            ("idempotency.financial_retention", day.clone()),
            ("idempotency.inbox_window", week.clone()),
            ("idempotency.operations", format!("a {day}")),
            ("idempotency.consumers", format!("c {week}")),
        ];
        assert_eq!(problems(&config), expected);
        config.standard = Standard::Warn;
        assert_eq!(problems(&config), []);
    }
}

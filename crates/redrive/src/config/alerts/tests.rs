use redrive_core::alerts::{Rule, Signal};
use redrive_server::alerts::{SinkKind, SinkName, SinkSettings, Target};

use super::sinks::MOST_SINKS;
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
    let seen: Vec<_> = settings.sinks.iter().map(|sink| (sink.name.as_str(), sink.kind, &sink.target.url)).collect();
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
        (&SINKS, plain("https://hooks.example/s3cret?key=s3cret"), "must be NAME=KIND:URL"),
        (&SINKS, plain("slack:https://hooks.example/s3cret?key=s3cret"), "must be NAME=KIND:URL"),
        (&SINKS, plain("ops=https://hooks.example/s3cret"), "the value of ops must be KIND:URL, with one of the kinds"),
        (&SINKS, plain("Ops=slack:https://hooks.example/s3cret"), "the sink \"Ops\" must have a name"),
        (&SINKS, plain("ops=slack:/s3cret"), "the value of ops must be an absolute URL"),
        (&SINKS, plain("ops=slack:https://h:99999/s3cret"), "the value of ops must be an absolute URL"),
        (&SINKS, plain("ops=slack:https://h:0/s3cret"), "the value of ops must be an absolute URL"),
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

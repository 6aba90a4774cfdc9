//! Sinks of alerts: who is told.

use hyper::http::uri::Authority;
use redrive_core::alerts::{Severity, Signal};
use redrive_server::alerts::{SinkKind, SinkName, SinkSettings, Target};
use toml::Value;

use super::rules::RuleName;
use super::severity;
use crate::config::given::{Expected, Given};
use crate::config::named::{Name, each, words};

/// The most sinks.
pub(super) const MOST_SINKS: usize = 10;

impl Name for SinkName {
    fn read(text: &str) -> Result<Self, Expected> {
        SinkName::try_new(text)
            .ok_or_else(|| format!("the sink {text:?} must have a name of 1 to 32 lower-case letters, digits and '-'"))
    }
}

/// What was given of a sink, apart from its name.
struct Sink {
    kind: SinkKind,
    target: Target,
    signals: Vec<Signal>,
    least_severity: Severity,
}

pub(super) fn read(given: &Given) -> Result<Vec<SinkSettings>, Expected> {
    // Checked here, because the general error would show the word, which may be a URL with a secret.
    let has_name = |word: &String| word.split_once('=').is_some_and(|(name, _)| !name.contains([':', '/']));
    if let Ok(words) = given.words(|word| Ok(word.to_owned()))
        && !words.iter().all(has_name)
    {
        return Err("must be NAME=KIND:URL".into());
    }
    let sinks = each::<SinkName, Sink>(given, word, section)?;
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

/// The sinks without their addresses, which may be secrets.
pub(super) fn show(sinks: &[SinkSettings]) -> Value {
    words(sinks.iter().map(|sink| format!("{}={}:***", sink.name, sink.kind.as_str())))
}

fn word(text: &str) -> Result<Sink, Expected> {
    let kinds = SinkKind::ALL.map(SinkKind::as_str).join(", ");
    let parts = text.split_once(':').and_then(|(kind, url)| Some((SinkKind::from_name(kind)?, url)));
    let (kind, url) = parts.ok_or_else(|| format!("must be KIND:URL, with one of the kinds {kinds}"))?;
    let target = Target { url: url_of(url)?, authorization: None };
    Ok(Sink { kind, target, signals: Vec::new(), least_severity: Severity::Info })
}

fn section(fields: &[(String, Given)]) -> Result<Sink, Expected> {
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
    // `Uri` takes any digits as a port.
    let has_usable_port = |authority: &Authority| {
        authority.as_str() == authority.host() || authority.port_u16().is_some_and(|port| port > 0)
    };
    match url.authority() {
        Some(authority) if authority.as_str().contains('@') => {
            Err("must not contain a user and password; set authorization, such as \"Bearer …\", instead".into())
        }
        Some(authority) if is_http && has_usable_port(authority) => Ok(text.to_owned()),
        _ => Err("must be an absolute URL: https://HOST/PATH".into()),
    }
}

fn header(text: &str) -> Result<String, Expected> {
    match hyper::header::HeaderValue::from_str(text) {
        Ok(_) if !text.trim().is_empty() => Ok(text.to_owned()),
        _ => Err("must be the value of a header, such as \"Bearer …\"".into()),
    }
}

//! A notification as each kind of sink wants it.

use std::collections::BTreeSet;
use std::time::Duration;

use redrive_core::alerts::{Alert, Notification, Signal, Subject};
use redrive_core::{Date, Timestamp};
use serde::Serialize;
use serde_json::{Value, json};

use super::settings::SinkKind;

/// The most alerts that one document lists. A text or a webhook counts all.
const MOST_LISTED: usize = 100;

/// How long Alertmanager shows an alert as firing that it hears nothing more of.
const FIRES_FOR_REPEATS: u32 = 3;

/// How long Alertmanager shows a test.
const TEST_FIRES_FOR: Duration = Duration::from_secs(10 * 60);

/// The most characters of a text: what is compatible with Slack takes 2,000.
const MOST_CHARACTERS: usize = 1_900;

/// The documents that a sink of this kind is sent for a notification: one, or as many as it takes for an Alertmanager, which
/// knows only alerts that it is told of.
pub(super) fn documents(kind: SinkKind, notification: &Notification, context: &Context<'_>) -> Vec<String> {
    match kind {
        SinkKind::Alertmanager => alertmanager(notification, context),
        SinkKind::Webhook => vec![webhook(notification, context)],
        SinkKind::Slack => vec![json!({ "text": slack(notification, context) }).to_string()],
    }
}

/// Who sends a notification, and when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) node: &'a str,
    pub(super) now: Timestamp,
    /// How long an Alertmanager shows what fires if it hears nothing more of it.
    pub(super) fires_for: Duration,
    /// Whether it only tests the sink.
    pub(super) is_test: bool,
}

impl<'a> Context<'a> {
    /// That of a notification which is told again after `repeat`.
    pub(super) fn new(node: &'a str, now: Timestamp, repeat: Duration) -> Self {
        Context { node, now, fires_for: repeat * FIRES_FOR_REPEATS, is_test: false }
    }

    /// That of a test: longer than an Alertmanager waits before it tells people.
    pub(super) fn test(node: &'a str, now: Timestamp) -> Self {
        Context { node, now, fires_for: TEST_FIRES_FOR, is_test: true }
    }

    fn rule(&self, signal: Signal) -> &'static str {
        if self.is_test { "test" } else { signal.as_str() }
    }
}

/// The alerts that are listed: those that fire first.
fn listed(notification: &Notification) -> impl Iterator<Item = &Alert> {
    notification.firing.iter().chain(&notification.resolved).take(MOST_LISTED)
}

fn omitted(notification: &Notification) -> usize {
    (notification.firing.len() + notification.resolved.len()).saturating_sub(MOST_LISTED)
}

/// The tenant and the dependency; none if the alert is about the service.
fn names(alert: &Alert) -> (Option<&str>, Option<&str>) {
    match &alert.subject {
        Subject::Lane(lane) => (Some(lane.tenant.as_str()), Some(lane.dependency.as_str())),
        Subject::Service => (None, None),
    }
}

/// `POST /api/v2/alerts`: a list of alerts, each with its labels. Alerts with the same labels are one alert there, so one that
/// ended and fires again only fires.
fn alertmanager(notification: &Notification, context: &Context<'_>) -> Vec<String> {
    let firing: BTreeSet<&Subject> = notification.firing.iter().map(|alert| &alert.subject).collect();
    let alert = |alert: &Alert| {
        let (tenant, dependency) = names(alert);
        let mut labels = json!({
            "alertname": if context.is_test { "RedriveTest".to_owned() } else { alert.signal.alert_name() },
            "severity": alert.severity.as_str(),
        });
        // What all nodes see is the same alert, whichever of them tells it.
        let node = (!alert.signal.is_shared()).then_some(context.node);
        for (name, value) in [("node", node), ("service", tenant), ("dependency", dependency)] {
            if let Some(value) = value {
                labels[name] = value.into();
            }
        }
        let ends_at = alert.resolved_at.unwrap_or_else(|| context.now.after(context.fires_for));
        json!({
            "labels": labels,
            "annotations": { "summary": summary(alert), "description": alert.why },
            "startsAt": rfc3339(alert.fired_at),
            "endsAt": rfc3339(ends_at),
        })
    };
    let resolved = notification.resolved.iter().filter(|alert| !firing.contains(&alert.subject));
    let alerts: Vec<&Alert> = notification.firing.iter().chain(resolved).collect();
    alerts
        .chunks(MOST_LISTED)
        .map(|alerts| alerts.iter().map(|one| alert(one)).collect::<Value>().to_string())
        .collect()
}

/// A moment as Alertmanager wants it, in UTC.
fn rfc3339(at: Timestamp) -> String {
    let millis = at.as_millis() % 86_400_000;
    let (hours, minutes, seconds) = (millis / 3_600_000, millis / 60_000 % 60, millis / 1_000 % 60);
    format!("{}T{hours:02}:{minutes:02}:{seconds:02}.{:03}Z", Date::of(at), millis % 1_000)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WebhookDocument<'a> {
    version: u32,
    status: &'static str,
    rule: &'static str,
    severity: &'static str,
    node: &'a str,
    at: u64,
    firing: usize,
    resolved: usize,
    alerts: Vec<WebhookAlert<'a>>,
    omitted: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WebhookAlert<'a> {
    status: &'static str,
    tenant: Option<&'a str>,
    dependency: Option<&'a str>,
    value: f64,
    why: &'a str,
    fired_at: u64,
    resolved_at: Option<u64>,
}

fn webhook(notification: &Notification, context: &Context<'_>) -> String {
    let alert = |alert| {
        let (tenant, dependency) = names(alert);
        let Alert { value, why, fired_at, resolved_at, .. } = alert;
        WebhookAlert {
            status: status(resolved_at.is_none()),
            tenant,
            dependency,
            value: *value,
            why,
            fired_at: fired_at.as_millis(),
            resolved_at: resolved_at.map(Timestamp::as_millis),
        }
    };
    let document = WebhookDocument {
        version: 1,
        status: status(!notification.firing.is_empty()),
        rule: context.rule(notification.signal),
        severity: listed(notification).map(|alert| alert.severity).max().map_or("info", |severity| severity.as_str()),
        node: context.node,
        at: context.now.as_millis(),
        firing: notification.firing.len(),
        resolved: notification.resolved.len(),
        alerts: listed(notification).map(alert).collect(),
        omitted: omitted(notification),
    };
    // A document of numbers and texts can always be written.
    serde_json::to_string(&document).unwrap_or_default()
}

/// Lines of text, as many as there is room for. Slack wants three characters escaped.
fn slack(notification: &Notification, context: &Context<'_>) -> String {
    let line = |alert: &Alert| {
        let mark = if alert.resolved_at.is_some() { "resolved" } else { alert.severity.as_str() };
        format!("\n• [{mark}] {}", escaped(&summary(alert)))
    };
    let head = format!(
        "*{}* on {}: {} firing, {} resolved",
        context.rule(notification.signal),
        escaped(context.node),
        notification.firing.len(),
        notification.resolved.len()
    );
    let mut text = head;
    let mut omitted = notification.firing.len() + notification.resolved.len();
    for line in listed(notification).map(line) {
        if text.chars().count() + line.chars().count() > MOST_CHARACTERS {
            break;
        }
        text += &line;
        omitted -= 1;
    }
    if omitted > 0 {
        text += &format!("\n… and {omitted} more");
    }
    text
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn summary(alert: &Alert) -> String {
    match names(alert).1 {
        Some(dependency) => format!("{dependency}: {}", alert.why),
        None => alert.why.clone(),
    }
}

fn status(is_firing: bool) -> &'static str {
    if is_firing { "firing" } else { "resolved" }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use redrive_core::alerts::{Severity, Signal};
    use redrive_core::{Dependency, Lane, TenantId};

    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000 + seconds * 1_000)
    }

    fn context() -> Context<'static> {
        Context::new("one", Timestamp::from_millis(1_700_000_100_000), Duration::from_secs(3_600))
    }

    fn alert(dependency: &str, resolved: Option<u64>) -> Alert {
        let dependency = Dependency::try_new(dependency).unwrap();
        let lane = Lane { tenant: TenantId::default_tenant(), dependency };
        Alert {
            signal: Signal::DeadLetter,
            subject: Subject::Lane(lane),
            severity: Severity::Warning,
            value: 2.0,
            why: "2 became dead letters".into(),
            fired_at: at(1),
            resolved_at: resolved.map(at),
        }
    }

    fn notification() -> Notification {
        let resolved = vec![alert("b", Some(50))];
        Notification { signal: Signal::DeadLetter, firing: vec![alert("<a>", None)], resolved }
    }

    /// The only document.
    fn written(kind: SinkKind, notification: &Notification) -> Value {
        let [document] = &documents(kind, notification, &context())[..] else { panic!("one document is expected") };
        serde_json::from_str(document).unwrap()
    }

    #[test]
    fn alertmanager_gets_alerts_with_labels_and_ends() {
        let labels = |dependency| {
            json!({ "alertname": "RedriveDeadLetter", "severity": "warning", "node": "one", "service": "default",
                "dependency": dependency })
        };
        let expected = json!([
            {
                "labels": labels("<a>"),
                "annotations": { "summary": "<a>: 2 became dead letters", "description": "2 became dead letters" },
                "startsAt": "2023-11-14T22:13:21.000Z",
                "endsAt": "2023-11-15T01:15:00.000Z",
            },
            {
                "labels": labels("b"),
                "annotations": { "summary": "b: 2 became dead letters", "description": "2 became dead letters" },
                "startsAt": "2023-11-14T22:13:21.000Z",
                "endsAt": "2023-11-14T22:14:10.000Z",
            },
        ]);
        assert_eq!(written(SinkKind::Alertmanager, &notification()), expected);
        let service = Alert { subject: Subject::Service, ..alert("a", None) };
        let told = Notification { signal: Signal::DeadLetter, firing: vec![service], resolved: vec![] };
        let labels = &written(SinkKind::Alertmanager, &told)[0]["labels"];
        assert_eq!(*labels, json!({ "alertname": "RedriveDeadLetter", "severity": "warning", "node": "one" }));
    }

    #[test]
    fn alertmanager_is_told_of_every_alert() {
        let firing = (0..250).map(|number| alert(&format!("d{number}"), None)).collect();
        let resolved = (250..280).map(|number| alert(&format!("d{number}"), Some(50))).collect();
        let told = Notification { signal: Signal::DeadLetter, firing, resolved };
        let documents = documents(SinkKind::Alertmanager, &told, &context());
        let alerts: Vec<Vec<Value>> = documents.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        assert_eq!(alerts.iter().map(Vec::len).collect::<Vec<_>>(), [100, 100, 80]);
        let named: BTreeSet<String> =
            alerts.iter().flatten().map(|alert| alert["labels"]["dependency"].to_string()).collect();
        assert_eq!(named.len(), 280);
    }

    #[test]
    fn an_alert_that_ended_and_fires_again_only_fires_in_alertmanager() {
        let told = Notification {
            signal: Signal::DeadLetter,
            firing: vec![alert("a", None)],
            resolved: vec![alert("a", Some(50)), alert("b", Some(50))],
        };
        let told = written(SinkKind::Alertmanager, &told);
        let ends: Vec<_> = told.as_array().unwrap().iter().map(|alert| alert["endsAt"].as_str().unwrap()).collect();
        assert_eq!(ends, ["2023-11-15T01:15:00.000Z", "2023-11-14T22:14:10.000Z"]);
    }

    #[test]
    fn a_test_is_called_one() {
        let context = Context::test("one", at(100));
        let text = |kind| documents(kind, &notification(), &context).concat();
        assert!(text(SinkKind::Slack).contains("*test* on one"));
        assert!(text(SinkKind::Webhook).contains(r#""rule":"test""#));
        let told: Value = serde_json::from_str(&text(SinkKind::Alertmanager)).unwrap();
        assert_eq!(
            (&told[0]["labels"]["alertname"], &told[0]["endsAt"]),
            (&"RedriveTest".into(), &"2023-11-14T22:25:00.000Z".into())
        );
    }

    #[test]
    fn a_text_has_room_for_its_lines_or_says_how_many_are_left_out() {
        let firing: Vec<Alert> = (0..500).map(|number| alert(&format!("d{number}"), None)).collect();
        let many = written(SinkKind::Slack, &Notification { firing, ..notification() });
        let text = many["text"].as_str().unwrap();
        assert!(text.chars().count() < 2_000, "{}", text.chars().count());
        let lines = text.lines().filter(|line| line.starts_with('•')).count();
        assert!(lines > 30 && text.ends_with(&format!("… and {} more", 501 - lines)), "{text}");
    }

    #[test]
    fn a_webhook_gets_counts_and_a_bounded_list() {
        let told = written(SinkKind::Webhook, &notification());
        assert_eq!(
            told,
            json!({
                "version": 1, "status": "firing", "rule": "dead-letter", "severity": "warning", "node": "one",
                "at": 1_700_000_100_000_u64, "firing": 1, "resolved": 1, "omitted": 0,
                "alerts": [
                    { "status": "firing", "tenant": "default", "dependency": "<a>", "value": 2.0,
                        "why": "2 became dead letters", "firedAt": 1_700_000_001_000_u64, "resolvedAt": null },
                    { "status": "resolved", "tenant": "default", "dependency": "b", "value": 2.0,
                        "why": "2 became dead letters", "firedAt": 1_700_000_001_000_u64,
                        "resolvedAt": 1_700_000_050_000_u64 },
                ],
            })
        );
        let firing = (0..500).map(|number| alert(&format!("d{number}"), None)).collect();
        let many = written(SinkKind::Webhook, &Notification { firing, ..notification() });
        assert_eq!((&many["firing"], &many["omitted"]), (&json!(500), &json!(401)));
        assert_eq!(many["alerts"].as_array().unwrap().len(), MOST_LISTED);
    }

    #[test]
    fn slack_gets_escaped_lines() {
        assert_eq!(
            written(SinkKind::Slack, &notification())["text"],
            "*dead-letter* on one: 1 firing, 1 resolved\n• [warning] &lt;a&gt;: 2 became dead letters\n\
             • [resolved] b: 2 became dead letters"
        );
    }
}

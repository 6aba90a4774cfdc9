//! Traces, as a receiver of OTLP and a dependency see them.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Instant;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use serde_json::json;

use super::metrics::scrape;
use super::world::{Arrival, PATIENCE, Program, Reply, Service, Target, post, redrive};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

/// What a receiver of OTLP was sent so far.
struct Receiver {
    target: Target,
    spans: Vec<Span>,
}

impl Receiver {
    fn start() -> Self {
        Receiver { target: Target::replying(|_| Reply { status: 200, body: String::new() }), spans: Vec::new() }
    }

    /// Receives until `is_enough`.
    fn until(&mut self, is_enough: impl Fn(&[Span]) -> bool) -> &[Span] {
        while !is_enough(&self.spans) {
            let arrival = self.target.arrival();
            assert_eq!(arrival.path, "/v1/traces");
            self.spans.extend(spans(&arrival));
        }
        &self.spans
    }
}

fn spans(arrival: &Arrival) -> Vec<Span> {
    let export = ExportTraceServiceRequest::decode(&*arrival.body).unwrap();
    export.resource_spans.into_iter().flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
}

fn attribute(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    Some(match found.value.clone()?.value? {
        Value::StringValue(text) => text,
        Value::IntValue(number) => number.to_string(),
        other => panic!("{other:?}"),
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn is_run(span: &Span) -> bool {
    span.name == "redrive task"
}

#[test]
fn a_task_that_fails_twice_and_survives_a_kill_is_one_trace_that_equals_the_targets_ledger() {
    let mut receiver = Receiver::start();
    // The third attempt is under way when the process is killed: it is answered only when the test ends.
    let (never, released) = channel::<()>();
    let (released, sends) = (Mutex::new(released), AtomicUsize::new(0));
    let target = Target::replying(move |_| {
        let status = match sends.fetch_add(1, Ordering::SeqCst) {
            0 | 1 => 503,
            2 => released.lock().unwrap().recv().map_or(500, |()| 500),
            _ => 200,
        };
        Reply { status, body: String::new() }
    });
    let directory = tempfile::tempdir().unwrap();
    let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", &*receiver.target.url.clone()), ("OTEL_BSP_SCHEDULE_DELAY", "20")];
    let service = Service::start_with_variables(directory.path(), &[], &variables);
    let task = json!({
        "targetUrl": target.url,
        "dependency": "billing",
        "correlationId": "checkout-7",
        "headers": { "traceparent": format!("00-{TRACE}-{CALLER}-01"), "tracestate": "a=1", "baggage": "b=2" },
        "policy": { "maxAttempts": 5, "initialDelayMs": 1 },
    });
    let (code, answer) = post(service.authority(), "/retry-tasks", &task.to_string());
    assert_eq!(code, 201, "{answer}");
    let id = answer["taskId"].as_str().unwrap();
    let mut ledger: Vec<Arrival> = (0..3).map(|_| target.arrival()).collect();
    receiver.until(|spans| spans.len() == 2);
    service.program.kill();
    drop(never);

    let service = Service::start_with_variables(directory.path(), &[], &variables);
    let spans = receiver.until(|spans| spans.iter().any(is_run)).to_vec();
    ledger.push(target.arrival());
    let attempts: Vec<_> = service.run(&["tasks", "attempts", id, "--json"]).with(0).json()["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|attempt| (attempt["responseStatus"].as_u64(), attempt["outcome"].as_str().unwrap().to_owned()))
        .collect();
    service.stop().with(0);

    assert!(spans.iter().all(|span| hex(&span.trace_id) == TRACE), "{spans:#?}");
    let (runs, sent): (Vec<&Span>, Vec<&Span>) = spans.iter().partition(|span| is_run(span));
    let [run] = runs[..] else { panic!("one run: {runs:#?}") };
    assert_eq!(hex(&run.parent_span_id), CALLER);
    assert_eq!(attribute(&run.attributes, "redrive.task.id").as_deref(), Some(id));
    assert_eq!(attribute(&run.attributes, "redrive.correlation_id").as_deref(), Some("checkout-7"));
    assert_eq!(attribute(&run.attributes, "redrive.attempts").as_deref(), Some("4"));
    assert_eq!(attribute(&run.attributes, "redrive.status").as_deref(), Some("SUCCEEDED"));
    // By the number of the attempt: what was exported, and what the target saw.
    let exported: BTreeMap<String, String> = sent
        .iter()
        .map(|span| {
            assert_eq!(span.parent_span_id, run.span_id);
            (attribute(&span.attributes, "redrive.attempt").unwrap(), hex(&span.span_id))
        })
        .collect();
    let seen: BTreeMap<String, String> = ledger
        .iter()
        .map(|arrival| {
            assert_eq!(arrival.headers["traceparent"].len(), 1);
            assert_eq!((arrival.header("tracestate"), arrival.header("baggage")), (Some("a=1"), Some("b=2")));
            let parent = arrival.header("traceparent").unwrap();
            let fields: Vec<&str> = parent.split('-').collect();
            let [version, trace, span, flags] = fields[..] else { panic!("{parent}") };
            assert_eq!((version, trace, flags), ("00", TRACE, "01"));
            (arrival.header("redrive-attempt").unwrap().to_owned(), span.to_owned())
        })
        .collect();
    assert_eq!((exported.len(), sent.len(), ledger.len()), (4, 4, 4));
    assert_eq!(exported, seen);
    // The same outcomes as in the attempt log.
    let outcomes: Vec<_> = sent
        .iter()
        .map(|span| {
            let status = attribute(&span.attributes, "http.response.status_code").map(|code| code.parse().unwrap());
            (status, attribute(&span.attributes, "redrive.outcome").unwrap())
        })
        .collect();
    assert_eq!(outcomes, attempts);
    let errors: Vec<_> = sent.iter().map(|span| attribute(&span.attributes, "error.type")).collect();
    assert_eq!(errors, [Some("503".into()), Some("503".into()), Some("interrupted".into()), None]);
}

/// The value of a series of `redrive_spans_total`.
fn count(service: &Service, result: &str) -> u64 {
    let metrics = scrape(service, "text/plain");
    let series = format!("redrive_spans_total{{result=\"{result}\"}} ");
    let value = metrics.lines().find_map(|line| line.strip_prefix(&series));
    value.unwrap_or_else(|| panic!("no {series}: {metrics}")).parse().unwrap()
}

#[test]
fn a_receiver_that_hangs_delays_no_delivery_and_what_does_not_fit_is_counted() {
    let (receiver, target) = (Target::holding(), Target::answering(&[200]));
    let directory = tempfile::tempdir().unwrap();
    let variables = [
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &*format!("{}/in", receiver.url)),
        ("OTEL_BSP_SCHEDULE_DELAY", "1"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "10"),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "5"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-api-key=s3cret"),
    ];
    let service = Service::start_with_variables(directory.path(), &["--log-level", "trace"], &variables);
    let send = |key: &str| {
        let task = json!({ "targetUrl": target.url, "idempotencyKey": key });
        assert_eq!(post(service.authority(), "/retry-tasks", &task.to_string()).0, 201);
    };
    send("first");
    let held = receiver.arrival();
    assert_eq!((held.path.as_str(), held.header("x-api-key")), ("/in", Some("s3cret")));
    let on_the_wire = u64::try_from(spans(&held).len()).unwrap();
    (0..50).for_each(|n| send(&format!("key-{n}")));
    (0..51).for_each(|_| drop(target.arrival()));
    // Two spans for each task: some are on the wire, ten wait.
    let started = Instant::now();
    let expected = 51 * 2 - on_the_wire - 10;
    while count(&service, "dropped") != expected {
        assert!(started.elapsed() < PATIENCE, "{} are dropped, not {expected}", count(&service, "dropped"));
    }
    assert_eq!(count(&service, "exported"), 0);
    let ended = service.stop().with(0);
    assert!(ended.stderr.contains("the last spans could not be exported in time"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("s3cret"), "{}", ended.stderr);
}

#[test]
fn nothing_is_exported_unless_it_is_configured_and_the_configuration_says_what_is() {
    let directory = tempfile::tempdir().unwrap();
    let config = |words: &[&str], variables: &[(&str, &str)]| {
        let mut command = redrive(directory.path(), &[&["config"], words].concat());
        command.envs(variables.iter().copied());
        Program::start(command).end()
    };
    config(&[], &[]).with(0).says(&["traces", "off"]);
    let on = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20s3cret"),
        ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
        ("OTEL_TRACES_SAMPLER_ARG", "0.5"),
    ];
    let shown = config(&[], &on).with(0);
    shown.says(&["http://127.0.0.1:4318/v1/traces", "OTEL_EXPORTER_OTLP_ENDPOINT"]);
    let document = config(&["--json"], &on).with(0);
    assert!(!document.stdout.contains("s3cret"));
    assert_eq!(
        document.json()["traces"],
        json!({
            "from": { "kind": "environment", "variable": "OTEL_EXPORTER_OTLP_ENDPOINT" },
            "value": {
                "receiver": "http://127.0.0.1:4318/v1/traces",
                "headers": ["authorization"],
                "sampler": "parentbased_traceidratio 0.5",
                "resource": { "service.name": "redrive" },
            },
        })
    );
    let mut serve = redrive(directory.path(), &["serve", "--listen", "127.0.0.1:0"]);
    serve.envs(on).env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    let refused = Program::start(serve).end().with(78);
    refused.says(&["OTEL_EXPORTER_OTLP_PROTOCOL: must be http/protobuf, not \"grpc\""]);
}

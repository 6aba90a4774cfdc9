//! The export against a receiver on loopback, read with the official definitions of OTLP.

#![allow(clippy::unwrap_used, reason = "in a test, what is not there is a failure")]

mod log;
mod receiver;
mod tasks;

use std::sync::Arc;
use std::time::Duration;

use hyper::header::{HeaderMap, HeaderValue};
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use redrive_core::trace::{Sampler, span_of_attempt, span_of_run};
use redrive_core::{ErrorType, Reason, Status};
use redrive_dial::{Dialer, Roots};
use redrive_engine::events::{EndedBy, Event, Sink as _};
use redrive_traces::{Batches, Headers, Receiver, Settings, SpanCounts, Traces};
use tokio::task::JoinHandle;

use log::Log;
use receiver::{Answer, SpanReceiver, attribute};
use tasks::{CREATED, attempt, claimed, ends, retries, task};

/// How long anything may take before a test is given up.
const PATIENCE: Duration = Duration::from_secs(30);
/// A delay that no test lives to see the end of.
const NEVER: Duration = Duration::from_secs(3_600);

fn settings(url: &str, delay: Duration) -> Settings {
    let mut headers = HeaderMap::new();
    headers.insert("x-api-key", HeaderValue::from_static("s3cret"));
    Settings {
        receiver: Receiver::below(url).unwrap(),
        headers: Headers(headers),
        timeout: PATIENCE,
        first_wait: Duration::from_millis(1),
        batches: Batches { delay, most_waiting: 100, most_at_once: 10, timeout: PATIENCE },
        resource: vec![("service.name".to_owned(), "redrive".to_owned())],
    }
}

fn start(settings: Settings, sampler: Sampler) -> (Arc<Traces>, JoinHandle<()>) {
    let options = redrive_dial::Options { roots: Roots::ExtraOnly, ..Default::default() };
    Traces::start(settings, sampler, Dialer::new(&options).unwrap()).unwrap()
}

/// Settles `count` first attempts of different tasks, each with a retry: one span each.
fn settle(traces: &Traces, count: u64) {
    for n in 0..count {
        let claimed = claimed(task(n));
        let settlement = retries(attempt(1, Some(503), Some(ErrorType::HttpStatus)));
        traces.on(&Event::Settled(&claimed, &settlement, Status::Pending));
    }
}

#[tokio::test]
async fn a_task_that_fails_and_is_delivered_is_one_trace() {
    let receiver = SpanReceiver::start([]).await;
    let (traces, exporting) = start(settings(&receiver.url, NEVER), Sampler::DEFAULT);
    let mut claimed = claimed(task(7));
    let failed = retries(attempt(1, Some(503), Some(ErrorType::HttpStatus)));
    traces.on(&Event::Settled(&claimed, &failed, Status::Pending));
    claimed.task.attempt_number = 2;
    let delivered = ends(Some(attempt(2, Some(200), None)), Status::Succeeded, None);
    traces.on(&Event::Settled(&claimed, &delivered, Status::Succeeded));
    // The engine says the end of a task twice: with its settlement, and by itself.
    traces.on(&Event::Ended(&claimed.task, Status::Succeeded, EndedBy::Settlement));
    traces.stop(exporting, PATIENCE).await;
    assert_eq!(traces.counts(), SpanCounts { exported: 3, dropped: 0 });

    let request = receiver.requests().remove(0);
    assert_eq!(request.path, "/v1/traces");
    assert_eq!(request.headers["x-api-key"], "s3cret");
    assert_eq!(request.headers["content-type"], "application/x-protobuf");
    assert_eq!(
        attribute(&request.export.resource_spans[0].resource.as_ref().unwrap().attributes, "service.name"),
        "redrive"
    );
    let [first, second, run] = &receiver.spans()[..] else { panic!("three spans") };
    let id = claimed.task.id;
    for span in [first, second, run] {
        assert_eq!(span.trace_id, id.as_u128().to_be_bytes());
        assert_eq!(attribute(&span.attributes, "redrive.task.id"), id.to_string());
        assert_eq!(attribute(&span.attributes, "redrive.dependency"), "billing");
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano);
        assert!(
            span.end_time_unix_nano <= run.end_time_unix_nano && span.start_time_unix_nano >= run.start_time_unix_nano
        );
    }
    assert_eq!(run.span_id, span_of_run(id, 1).as_u64().to_be_bytes());
    assert_eq!((run.parent_span_id.len(), run.kind()), (0, SpanKind::Consumer));
    assert_eq!(run.start_time_unix_nano, CREATED.as_millis() * 1_000_000);
    assert_eq!(attribute(&run.attributes, "redrive.attempts"), "2");
    assert_eq!(attribute(&run.attributes, "redrive.status"), "SUCCEEDED");
    assert_eq!(run.status, None);
    for (number, span) in [(1, first), (2, second)] {
        assert_eq!(span.span_id, span_of_attempt(id, number).as_u64().to_be_bytes());
        assert_eq!((&span.parent_span_id, span.kind(), span.name.as_str()), (&run.span_id, SpanKind::Client, "POST"));
        assert_eq!(attribute(&span.attributes, "redrive.attempt"), number.to_string());
        assert_eq!(attribute(&span.attributes, "server.address"), "billing.test");
        assert_eq!(attribute(&span.attributes, "server.port"), "8443");
        // Connecting is part of the span: it ends with the answer, and lasts as long as the attempt took.
        assert_eq!(span.end_time_unix_nano - span.start_time_unix_nano, 1_500_000);
    }
    assert_eq!(attribute(&first.attributes, "error.type"), "503");
    assert_eq!(attribute(&first.attributes, "redrive.backoff_ms"), "250");
    assert_eq!(first.status.as_ref().map(|status| status.code), Some(2));
    assert_eq!(
        (attribute(&second.attributes, "http.response.status_code"), second.status.clone()),
        ("200".into(), None)
    );
    assert_eq!(attribute(&second.attributes, "http.request.resend_count"), "1");
    let all = format!("{:?}", receiver.spans());
    assert!(!all.contains("s3cret") && !all.contains("canary"), "{all}");
}

#[tokio::test]
async fn a_replay_is_a_span_below_that_of_the_first_run_and_a_callers_span_is_the_parent_of_both() {
    let receiver = SpanReceiver::start([]).await;
    let (traces, exporting) = start(settings(&receiver.url, NEVER), Sampler::DEFAULT);
    let caller: redrive_core::TraceParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().unwrap();
    let mut claimed = claimed(redrive_core::Task { trace_parent: Some(caller), ..task(1) });
    let exhausted = ends(Some(attempt(1, None, Some(ErrorType::Dns))), Status::Exhausted, Some(Reason::Attempts));
    traces.on(&Event::Settled(&claimed, &exhausted, Status::Exhausted));
    claimed.task.status = Status::Exhausted;
    claimed.task.begin_next_run(CREATED);
    // It waits past its deadline: there is no attempt.
    claimed.task.status = Status::Exhausted;
    claimed.task.reason = Some(Reason::Deadline);
    claimed.task.ended_at = Some(CREATED.after(PATIENCE));
    traces.on(&Event::Ended(&claimed.task, Status::Exhausted, EndedBy::Deadline));
    claimed.task.begin_next_run(CREATED);
    claimed.task.attempt_number = 2;
    let delivered = ends(Some(attempt(2, Some(200), None)), Status::Succeeded, None);
    traces.on(&Event::Settled(&claimed, &delivered, Status::Succeeded));
    traces.stop(exporting, PATIENCE).await;

    let spans = receiver.spans();
    assert!(spans.iter().all(|span| span.trace_id == caller.trace.as_u128().to_be_bytes()));
    let [attempt, first, second, last_attempt, last] = &spans[..] else { panic!("five spans") };
    assert_eq!((&last_attempt.parent_span_id, &last.parent_span_id), (&last.span_id, &first.span_id));
    assert_eq!(attribute(&last.attributes, "redrive.attempts"), "1", "those of its run");
    assert_eq!(first.parent_span_id, caller.span.as_u64().to_be_bytes());
    assert_eq!((first.flags, second.flags), (0x301, 0x101), "sampled; the parent of the first one is remote");
    assert_eq!((&attempt.parent_span_id, &second.parent_span_id), (&first.span_id, &first.span_id));
    assert_eq!(attribute(&attempt.attributes, "error.type"), "dns");
    assert_eq!((attribute(&second.attributes, "redrive.run"), second.name.as_str()), ("2".into(), "redrive replay"));
    let status = second.status.clone().unwrap();
    assert_eq!((status.code, status.message.as_str()), (2, "deadline"));
    assert_eq!(attribute(&second.attributes, "redrive.attempts"), "0");
}

#[tokio::test]
async fn a_run_whose_task_waited_at_its_end_is_exported_once_with_the_reason() {
    let receiver = SpanReceiver::start([]).await;
    let (traces, exporting) = start(settings(&receiver.url, NEVER), Sampler::DEFAULT);
    for (n, by, status, reason) in [
        (1, EndedBy::Cancel, Status::Cancelled, Reason::Cancelled),
        (2, EndedBy::Deadline, Status::Exhausted, Reason::Deadline),
        (3, EndedBy::Budget, Status::Failed, Reason::NotRetryable),
    ] {
        let waited = redrive_core::Task { status, reason: Some(reason), ended_at: Some(CREATED), ..task(n) };
        traces.on(&Event::Ended(&waited, status, by));
    }
    // Cancelled while its attempt was under way: the settlement says it, and the engine's second word is not counted.
    let settled = claimed(task(4));
    traces.on(&Event::Settled(&settled, &retries(attempt(1, Some(503), None)), Status::Cancelled));
    traces.on(&Event::Ended(&settled.task, Status::Cancelled, EndedBy::Settlement));
    traces.stop(exporting, PATIENCE).await;
    let runs: Vec<_> = receiver.spans().into_iter().filter(|span| span.name == "redrive task").collect();
    let reasons: Vec<String> = runs.iter().map(|span| attribute(&span.attributes, "redrive.reason")).collect();
    assert_eq!(reasons, ["cancelled", "deadline", "not-retryable", "cancelled"]);
    assert_eq!(receiver.spans().len(), 5, "the attempt, and four runs");
}

#[tokio::test]
async fn a_task_that_is_not_sampled_has_no_spans() {
    let receiver = SpanReceiver::start([]).await;
    let (traces, exporting) = start(settings(&receiver.url, NEVER), Sampler::OFF);
    settle(&traces, 3);
    traces.on(&Event::Ended(&task(1), Status::Cancelled, EndedBy::Cancel));
    traces.stop(exporting, PATIENCE).await;
    assert_eq!((traces.counts(), receiver.requests().len()), (SpanCounts { exported: 0, dropped: 0 }, 0));
}

#[tokio::test]
async fn a_whole_batch_does_not_wait_and_less_waits_for_the_delay() {
    let receiver = SpanReceiver::start([]).await;
    let (traces, exporting) = start(settings(&receiver.url, NEVER), Sampler::DEFAULT);
    settle(&traces, 25);
    receiver.until(2).await;
    assert_eq!(receiver.spans().len(), 20);
    traces.stop(exporting, PATIENCE).await;
    assert_eq!(receiver.spans().len(), 25, "the rest is sent when it stops");
    assert_eq!(receiver.connections(), 1, "the connection is kept");

    let receiver = SpanReceiver::start([]).await;
    let (traces, exporting) = start(settings(&receiver.url, Duration::from_millis(1)), Sampler::DEFAULT);
    settle(&traces, 3);
    receiver.until(1).await;
    traces.stop(exporting, PATIENCE).await;
    assert_eq!(traces.counts(), SpanCounts { exported: 3, dropped: 0 });
}

#[tokio::test]
async fn a_batch_is_sent_again_while_the_receiver_is_busy_and_not_if_it_is_refused() {
    use Answer::{Partial, RetryAfter, Status};
    // The answers, how often it is sent, and how many of three spans arrive.
    for (answers, sends, exported) in [
        (vec![Status(503), RetryAfter(429, 0), Status(502), Status(504)], 5, 3),
        (vec![Status(503); 5], 5, 0),
        (vec![Answer::Close, Status(200)], 2, 3),
        (vec![Status(400)], 1, 0),
        (vec![Status(404)], 1, 0),
        (vec![Status(302)], 1, 0),
        (vec![Partial(2)], 1, 1),
        (vec![Partial(9)], 1, 0),
        (vec![Partial(-1)], 1, 3),
        // The status says it all.
        (vec![Answer::LongBody(200)], 1, 3),
        (vec![Answer::LongBody(400)], 1, 0),
        (vec![Answer::LongBody(503), Status(200)], 2, 3),
    ] {
        let told = format!("{answers:?}");
        let receiver = SpanReceiver::start(answers).await;
        let (traces, exporting) = start(settings(&receiver.url, NEVER), Sampler::DEFAULT);
        settle(&traces, 3);
        traces.stop(exporting, PATIENCE).await;
        let requests = receiver.requests();
        assert_eq!(requests.len(), sends, "{told}");
        assert!(requests.iter().all(|request| request.export == requests[0].export), "{told}");
        assert_eq!(traces.counts(), SpanCounts { exported, dropped: 3 - exported }, "{told}");
    }
}

#[tokio::test]
async fn a_receiver_that_hangs_holds_up_neither_the_engine_nor_a_stop_and_memory_stays_bounded() {
    let receiver = SpanReceiver::start(vec![Answer::Hang; 100]).await;
    let (traces, exporting) = start(settings(&receiver.url, NEVER), Sampler::DEFAULT);
    settle(&traces, 10);
    receiver.until(1).await;
    // One batch is on the wire, 100 wait, and the rest is dropped at once.
    settle(&traces, 1_000);
    assert_eq!(traces.counts(), SpanCounts { exported: 0, dropped: 900 });
    traces.stop(exporting, Duration::from_millis(10)).await;
    assert_eq!(traces.counts().exported, 0);
}

#[tokio::test]
async fn an_answer_that_never_ends_is_not_waited_for_longer_than_the_timeout_and_nothing_is_sent_twice() {
    let receiver = SpanReceiver::start([Answer::EndlessBody(200), Answer::EndlessBody(400)]).await;
    let settings = Settings { timeout: Duration::from_secs(2), ..settings(&receiver.url, NEVER) };
    let (traces, exporting) = start(settings, Sampler::DEFAULT);
    settle(&traces, 20);
    traces.stop(exporting, PATIENCE).await;
    assert_eq!(receiver.requests().len(), 2);
    assert_eq!(traces.counts(), SpanCounts { exported: 10, dropped: 10 });
}

#[tokio::test]
async fn what_is_dropped_is_reported_while_whole_batches_wait_and_at_the_end() {
    let log = Log::watch();
    let receiver = SpanReceiver::start(vec![Answer::Status(400); 4]).await;
    let mut settings = settings(&receiver.url, NEVER);
    settings.batches = Batches { most_waiting: 40, most_at_once: 10, ..settings.batches };
    let (traces, exporting) = start(settings, Sampler::DEFAULT);
    // Four whole batches wait, and five more spans find no room.
    settle(&traces, 45);
    receiver.until(2).await;
    assert_eq!(log.warnings().len(), 1, "before the last whole batch is sent: {:?}", log.warnings());
    traces.stop(exporting, PATIENCE).await;
    let reason = "the receiver of spans answered 400";
    let reported = |dropped: u64, total: u64| format!("dropped={dropped} reason={reason} total={total}");
    let [first, last] = &log.warnings()[..] else { panic!("{:?}", log.warnings()) };
    assert_eq!(*first, format!("spans were dropped {}", reported(15, 15)));
    assert_eq!(*last, format!("spans were dropped {}", reported(30, 45)));
    assert_eq!(traces.counts(), SpanCounts { exported: 0, dropped: 45 });
}

#[tokio::test]
async fn a_stop_in_the_middle_of_a_batch_counts_it_as_dropped_with_what_waits() {
    let log = Log::watch();
    let receiver = SpanReceiver::start([Answer::Hang]).await;
    let (traces, exporting) = start(settings(&receiver.url, NEVER), Sampler::DEFAULT);
    settle(&traces, 10);
    receiver.until(1).await;
    settle(&traces, 3);
    traces.stop(exporting, Duration::from_millis(10)).await;
    assert_eq!(traces.counts(), SpanCounts { exported: 0, dropped: 13 });
    assert_eq!(log.warnings(), ["the last spans could not be exported in time dropped=13 total=13"]);
}

#[tokio::test]
async fn a_batch_that_is_given_up_for_time_names_the_last_failure() {
    let log = Log::watch();
    let receiver = SpanReceiver::start([Answer::RetryAfter(503, u64::MAX)]).await;
    let mut settings = settings(&receiver.url, NEVER);
    settings.batches.timeout = Duration::from_secs(2);
    let (traces, exporting) = start(settings, Sampler::DEFAULT);
    settle(&traces, 1);
    traces.stop(exporting, PATIENCE).await;
    let [warning] = &log.warnings()[..] else { panic!("{:?}", log.warnings()) };
    assert!(warning.contains("could not be sent within 2s: the receiver of spans answered 503"), "{warning}");
}

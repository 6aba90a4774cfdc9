//! A receiver of OTLP over HTTP that answers as it is told.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::StreamExt as _;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::HeaderMap;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::PATIENCE;

/// What is answered to a request.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// This status, with an empty document.
    Status(u16),
    /// This status, and how many seconds to wait.
    RetryAfter(u16, u64),
    /// 200, and how many spans were rejected.
    Partial(i64),
    /// This status, with a body that is longer than what is read of it.
    LongBody(u16),
    /// This status, with a body that never ends.
    EndlessBody(u16),
    /// The connection is closed instead.
    Close,
    /// Nothing.
    Hang,
}

/// A request as it was received.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) export: ExportTraceServiceRequest,
}

/// The receiver. It answers 200 when it has given the answers that it was told.
pub(crate) struct SpanReceiver {
    pub(crate) url: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    answers: Mutex<VecDeque<Answer>>,
    received: Mutex<Vec<Received>>,
    connections: AtomicUsize,
    has_received: Notify,
}

impl SpanReceiver {
    pub(crate) async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(State { answers: Mutex::new(answers.into_iter().collect()), ..State::default() });
        let shared = state.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                shared.connections.fetch_add(1, Ordering::SeqCst);
                let state = shared.clone();
                let service = service_fn(move |request| answer(state.clone(), request));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        SpanReceiver { url, state }
    }

    pub(crate) fn requests(&self) -> Vec<Received> {
        self.state.received.lock().unwrap().clone()
    }

    /// All spans, in the order in which they were received.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let resources = self.requests().into_iter().flat_map(|request| request.export.resource_spans);
        resources.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
    }

    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// Waits until this many requests have been received.
    pub(crate) async fn until(&self, count: usize) {
        let received = async {
            loop {
                let has_received = self.state.has_received.notified();
                if self.requests().len() >= count {
                    return;
                }
                has_received.await;
            }
        };
        tokio::time::timeout(PATIENCE, received).await.expect("the requests");
    }
}

type Body = BoxBody<Bytes, Infallible>;

async fn answer(state: Arc<State>, request: Request<Incoming>) -> Result<Response<Body>, std::io::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let export = ExportTraceServiceRequest::decode(body).unwrap();
    let received = Received { path: head.uri.path().to_owned(), headers: head.headers, export };
    let answer = state.answers.lock().unwrap().pop_front().unwrap_or(Answer::Status(200));
    state.received.lock().unwrap().push(received);
    state.has_received.notify_waiters();
    let with = |status: u16| Response::builder().status(status);
    let whole = |bytes: Vec<u8>| Full::new(Bytes::from(bytes)).boxed();
    let empty = || whole(Vec::new());
    Ok(match answer {
        Answer::Status(status) => with(status).body(empty()).unwrap(),
        Answer::RetryAfter(status, seconds) => with(status).header("retry-after", seconds).body(empty()).unwrap(),
        Answer::Partial(rejected_spans) => {
            let partial = ExportTracePartialSuccess { rejected_spans, error_message: "no".into() };
            let document = ExportTraceServiceResponse { partial_success: Some(partial) };
            with(200).body(whole(document.encode_to_vec())).unwrap()
        }
        Answer::LongBody(status) => with(status).body(whole(vec![b'x'; 1024 * 1024])).unwrap(),
        Answer::EndlessBody(status) => {
            let begun = futures_util::stream::iter([Ok(Frame::data(Bytes::from_static(b"x")))]);
            let body = StreamBody::new(begun.chain(futures_util::stream::pending()));
            with(status).body(BoxBody::new(body)).unwrap()
        }
        Answer::Close => return Err(std::io::Error::other("closed")),
        Answer::Hang => std::future::pending().await,
    })
}

/// The value of an attribute, as text.
pub(crate) fn attribute(attributes: &[KeyValue], key: &str) -> String {
    let found = attributes.iter().find(|attribute| attribute.key == key).unwrap_or_else(|| panic!("no {key}"));
    match found.value.as_ref().and_then(|value| value.value.clone()).unwrap() {
        Value::StringValue(text) => text,
        Value::IntValue(number) => number.to_string(),
        other => panic!("{other:?}"),
    }
}

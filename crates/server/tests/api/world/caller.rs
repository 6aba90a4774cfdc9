//! A caller: plain HTTP over a socket.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// What to ask.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    method: String,
    path: String,
    pub(crate) headers: Vec<(String, String)>,
    body: Bytes,
}

impl Ask {
    pub(crate) fn new(method: &str, path: &str) -> Self {
        Ask { method: method.into(), path: path.into(), headers: Vec::new(), body: Bytes::new() }
    }

    pub(crate) fn get(path: &str) -> Self {
        Ask::new("GET", path)
    }

    pub(crate) fn post(path: &str, document: &str) -> Self {
        Ask::json("POST", path, document)
    }

    pub(crate) fn json(method: &str, path: &str, document: &str) -> Self {
        let method = method.to_uppercase();
        Ask { body: Bytes::copy_from_slice(document.as_bytes()), ..Ask::new(&method, path) }
            .header("content-type", "application/json")
    }

    pub(crate) fn bytes(method: &str, path: &str, bytes: &[u8]) -> Self {
        Ask { body: Bytes::copy_from_slice(bytes), ..Ask::new(method, path) }
    }

    /// Without saying how long it is.
    pub(crate) fn chunked(self) -> Self {
        self.header("transfer-encoding", "chunked")
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(given, _)| given != name || given == "prefer");
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(given, _)| given != name);
        self
    }
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// Asserts a problem of this status and type, and returns its document.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, name: &str) -> serde_json::Value {
        let problem = self.json();
        let found = (self.status, problem["type"].as_str().unwrap_or_default());
        assert_eq!(found, (status, format!("/problems/{name}").as_str()), "{problem:#}");
        assert_eq!(problem["status"], status);
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        assert!(problem["title"].is_string() && problem["detail"].is_string(), "{problem:#}");
        problem
    }
}

/// One kept connection.
pub(crate) struct Connection(SendRequest<Full<Bytes>>);

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
        // A connection that the server ends early shows in the request's own error.
        tokio::spawn(async move { connection.await.unwrap_or_default() });
        Connection(sender)
    }

    pub(crate) async fn ask(&mut self, ask: Ask) -> Answer {
        self.try_ask(ask).await.unwrap()
    }

    pub(crate) async fn try_ask(&mut self, ask: Ask) -> Result<Answer, hyper::Error> {
        let (parts, body) = self.begin(ask).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body })
    }

    /// Asks, and returns the answer with its body still to come.
    pub(crate) async fn begin(&mut self, ask: Ask) -> Result<Response<Incoming>, hyper::Error> {
        let mut request = Request::new(Full::new(ask.body));
        *request.method_mut() = Method::from_bytes(ask.method.as_bytes()).unwrap();
        *request.uri_mut() = ask.path.parse().unwrap();
        if !ask.headers.iter().any(|(name, _)| name == "host") {
            request.headers_mut().insert("host", "localhost".parse().unwrap());
        }
        for (name, value) in &ask.headers {
            let name: http::HeaderName = name.parse().unwrap();
            request.headers_mut().append(name, value.parse().unwrap());
        }
        self.0.ready().await?;
        self.0.send_request(request).await
    }
}

//! The request as it goes out.
//!
//! hyper's header map keeps the values of one name together and writes names in lower case: fields of different names
//! may change places (which means nothing in HTTP), those of one name never do.

use http::header::{AUTHORIZATION, CONTENT_LENGTH, HOST, USER_AGENT};
use http::uri::{Authority, PathAndQuery, Uri};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use redrive_engine::transport::{AttemptTrace, Outbound, SendError};

use crate::failure;
use crate::origin::Origin;
use crate::request_body::RequestBody;
use crate::target::Target;

/// A request, ready for hyper. It is built in the form of HTTP/1.1: the path alone, and a `host` field.
///
/// Boxed, because it is handed on often before it is sent, and is as large as all the rest of a send.
pub(crate) type Message = Box<Request<RequestBody>>;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const TASK_ID: HeaderName = HeaderName::from_static("redrive-task-id");
const ATTEMPT: HeaderName = HeaderName::from_static("redrive-attempt");
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACE_STATE: HeaderName = HeaderName::from_static("tracestate");
const OWN_USER_AGENT: HeaderValue = HeaderValue::from_static(concat!("redrive/", env!("CARGO_PKG_VERSION")));

/// The most fields that are added to the given ones.
const ADDED_FIELDS: usize = 8;

/// The request that `outbound` asks for, with `body`, as `target` and its `origin` need it.
pub(crate) fn build(
    outbound: &Outbound,
    body: RequestBody,
    target: &Target<'_>,
    origin: &Origin,
) -> Result<Message, SendError> {
    let given = &*outbound.request;
    let method = method(&given.method)?;
    let mut fields = HeaderMap::with_capacity(given.headers.len() + ADDED_FIELDS);
    fields.insert(HOST, origin.host_field.clone());
    add_given(&mut fields, &given.headers)?;
    fields.insert(IDEMPOTENCY_KEY, value("idempotency-key", outbound.idempotency_key.as_str())?);
    fields.insert(TASK_ID, value("redrive-task-id", &outbound.task.to_string())?);
    fields.insert(ATTEMPT, HeaderValue::from(outbound.attempt));
    if let Some(trace) = outbound.trace {
        put_trace(&mut fields, trace)?;
    }
    if !fields.contains_key(USER_AGENT) {
        fields.insert(USER_AGENT, OWN_USER_AGENT);
    }
    if !fields.contains_key(AUTHORIZATION)
        && let Some(authorization) = target.authorization()
    {
        fields.insert(AUTHORIZATION, authorization?);
    }
    if body.length() > 0 || matches!(method, Method::POST | Method::PUT | Method::PATCH) {
        fields.insert(CONTENT_LENGTH, HeaderValue::from(body.length()));
    }
    let mut message = Box::new(Request::new(body));
    *message.method_mut() = method;
    *message.uri_mut() = Uri::from(target.path.clone());
    *message.headers_mut() = fields;
    Ok(message)
}

/// Puts `message` into the form of HTTP/2: the whole URI, and no `host` field.
pub(crate) fn into_http2(message: &mut Message, origin: &Origin) -> Result<(), SendError> {
    let authority = match message.headers_mut().remove(HOST) {
        Some(host) if host != origin.host_field => Authority::try_from(host.as_bytes())
            .map_err(|_| failure::invalid("the header \"host\" must be a host, or a host and a port"))?,
        _ => origin.authority.clone(),
    };
    let mut parts = http::uri::Parts::default();
    parts.scheme = Some(origin.scheme.clone());
    parts.authority = Some(authority);
    parts.path_and_query = Some(path(message));
    *message.uri_mut() = Uri::from_parts(parts).map_err(|_| failure::invalid("the url cannot be sent over http/2"))?;
    Ok(())
}

/// Puts `message` back into the form that it was built in.
pub(crate) fn back_from_http2(message: &mut Message, origin: &Origin) {
    let host = message.uri().authority().and_then(|authority| HeaderValue::try_from(authority.as_str()).ok());
    message.headers_mut().insert(HOST, host.unwrap_or_else(|| origin.host_field.clone()));
    *message.uri_mut() = Uri::from(path(message));
}

fn path(message: &Message) -> PathAndQuery {
    message.uri().path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"))
}

fn method(name: &str) -> Result<Method, SendError> {
    match Method::from_bytes(name.as_bytes()) {
        Ok(Method::CONNECT) => Err(failure::invalid("the method CONNECT asks for a tunnel, which is not offered")),
        Ok(method) => Ok(method),
        Err(_) => Err(failure::invalid("the method must be a token, such as POST")),
    }
}

fn add_given(fields: &mut HeaderMap, given: &[(String, String)]) -> Result<(), SendError> {
    for (name, content) in given {
        let field = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| failure::invalid(format!("the header name {name:?} cannot be sent")))?;
        if is_ours(&field) {
            continue;
        }
        let content = value(name, content)?;
        if field == HOST {
            fields.insert(HOST, content);
        } else {
            fields.try_append(field, content).map_err(|_| failure::invalid("too many header fields"))?;
        }
    }
    Ok(())
}

/// Replaces what the given fields say about the trace.
fn put_trace(fields: &mut HeaderMap, trace: AttemptTrace) -> Result<(), SendError> {
    if !trace.keeps_state {
        fields.remove(TRACE_STATE);
    }
    let parent = HeaderValue::from_bytes(&trace.parent.to_ascii());
    fields.insert(TRACE_PARENT, parent.map_err(|_| failure::invalid("the traceparent cannot be sent"))?);
    Ok(())
}

/// Whether a field says how this very message is framed and carried, which only the sender knows, or is one that every
/// send sets itself.
fn is_ours(field: &HeaderName) -> bool {
    matches!(
        field.as_str(),
        "connection"
            | "content-length"
            | "expect"
            | "idempotency-key"
            | "keep-alive"
            | "proxy-connection"
            | "redrive-attempt"
            | "redrive-task-id"
            | "te"
            | "trailer"
            | "transfer-encoding"
            | "upgrade"
    )
}

fn value(name: &str, content: &str) -> Result<HeaderValue, SendError> {
    HeaderValue::from_bytes(content.as_bytes())
        .map_err(|_| failure::invalid(format!("the value of the header {name:?} has characters that cannot be sent")))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::time::Duration;

    use bytes::Bytes;
    use redrive_core::{Dependency, ErrorType, IdempotencyKey, Lane, TaskId, TenantId};

    use super::*;

    fn outbound(url: &str, method: &str, headers: &[(&str, &str)], body: &'static [u8]) -> Outbound {
        Outbound {
            lane: Lane { tenant: TenantId::default_tenant(), dependency: Dependency::try_new("d").unwrap() },
            request: Arc::new(redrive_core::Request {
                target_url: url.into(),
                method: method.into(),
                headers: headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
                body: Bytes::from_static(body).into(),
                overrides: None,
                labels: BTreeMap::new(),
            }),
            idempotency_key: IdempotencyKey::try_new("key-1").unwrap(),
            task: TaskId::from_parts(1, 2),
            attempt: 3,
            trace: None,
            connect_timeout: Duration::from_secs(1),
            attempt_timeout: Duration::from_secs(1),
            gate: Arc::new(redrive_engine::transport::AlwaysOpen),
        }
    }

    fn built(outbound: &Outbound) -> Result<(Message, Origin), SendError> {
        let target = Target::parse(&outbound.request.target_url)?;
        let origin = Origin::parse(&target)?;
        let body = RequestBody::whole(outbound.request.body.inline().unwrap().clone());
        Ok((build(outbound, body, &target, &origin)?, origin))
    }

    fn fields(message: &Message) -> Vec<(&str, &str)> {
        message.headers().iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect()
    }

    #[test]
    fn the_given_fields_go_out_in_order_between_host_and_ours() {
        let given = [("X-B", "1"), ("x-a", "2"), ("X-C", ""), ("x-a", "3")];
        let (message, _) = built(&outbound("http://a.test/p?q", "POST", &given, b"body")).unwrap();
        assert_eq!(message.uri(), "/p?q");
        let task = TaskId::from_parts(1, 2).to_string();
        let user_agent = OWN_USER_AGENT;
        let expected = [
            ("host", "a.test"),
            ("x-b", "1"),
            ("x-a", "2"),
            ("x-a", "3"),
            ("x-c", ""),
            ("idempotency-key", "key-1"),
            ("redrive-task-id", &task),
            ("redrive-attempt", "3"),
            ("user-agent", user_agent.to_str().unwrap()),
            ("content-length", "4"),
        ];
        assert_eq!(fields(&message), expected);
    }

    #[test]
    fn what_is_ours_to_say_replaces_what_was_given() {
        let given = [
            ("connection", "close"),
            ("Content-Length", "99"),
            ("transfer-encoding", "chunked"),
            ("keep-alive", "1"),
            ("proxy-connection", "close"),
            ("te", "trailers"),
            ("trailer", "x"),
            ("upgrade", "h2c"),
            ("expect", "100-continue"),
            ("IDEMPOTENCY-KEY", "theirs"),
            ("redrive-task-id", "theirs"),
            ("redrive-attempt", "theirs"),
            ("user-agent", "theirs"),
            ("host", "their.test"),
        ];
        let (message, _) = built(&outbound("http://a.test/", "GET", &given, b"")).unwrap();
        let task = TaskId::from_parts(1, 2).to_string();
        let expected = [
            ("host", "their.test"),
            ("user-agent", "theirs"),
            ("idempotency-key", "key-1"),
            ("redrive-task-id", &task),
            ("redrive-attempt", "3"),
        ];
        assert_eq!(fields(&message), expected);
    }

    #[test]
    fn one_traceparent_is_sent_and_a_state_only_with_the_trace_that_it_belongs_to() {
        let given = [
            ("Traceparent", "theirs"),
            ("traceparent", "theirs too"),
            ("TraceState", "a=1"),
            ("tracestate", "b=2"),
            ("baggage", "c=3"),
        ];
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let sent = |trace: Option<AttemptTrace>| {
            let outbound = Outbound { trace, ..outbound("http://a.test/", "GET", &given, b"") };
            let (message, _) = built(&outbound).unwrap();
            let of = |name: &str| -> Vec<String> {
                message.headers().get_all(name).iter().map(|value| value.to_str().unwrap().to_owned()).collect()
            };
            [of("traceparent"), of("tracestate"), of("baggage")]
        };
        let trace = |keeps_state| Some(AttemptTrace { parent: parent.parse().unwrap(), keeps_state });
        let owned = |values: &[&str]| values.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (state, baggage) = (owned(&["a=1", "b=2"]), owned(&["c=3"]));
        assert_eq!(sent(trace(true)), [owned(&[parent]), state.clone(), baggage.clone()]);
        assert_eq!(sent(trace(false)), [owned(&[parent]), vec![], baggage.clone()]);
        assert_eq!(sent(None), [owned(&["theirs", "theirs too"]), state, baggage]);
    }

    #[test]
    fn a_length_is_sent_where_a_body_is_expected() {
        for (method, body, expected) in [
            ("GET", b"".as_slice(), None),
            ("DELETE", b"", None),
            ("PURGE", b"", None),
            ("POST", b"", Some("0")),
            ("PUT", b"", Some("0")),
            ("PATCH", b"", Some("0")),
            ("GET", b"x", Some("1")),
            ("M-SEARCH", b"xy", Some("2")),
        ] {
            let (message, _) = built(&outbound("http://a.test/", method, &[], body)).unwrap();
            let length = message.headers().get(CONTENT_LENGTH).map(|value| value.to_str().unwrap());
            assert_eq!(length, expected, "{method}");
        }
    }

    #[test]
    fn user_and_password_of_the_url_yield_to_a_given_authorization() {
        let url = "http://user:secret@a.test/";
        let (message, _) = built(&outbound(url, "GET", &[], b"")).unwrap();
        assert_eq!(message.headers()[AUTHORIZATION], "Basic dXNlcjpzZWNyZXQ=");
        let (message, _) = built(&outbound(url, "GET", &[("Authorization", "Bearer t")], b"")).unwrap();
        assert_eq!(message.headers()[AUTHORIZATION], "Bearer t");
    }

    #[test]
    fn what_cannot_be_put_on_the_wire_is_an_invalid_request_and_shows_no_values() {
        for (method, headers) in [
            ("", vec![]),
            ("GE T", vec![]),
            ("CONNECT", vec![]),
            ("GET", vec![("na me", "secret")]),
            ("GET", vec![("", "secret")]),
            ("GET", vec![("name", "secret\r\nx: y")]),
        ] {
            let error = built(&outbound("http://a.test/", method, &headers, b"")).err().unwrap();
            assert_eq!(error.kind, ErrorType::InvalidRequest, "{method:?} {headers:?}");
            assert!(!error.message.contains("secret"), "{}", error.message);
        }
    }

    #[test]
    fn the_form_of_http2_and_back_is_the_same_message() {
        for host in [None, Some(("host", "other.test:1"))] {
            let outbound = outbound("https://a.test:8443/p?q", "POST", host.as_slice(), b"body");
            let (mut message, origin) = built(&outbound).unwrap();
            let before = message.headers().clone();
            into_http2(&mut message, &origin).unwrap();
            let authority = host.map_or("a.test:8443", |(_, host)| host);
            assert_eq!(message.uri().to_string(), format!("https://{authority}/p?q"));
            assert!(!message.headers().contains_key(HOST));
            back_from_http2(&mut message, &origin);
            assert_eq!(message.uri(), "/p?q");
            assert_eq!(message.headers(), &before);
        }
    }
}

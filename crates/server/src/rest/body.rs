//! Reads a request's body: JSON, within its limit, in time.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http_body::Body as _;
use http_body_util::BodyExt as _;

use super::peer::Exchange;
use super::problem::Refusal;
use super::unread::Lent;

/// The most that is set aside for what a caller only announces.
const TRUSTED: usize = 64 * 1024;

/// The whole body, counted as it arrives. Reading stops at the limit, whatever the caller announced.
#[expect(clippy::disallowed_methods, reason = "how long a caller may take to send is told by the machine's clock")]
pub(crate) async fn read_json(
    headers: &HeaderMap,
    body: Lent,
    limit_bytes: usize,
    within: Duration,
    exchange: &Exchange,
) -> Result<Bytes, Refusal> {
    check_type(headers)?;
    // No body may be larger than what its connection may hold.
    let limit_bytes = limit_bytes.min(exchange.charge.most());
    // What is announced too large is not asked for by a `100 Continue`.
    if body.size_hint().lower() > limit_bytes as u64 {
        return Err(Refusal::TooLarge { limit_bytes });
    }
    let collected = {
        let _waiting = exchange.wait_for_caller();
        tokio::time::timeout(within, collect(body, limit_bytes, exchange)).await
    };
    let bytes = collected.unwrap_or(Err(Refusal::TooSlow))?;
    exchange.charge.work()?;
    Ok(bytes)
}

async fn collect(mut body: Lent, limit_bytes: usize, exchange: &Exchange) -> Result<Bytes, Refusal> {
    let mut first = Bytes::new();
    let mut more = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if first.len() + more.len() + data.len() > limit_bytes {
            return Err(Refusal::TooLarge { limit_bytes });
        }
        exchange.charge.grow(data.len())?;
        // A small body comes in one piece and is not copied.
        if first.is_empty() && more.is_empty() {
            first = data;
            continue;
        }
        if more.is_empty() {
            let announced = usize::try_from(body.size_hint().lower()).unwrap_or(0);
            more.reserve(first.len() + data.len() + announced.min(TRUSTED));
            more.extend_from_slice(&std::mem::take(&mut first));
        }
        more.extend_from_slice(&data);
    }
    Ok(if more.is_empty() { first } else { more.freeze() })
}

fn check_type(headers: &HeaderMap) -> Result<(), Refusal> {
    if let Some(encoding) = headers.get(CONTENT_ENCODING)
        && !encoding.as_bytes().eq_ignore_ascii_case(b"identity")
    {
        return Err(Refusal::NotJson(format!("{encoding:?} encoded")));
    }
    match headers.get(CONTENT_TYPE) {
        Some(given) if given.to_str().is_ok_and(is_json) => Ok(()),
        Some(given) => Err(Refusal::NotJson(format!("{given:?}"))),
        // A page of another site can send what has no type without asking the server first.
        None => Err(Refusal::NotJson("of an unknown type; say content-type: application/json".into())),
    }
}

/// `application/json` and `application/…+json`, whatever their parameters.
fn is_json(content_type: &str) -> bool {
    let media = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    media == "application/json" || media.starts_with("application/") && media.ends_with("+json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_many_names() {
        for name in ["application/json", "Application/JSON; charset=utf-8", "application/vnd.api+json"] {
            assert!(is_json(name), "{name}");
        }
        for name in ["text/plain", "application/jsonp", "text/json", "application/x-www-form-urlencoded", ""] {
            assert!(!is_json(name), "{name}");
        }
    }
}

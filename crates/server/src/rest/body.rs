//! Reads a request's body: JSON, within its limit, in time.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http_body::Body as _;
use http_body_util::BodyExt as _;

use super::peer::Exchange;
use super::problem::Refusal;
use super::request_body::RequestBody;

/// The most bytes that are allocated for an announced body before it arrives, and the most bytes of a piece.
const MAX_PREALLOCATED: usize = 64 * 1024;

/// The whole body, counted as it arrives. Reading stops at the limit, also if the caller announced less.
#[expect(clippy::disallowed_methods, reason = "how long a caller may take to send is told by the machine's clock")]
pub(crate) async fn read_json(
    headers: &HeaderMap,
    body: RequestBody,
    limit_bytes: usize,
    within: Duration,
    exchange: &Exchange,
) -> Result<Bytes, Refusal> {
    check_type(headers)?;
    // No body may be larger than what its connection may hold.
    let limit_bytes = limit_bytes.min(exchange.charge.most());
    // A body that is announced as too large gets no `100 Continue`.
    if body.size_hint().lower() > limit_bytes as u64 {
        return Err(Refusal::TooLarge { limit_bytes });
    }
    let buffer = {
        let _waiting = exchange.wait_for_caller();
        tokio::time::timeout(within, gather(body, limit_bytes, exchange)).await
    };
    let buffer = buffer.unwrap_or(Err(Refusal::TooSlow))?;
    // Putting the pieces together is a part of the work that is counted here.
    exchange.charge.work()?;
    Ok(buffer.join())
}

async fn gather(mut body: RequestBody, limit_bytes: usize, exchange: &Exchange) -> Result<BodyBuffer, Refusal> {
    let mut buffer = BodyBuffer::default();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if buffer.length + data.len() > limit_bytes {
            return Err(Refusal::TooLarge { limit_bytes });
        }
        exchange.charge.grow(data.len())?;
        buffer.add(data, usize::try_from(body.size_hint().lower()).unwrap_or(0));
    }
    Ok(buffer)
}

/// The part of a body that has arrived. It is kept in pieces, because one growing buffer would take up to twice its
/// size.
#[derive(Default)]
struct BodyBuffer {
    /// The first piece, not copied.
    first: Bytes,
    /// All pieces, once there is more than one.
    pieces: Vec<BytesMut>,
    length: usize,
}

impl BodyBuffer {
    /// Adds a piece; `announced` is the number of bytes still to come.
    fn add(&mut self, data: Bytes, announced: usize) {
        self.length += data.len();
        // A small body comes in one piece and is not copied.
        if self.pieces.is_empty() && self.first.is_empty() {
            self.first = data;
            return;
        }
        if self.pieces.is_empty() {
            let first = std::mem::take(&mut self.first);
            self.copy(&first, data.len() + announced);
        }
        self.copy(&data, announced);
    }

    fn copy(&mut self, mut data: &[u8], announced: usize) {
        while !data.is_empty() {
            let room = self.pieces.last().map_or(0, |piece| piece.capacity() - piece.len());
            if room == 0 {
                // A caller that announces nothing has pieces that grow with what it has sent.
                let wanted = (data.len() + announced).max(self.length / 4).min(MAX_PREALLOCATED);
                self.pieces.push(BytesMut::with_capacity(wanted));
                continue;
            }
            let (now, later) = data.split_at(room.min(data.len()));
            if let Some(piece) = self.pieces.last_mut() {
                piece.extend_from_slice(now);
            }
            data = later;
        }
    }

    /// The whole body.
    fn join(mut self) -> Bytes {
        if self.pieces.len() <= 1 {
            return self.pieces.pop().map_or(self.first, BytesMut::freeze);
        }
        let mut whole = BytesMut::with_capacity(self.length);
        for piece in self.pieces {
            whole.extend_from_slice(&piece);
        }
        whole.freeze()
    }
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
        None => Err(Refusal::NotJson("of an unknown type; send content-type: application/json".into())),
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
    fn a_body_takes_as_much_memory_as_it_has_bytes_and_comes_out_whole() {
        // bytes in all, bytes that come at once, whether they were announced
        for (length, at_once, is_announced) in [
            (0, 1, true),
            (500, 500, true),
            (60 * 1024, 8_000, true),
            (60 * 1024, 1, false),
            (MAX_PREALLOCATED, 16_384, true),
            (5 * MAX_PREALLOCATED + 7, 8_192, true),
            (40 * MAX_PREALLOCATED + 7, 100_000, true),
            (40 * MAX_PREALLOCATED + 7, 3_000, false),
        ] {
            let sent: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let mut buffer = BodyBuffer::default();
            let mut left = length;
            for data in sent.chunks(at_once) {
                left -= data.len();
                buffer.add(Bytes::copy_from_slice(data), if is_announced { left } else { 0 });
            }
            let room: usize = buffer.pieces.iter().map(BytesMut::capacity).sum();
            assert!(room <= length + length / 4, "{room} for {length}");
            assert_eq!(buffer.length, length);
            assert_eq!(buffer.join(), sent, "{length} bytes, {at_once} at once");
        }
    }

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

//! HTTP/2 frames written by hand, as no library would send them.

use bytes::Bytes;

/// The first bytes of every connection.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// `GET http://localhost/livez`, by HPACK's static table and literals without indexing.
const GET_LIVEZ: &[u8] = b"\x82\x86\x04\x06/livez\x01\x09localhost";
/// A header field `x-a: bbbb…` of 1,000 bytes, as a literal that is not to be indexed.
const FIELD_VALUE_BYTES: usize = 1_000;

/// The kinds of frames that are used here.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Bytes of a body.
    Data = 0,
    /// The beginning of a request.
    Headers = 1,
    /// The sender's settings.
    Settings = 4,
    /// A ping, which must be answered.
    Ping = 6,
    /// A further part of a head.
    Continuation = 9,
}

/// One frame; `stream` is 0 for the connection as a whole.
pub fn frame(kind: Kind, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    let mut frame = Vec::with_capacity(9 + payload.len());
    frame.extend_from_slice(&length[1..]);
    frame.extend_from_slice(&[kind as u8, flags]);
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// The first frames of a client.
pub fn opening() -> Vec<u8> {
    [PREFACE, &frame(Kind::Settings, 0, 0, &[])].concat()
}

/// A head that continues for `frames` further frames of 10 KB and does not end.
pub fn endless_head(frames: usize) -> Bytes {
    let fields = header_field().repeat(10);
    let mut bytes = opening();
    bytes.extend(frame(Kind::Headers, 0, 1, GET_LIVEZ));
    let more = frame(Kind::Continuation, 0, 1, &fields);
    bytes.extend(more.repeat(frames));
    Bytes::from(bytes)
}

/// `count` frames that need an answer each.
pub fn flood(kind: Kind, count: usize) -> Bytes {
    let payload: &[u8] = if matches!(kind, Kind::Ping) { &[7; 8] } else { &[] };
    Bytes::from([opening(), frame(kind, 0, 0, payload).repeat(count)].concat())
}

/// A request whose body is larger than the window that the service grants.
pub fn body_beyond_the_window(frames: usize) -> Bytes {
    let mut bytes = opening();
    // `POST`, and the end of the head.
    let post = [b"\x83", &GET_LIVEZ[1..]].concat();
    bytes.extend(frame(Kind::Headers, 4, 1, &post));
    bytes.extend(frame(Kind::Data, 0, 1, &[b' '; 16_384]).repeat(frames));
    Bytes::from(bytes)
}

fn header_field() -> Vec<u8> {
    let mut field = b"\x10\x03x-a".to_vec();
    // A length of 127 and more continues in groups of seven bits.
    let rest = FIELD_VALUE_BYTES - 127;
    field.extend([127, (rest % 128) as u8 | 128, (rest / 128) as u8]);
    field.resize(field.len() + FIELD_VALUE_BYTES, b'b');
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_its_length_kind_flags_and_stream_in_front() {
        assert_eq!(frame(Kind::Ping, 1, 0, &[7; 8])[..9], [0, 0, 8, 6, 1, 0, 0, 0, 0]);
        assert_eq!(frame(Kind::Continuation, 4, 258, &[0; 300])[..9], [0, 1, 44, 9, 4, 0, 0, 1, 2]);
    }

    #[test]
    fn a_long_value_has_its_length_in_groups_of_seven_bits() {
        // 1,000 = 127 + 105 + 6 · 128
        assert_eq!(header_field()[5..9], [127, 105 | 128, 6, b'b']);
        assert_eq!(header_field().len(), 8 + FIELD_VALUE_BYTES);
    }
}

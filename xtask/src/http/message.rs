//! Parses messages: where one ends, and its head.

use anyhow::{Result, bail};

/// The longest head that is read: bounds the memory that a wrong peer can use.
const HEAD_LIMIT: usize = 64 * 1024;

/// A complete message at the beginning of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame {
    /// The length of the head, its empty line included.
    pub(super) head: usize,
    /// The length of head and body.
    pub(super) total: usize,
}

impl Frame {
    /// The message at the beginning of `buffer`, once all of it is there.
    pub(super) fn find(buffer: &[u8]) -> Result<Option<Frame>> {
        let Some(head) = head_length(buffer) else {
            if buffer.len() > HEAD_LIMIT {
                bail!("a message head of more than {HEAD_LIMIT} bytes");
            }
            return Ok(None);
        };
        let fields = &buffer[..head];
        if header(fields, "transfer-encoding").is_some() {
            bail!("a chunked body, which this minimal HTTP does not read");
        }
        let body = match header(fields, "content-length") {
            Some(text) => std::str::from_utf8(text)?.parse()?,
            None => 0,
        };
        let total = head + body;
        Ok((buffer.len() >= total).then_some(Frame { head, total }))
    }
}

/// A request as a target receives it.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    pub(super) head: &'a [u8],
    /// Its body.
    pub body: &'a [u8],
}

impl<'a> Request<'a> {
    /// The method.
    pub fn method(&self) -> &'a str {
        self.request_line().next().unwrap_or_default()
    }

    /// Path and query, as sent.
    pub fn path(&self) -> &'a str {
        self.request_line().nth(1).unwrap_or_default()
    }

    /// The first value of the header `name`, if it is text.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        header(self.head, name).and_then(|value| std::str::from_utf8(value).ok())
    }

    fn request_line(&self) -> impl Iterator<Item = &'a str> {
        let line = self.head.split(|&byte| byte == b'\r').next().unwrap_or_default();
        std::str::from_utf8(line).unwrap_or_default().split(' ')
    }
}

/// The length of the head at the beginning of `buffer`, its empty line included.
fn head_length(buffer: &[u8]) -> Option<usize> {
    // Only line ends are checked, not every byte.
    let mut from = 0;
    while let Some(at) = buffer[from..].iter().position(|&byte| byte == b'\n') {
        let next = from + at + 1;
        if buffer[next..].starts_with(b"\r\n") {
            return Some(next + 2);
        }
        from = next;
    }
    None
}

/// The first value of the field `name` in a head, without the blanks around it.
fn header<'a>(head: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let name = name.as_bytes();
    head.split(|&byte| byte == b'\n').skip(1).find_map(|line| {
        let (field, rest) = line.split_at_checked(name.len())?;
        let value = rest.strip_prefix(b":")?;
        field.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const POST: &[u8] = b"POST /a?b=1 HTTP/1.1\r\nHost: x\r\ncontent-length: 3\r\nRedrive-Attempt: 2\r\n\r\nabcGET";

    #[test]
    fn a_message_is_found_only_once_all_of_it_is_there() {
        let (head, total) = (POST.len() - 6, POST.len() - 3);
        for length in 0..total {
            assert_eq!(Frame::find(&POST[..length]).unwrap(), None, "after {length} bytes");
        }
        assert_eq!(Frame::find(&POST[..total]).unwrap(), Some(Frame { head, total }));
        assert_eq!(Frame::find(POST).unwrap(), Some(Frame { head, total }), "and what follows is left alone");
    }

    #[test]
    fn a_request_says_method_path_and_headers() {
        let frame = Frame::find(POST).unwrap().unwrap();
        let request = Request { head: &POST[..frame.head], body: &POST[frame.head..frame.total] };
        assert_eq!((request.method(), request.path(), request.body), ("POST", "/a?b=1", &b"abc"[..]));
        assert_eq!(request.header("redrive-attempt"), Some("2"));
        assert_eq!(request.header("redrive"), None, "a prefix of a name is another name");
    }

    #[test]
    fn a_body_of_unknown_length_is_refused() {
        assert!(Frame::find(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").is_err());
    }
}

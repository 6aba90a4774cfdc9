//! One request to a server, as the bytes say it.

use std::io::Write;
use std::net::TcpStream;

use serde_json::Value;

/// The JSON document at `path` of the server at `authority`, if it answers 200 with one.
pub(crate) fn get(authority: &str, path: &str) -> Option<Value> {
    let mut stream = TcpStream::connect(authority).ok()?;
    // In HTTP/1.0 no answer is in chunks.
    write!(stream, "GET {path} HTTP/1.0\r\nhost: localhost\r\n\r\n").ok()?;
    let answer = std::io::read_to_string(&mut stream).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    if head.split(' ').nth(1)? != "200" {
        return None;
    }
    serde_json::from_str(body).ok()
}

/// Posts a JSON document to `path` of the server at `authority`, and says the status and the document that came back.
pub(crate) fn post(authority: &str, path: &str, body: &str) -> (u16, Value) {
    let answer = answer_to_post(authority, path, "application/json", body);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}")))
}

/// Posts a body to `path` of the server at `authority`, and says what came back, head and body.
pub(crate) fn answer_to_post(authority: &str, path: &str, content_type: &str, body: &str) -> String {
    let length = body.len();
    let mut stream = TcpStream::connect(authority).unwrap();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: {content_type}\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    std::io::read_to_string(&mut stream).unwrap()
}

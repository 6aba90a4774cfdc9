//! One call of ChromeDriver: JSON over HTTP/1.1, on a connection of its own.

use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// Sends a request and returns the `value` of its answer. The error of a command that failed is its message; that of one that
/// is not answered within `limit` is `TimedOut`.
pub(super) fn call(port: u16, method: &str, path: &str, body: &Value, limit: Duration) -> io::Result<Value> {
    // A socket's timeout has the name of another error.
    exchange(port, method, path, body, limit).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => io::Error::new(
            io::ErrorKind::TimedOut,
            format!("ChromeDriver took longer than {limit:?} for {method} {path}"),
        ),
        _ => error,
    })
}

fn exchange(port: u16, method: &str, path: &str, body: &Value, limit: Duration) -> io::Result<Value> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(limit))?;
    let body = if body.is_null() { String::new() } else { body.to_string() };
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )?;
    answer(&mut BufReader::new(stream))
}

fn answer(from: &mut impl BufRead) -> io::Result<Value> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    let is_success = line.split(' ').nth(1) == Some("200");
    let mut length = 0;
    loop {
        line.clear();
        if from.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    let mut answer: Value = serde_json::from_slice(&body)?;
    let value = answer["value"].take();
    if is_success {
        Ok(value)
    } else {
        Err(io::Error::other(value["message"].as_str().unwrap_or("no message").to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_command_that_is_not_answered_in_time_is_named_with_the_limit() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = silent.local_addr().unwrap().port();
        let error = call(port, "POST", "/session", &Value::Null, Duration::from_millis(1)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(error.to_string(), "ChromeDriver took longer than 1ms for POST /session");
    }

    #[test]
    fn the_value_of_an_answer_or_the_message_of_an_error_is_returned() {
        let read = |text: &str| answer(&mut text.as_bytes());
        assert_eq!(read("HTTP/1.1 200 OK\r\nContent-Length:11\r\n\r\n{\"value\":7}").unwrap(), 7);
        let body = "{\"value\":{\"message\":\"no such element\"}}";
        let failed = read(&format!("HTTP/1.1 404 Not Found\r\ncontent-length: {}\r\n\r\n{body}", body.len()));
        assert_eq!(failed.unwrap_err().to_string(), "no such element");
        assert_eq!(read("HTTP/1.1 200 OK\r\n").unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}

//! A Redis command and its answer as text: enough to set servers up and to inspect them.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// How long a server may take to answer.
const LIMIT: Duration = Duration::from_secs(10);
/// The deepest nesting of an answer.
const DEEPEST: usize = 8;

/// Sends one command over a connection of its own.
pub(super) fn call(port: u16, words: &[&str]) -> io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(LIMIT))?;
    let mut request = format!("*{}\r\n", words.len());
    for word in words {
        request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    stream.write_all(request.as_bytes())?;
    answer(&mut BufReader::new(stream), DEEPEST)
}

fn answer(from: &mut impl BufRead, depth: usize) -> io::Result<String> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    let line = line.trim_end();
    let Some(kind) = line.chars().next() else { return Err(io::ErrorKind::UnexpectedEof.into()) };
    let rest = &line[1..];
    match kind {
        '+' | ':' => Ok(rest.to_owned()),
        '-' => Err(io::Error::other(rest.to_owned())),
        '$' if rest.starts_with('-') => Ok(String::new()),
        '$' => text(from, number(rest)?),
        '*' if depth > 0 => {
            let parts: io::Result<Vec<String>> = (0..number(rest)?).map(|_| answer(from, depth - 1)).collect();
            Ok(parts?.join("\n"))
        }
        _ => Err(io::Error::other(format!("an answer that is not understood: {line}"))),
    }
}

fn text(from: &mut impl Read, length: usize) -> io::Result<String> {
    let mut bytes = vec![0; length + 2];
    from.read_exact(&mut bytes)?;
    bytes.truncate(length);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn number(text: &str) -> io::Result<usize> {
    text.parse().map_err(|_| io::Error::other(format!("not a number: {text}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_as_text() {
        for (bytes, expected) in [
            ("+OK\r\n", "OK"),
            (":7\r\n", "7"),
            ("$3\r\na\nb\r\n", "a\nb"),
            ("$-1\r\n", ""),
            ("*2\r\n$1\r\nx\r\n*1\r\n:2\r\n", "x\n2"),
        ] {
            assert_eq!(answer(&mut bytes.as_bytes(), DEEPEST).unwrap(), expected);
        }
        assert_eq!(answer(&mut "-ERR no\r\n".as_bytes(), DEEPEST).unwrap_err().to_string(), "ERR no");
    }
}

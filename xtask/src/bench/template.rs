//! The bytes of a submission, rendered once; only the digits that differ are written per request.

use std::net::SocketAddr;
use std::ops::RangeInclusive;

use fastrand::Rng;
use serde_json::json;

use super::deliveries::NUMBER_DIGITS;

/// The placeholder for the task's number in the JSON.
const NUMBER: &str = "0000000000000000";
/// The placeholder for a random key.
const KEY: &str = "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk";
/// The placeholder for the delay; four digits, because a JSON number has no leading zeros.
const DELAY: &str = "9753";
/// The delays that fit the placeholder [`DELAY`].
pub const DELAYS_MS: RangeInclusive<u64> = 1_000..=2_500;

/// The properties of a submission.
#[derive(Debug, Clone)]
pub struct Shape {
    /// The length of the task's body.
    pub body: usize,
    /// Whether each task has a random idempotency key.
    pub keys: bool,
    /// Whether each task is due after a random one of [`DELAYS_MS`].
    pub delays: bool,
    /// How many dependencies the tasks are spread over; 1 uses the target's origin.
    pub lanes: usize,
}

/// A request with placeholders.
#[derive(Debug, Clone)]
pub struct Template {
    bytes: Vec<u8>,
    number_at: usize,
    key_at: Option<usize>,
    delay_at: Option<usize>,
}

impl Template {
    /// A submission of a task for `target`; `lane` selects one of the dependencies.
    pub fn task(target: SocketAddr, shape: &Shape, lane: usize) -> Self {
        let mut task = json!({
            "targetUrl": format!("http://{target}/"),
            "method": "POST",
            "headers": { "content-type": "text/plain" },
            "body": payload(shape.body),
        });
        if shape.keys {
            task["idempotencyKey"] = KEY.into();
        }
        if shape.delays {
            task["delayMs"] = DELAY.parse::<u64>().unwrap_or_default().into();
        }
        if shape.lanes > 1 {
            task["dependency"] = format!("lane-{}", lane % shape.lanes).into();
        }
        Template::new("/retry-tasks", "application/json", task.to_string().as_bytes())
    }

    /// A plain request with the body alone, for the ceiling to forward.
    pub fn plain(shape: &Shape) -> Self {
        Template::new("/", "text/plain", payload(shape.body).as_bytes())
    }

    /// The bytes of the request for task `number`, and its delay in milliseconds if it has one.
    pub fn fill(&mut self, number: u64, random: &mut Rng) -> (&[u8], Option<u64>) {
        let digits = format!("{number:0width$}", width = NUMBER_DIGITS);
        self.put(self.number_at, digits.as_bytes());
        if let Some(at) = self.key_at {
            let key = format!("{:032x}", random.u128(..));
            self.put(at, key.as_bytes());
        }
        let delay = self.delay_at.map(|at| {
            let delay = random.u64(DELAYS_MS);
            self.put(at, delay.to_string().as_bytes());
            delay
        });
        (&self.bytes, delay)
    }

    fn new(path: &str, content_type: &str, body: &[u8]) -> Self {
        let mut bytes = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        let head = bytes.len();
        bytes.extend_from_slice(body);
        let find = |text: &str| body.windows(text.len()).position(|part| part == text.as_bytes()).map(|at| head + at);
        Template { number_at: find(NUMBER).unwrap_or(head), key_at: find(KEY), delay_at: find(DELAY), bytes }
    }

    fn put(&mut self, at: usize, text: &[u8]) {
        self.bytes[at..at + text.len()].copy_from_slice(text);
    }
}

/// A text of `length` bytes that begins with the placeholder for the task's number.
fn payload(length: usize) -> String {
    format!("{NUMBER}{}", "x".repeat(length.saturating_sub(NUMBER_DIGITS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(request: &[u8]) -> serde_json::Value {
        let text = std::str::from_utf8(request).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())));
        serde_json::from_str(body).unwrap()
    }

    #[test]
    fn every_place_is_filled_and_the_length_stays_true() {
        let target = "127.0.0.1:9".parse().unwrap();
        let shape = Shape { body: 512, keys: true, delays: true, lanes: 8 };
        let mut template = Template::task(target, &shape, 11);
        let mut random = Rng::with_seed(1);
        for number in [0, 42, 9_999_999_999] {
            let (request, delay) = template.fill(number, &mut random);
            let task = body(request);
            let text = task["body"].as_str().unwrap();
            assert_eq!((text.len(), text[..NUMBER_DIGITS].parse()), (512, Ok(number)));
            assert_eq!(task["delayMs"].as_u64(), delay);
            assert!(DELAYS_MS.contains(&delay.unwrap()));
            assert_ne!(task["idempotencyKey"], KEY);
            assert_eq!(task["dependency"], "lane-3");
        }
    }

    #[test]
    fn a_plain_request_is_the_body_alone() {
        let shape = Shape { body: 512, keys: false, delays: false, lanes: 1 };
        let mut template = Template::plain(&shape);
        let (request, delay) = template.fill(7, &mut Rng::with_seed(1));
        assert!(request.ends_with(&[b'x'; 512 - NUMBER_DIGITS]));
        assert!(request.windows(20).any(|part| part == b"\r\n\r\n0000000000000007"));
        assert_eq!(delay, None);
    }
}

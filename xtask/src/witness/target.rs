//! The faulty target: reports every arrival, and fails, resets and stalls at random.
//!
//! The fault of an attempt depends only on the seed, the key and the attempt's number. So the same seed gives the same
//! faults, however the processes are scheduled.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;

use super::Arrival;
use crate::clock::now_us;
use crate::fingerprint::hash_of;
use crate::http::{Reply, Request, Respond};

/// The target.
pub struct FaultyTarget<Note> {
    seed: u64,
    note: Note,
    on: AtomicBool,
}

impl<Note: Fn(Arrival)> FaultyTarget<Note> {
    /// A target with faults; `note` is called with every arrival before it is answered.
    pub fn new(seed: u64, note: Note) -> Self {
        FaultyTarget { seed, note, on: AtomicBool::new(true) }
    }

    /// From now on every request is answered 200.
    pub fn heal(&self) {
        self.on.store(false, Ordering::Release);
    }
}

impl<Note: Fn(Arrival) + Send + Sync + 'static> Respond for FaultyTarget<Note> {
    fn respond(&self, request: &Request<'_>) -> Reply {
        let key = request.header("idempotency-key").unwrap_or_default().trim_matches('"');
        let attempt = request.header("redrive-attempt").and_then(|number| number.parse().ok()).unwrap_or(0);
        let (answered, reply) = if self.on.load(Ordering::Acquire) {
            draw(&mut Rng::with_seed(hash_of((self.seed, key, attempt))))
        } else {
            answer(200, "")
        };
        (self.note)(Arrival {
            at: now_us(),
            task: request.header("redrive-task-id").unwrap_or_default().to_owned(),
            attempt,
            key: key.to_owned(),
            target: format!("{} {}", request.method(), request.path()),
            body_hash: hash_of(request.body),
            answered,
        });
        reply
    }
}

/// A reply, and its status if it has one.
fn draw(random: &mut Rng) -> (Option<u16>, Reply) {
    match random.u32(0..100) {
        0..50 => answer(200, ""),
        50..56 => {
            let (status, reply) = answer(200, "");
            let wait = Duration::from_millis(random.u64(5..200));
            (status, if let Reply::Now(bytes) = reply { Reply::After(wait, bytes) } else { reply })
        }
        56..70 => answer(500, ""),
        70..77 => answer(503, ""),
        77..80 => answer(503, "retry-after: 0\r\n"),
        80..83 => answer(503, "retry-after: 1\r\n"),
        83..85 => answer(429, ""),
        85..87 => answer(400, ""),
        87..92 => (None, Reply::Reset),
        92..96 => (None, Reply::Cut(Bytes::from_static(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf of it"))),
        _ => (None, Reply::Never),
    }
}

fn answer(status: u16, headers: &str) -> (Option<u16>, Reply) {
    let text = format!("HTTP/1.1 {status} X\r\ncontent-length: 2\r\n{headers}\r\nok");
    (Some(status), Reply::Now(Bytes::from(text)))
}

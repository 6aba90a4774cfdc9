//! The index in Redis: the pending tasks of each class of each lane by due time.
//!
//! This module does not use the store. It keeps the tasks that are added, returns each task to at most one caller, and
//! reports whether it still has all that were added. Every operation takes many items, sends them together, and answers
//! item by item: in a cluster, some nodes may answer while others do not.
//!
//! Each partition is complete or not (see [`Partition`](crate::Partition)). This is recorded in Redis, in the same key
//! that counts the tasks of the lanes. So a flushed server, an evicted key, a server that came back empty or with the
//! data of a minute ago, a promoted replica: all of them are detected by the next [`take`](Schedule::take). Not
//! detected: tasks that were never added, and tasks that were taken by a process that then died.

mod add;
mod count_due;
mod epoch;
mod heads;
mod lock;
mod remove;
mod take;

use std::collections::BTreeMap;
use std::time::Duration;

use redis::Value;
use redrive_core::{Class, Lane};

pub use add::NotAdded;
pub use epoch::Builder;
pub use remove::Gone;
pub use take::{Take, Taken, Turn};

use crate::address::Address;
use crate::connect::Connector;
use crate::keys::{InvalidPrefix, Keys};
use crate::link::Link;
use crate::options::Options;
use crate::redis_call_error::RedisCallError;

/// The timeout of calls that a caller waits for: after this the store does the work.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_millis(500);
/// The most tasks that one script handles: Redis does nothing else meanwhile.
const TASKS_PER_CALL: usize = 500;
/// The most tasks that are sent at once, so that other calls run in between.
const TASKS_TOGETHER: usize = 5_000;

/// The index in Redis.
pub struct Schedule {
    pub(crate) link: Link,
    pub(crate) keys: Keys,
}

impl Schedule {
    /// The index at this address. Does not connect: see [`connect`](Self::connect).
    pub fn new(address: Address, options: Options) -> Result<Self, InvalidPrefix> {
        let keys = Keys::try_new(&options.prefix)?;
        let connector = Connector { address, root_certificates: options.root_certificates };
        Ok(Schedule { link: Link::new(connector), keys })
    }

    /// Connects, or connects again. Without a connection every operation fails at once.
    pub async fn connect(&self) -> Result<(), RedisCallError> {
        self.link.connect().await
    }
}

/// Groups items by class of a lane.
fn by_queue<T>(items: impl IntoIterator<Item = (Queue, T)>) -> BTreeMap<Queue, Vec<T>> {
    let mut sorted: BTreeMap<Queue, Vec<T>> = BTreeMap::new();
    for (queue, item) in items {
        sorted.entry(queue).or_default().push(item);
    }
    sorted
}

/// A class of a lane.
pub(crate) type Queue = (Lane, Class);

/// Parses a due time from a score.
pub(crate) fn parse_score(value: &Value) -> Option<redrive_core::Timestamp> {
    let Value::BulkString(text) = value else { return None };
    let score: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    Some(redrive_core::Timestamp::from_millis(score as u64))
}

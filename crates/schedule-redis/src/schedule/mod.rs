//! The index in Redis: the pending tasks of each class of each lane by when they are due.
//!
//! This side knows nothing of the store. It keeps what it is told, gives each task away at most once, and says whether it
//! still has all that it was told. Every operation takes many items, sends them together, and answers item by item: in a
//! cluster, some nodes may be there while others are not.
//!
//! Whether the index is complete is known by partition (see [`Partition`](crate::Partition)), and is kept in Redis, in the same key that
//! counts what the lanes hold. So a flushed server, an evicted key, a server that came back empty or with the data of a
//! minute ago, a replica that was promoted: all of them show in the answer to the next [`take`](Schedule::take). What
//! does not show: tasks that nobody told it of, and tasks that it gave away to somebody who died with them.

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
use crate::failure::Failure;
use crate::keys::{InvalidPrefix, Keys};
use crate::link::Link;
use crate::options::Options;

/// How long anything that somebody waits for may take: after this the store does the work.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_millis(500);
/// The most tasks that one script handles: Redis does nothing else meanwhile.
const TASKS_PER_CALL: usize = 500;
/// The most tasks that are sent at once, so that others get their turn between.
const TASKS_TOGETHER: usize = 5_000;

/// The index in Redis.
pub struct Schedule {
    pub(crate) link: Link,
    pub(crate) keys: Keys,
}

impl Schedule {
    /// The index at this address. Connects to nothing yet: see [`connect`](Self::connect).
    pub fn new(address: Address, options: Options) -> Result<Self, InvalidPrefix> {
        let keys = Keys::try_new(&options.prefix)?;
        let connector = Connector { address, root_certificates: options.root_certificates };
        Ok(Schedule { link: Link::new(connector), keys })
    }

    /// Connects, or connects again. Without a connection every operation fails at once.
    pub async fn connect(&self) -> Result<(), Failure> {
        self.link.connect().await
    }
}

/// Sorts items by class of a lane.
fn by_queue<T>(items: impl IntoIterator<Item = (Queue, T)>) -> BTreeMap<Queue, Vec<T>> {
    let mut sorted: BTreeMap<Queue, Vec<T>> = BTreeMap::new();
    for (queue, item) in items {
        sorted.entry(queue).or_default().push(item);
    }
    sorted
}

/// A class of a lane.
pub(crate) type Queue = (Lane, Class);

/// A due time as Redis writes scores.
pub(crate) fn parse_score(value: &Value) -> Option<redrive_core::Timestamp> {
    let Value::BulkString(text) = value else { return None };
    let score: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    Some(redrive_core::Timestamp::from_millis(score as u64))
}

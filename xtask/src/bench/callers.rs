//! The load: many callers, each with one kept connection and one request at a time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fastrand::Rng;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::bound::Bound;
use super::template::Template;
use crate::clock::now_us;
use crate::http::{Answer, Connection};

/// Connected callers, all on the thread that runs them.
pub struct Callers {
    runtime: Runtime,
    callers: Vec<Caller>,
    /// The number of the next task.
    next: Arc<AtomicU64>,
}

struct Caller {
    connection: Connection,
    template: Template,
    random: Rng,
}

/// When the callers submit.
#[derive(Debug, Clone)]
pub enum Pace {
    /// Each caller submits the next task as soon as the one before is acknowledged.
    ClosedLoop,
    /// A closed loop, while fewer than a number of tasks were submitted and have not arrived.
    Bounded(Arc<Bound>),
    /// This many per second in all, at any speed of the service.
    PerSecond(f64),
}

/// One acknowledged task.
#[derive(Debug, Clone, Copy)]
pub struct AcknowledgedTask {
    /// The task's number.
    pub number: u64,
    /// When it was sent, in microseconds since the epoch; if its caller was delayed, when it should have been sent.
    pub sent_us: u64,
    /// How long its acknowledgement took.
    pub took_us: u32,
    /// The due time of its first attempt in the answer, in milliseconds since the epoch; only with delays.
    pub due_ms: Option<u64>,
}

impl Callers {
    /// Connects `count` callers to `addresses` in turn; `template` returns the request of each.
    pub fn connect(addresses: &[SocketAddr], count: usize, template: impl Fn(usize) -> Template) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let callers = runtime.block_on(async {
            let mut callers = Vec::with_capacity(count);
            for (at, address) in (0..count).zip(addresses.iter().cycle()) {
                let connection = Connection::open(*address).await?;
                callers.push(Caller { connection, template: template(at), random: Rng::new() });
            }
            anyhow::Ok(callers)
        })?;
        Ok(Callers { runtime, callers, next: Arc::default() })
    }

    /// How many tasks have been acknowledged in all runs.
    pub fn acknowledged(&self) -> u64 {
        self.next.load(Ordering::Acquire)
    }

    /// Submits for `duration` and returns what was acknowledged; any other answer fails the run.
    pub fn run(&mut self, pace: &Pace, duration: Duration) -> Result<Vec<AcknowledgedTask>> {
        let count = self.callers.len();
        let begin = Instant::now();
        let mut sent = Vec::new();
        let mut running = JoinSet::new();
        let _entered = self.runtime.enter();
        let refilling = match pace {
            Pace::Bounded(bound) => Some(tokio::spawn(Arc::clone(bound).refill())),
            Pace::ClosedLoop | Pace::PerSecond(_) => None,
        };
        for (at, mut caller) in self.callers.drain(..).enumerate() {
            let slots = Slots::new(pace, begin, duration, at, count);
            let next = Arc::clone(&self.next);
            running.spawn(async move {
                let sent = caller.submit(slots, &next).await?;
                anyhow::Ok((caller, sent))
            });
        }
        self.runtime.block_on(async {
            while let Some(ended) = running.join_next().await {
                let (caller, its) = ended.context("a caller panicked")??;
                self.callers.push(caller);
                sent.extend(its);
            }
            anyhow::Ok(())
        })?;
        if let Some(refilling) = refilling {
            refilling.abort();
        }
        Ok(sent)
    }
}

impl Caller {
    async fn submit(&mut self, mut slots: Slots, next: &AtomicU64) -> Result<Vec<AcknowledgedTask>> {
        let mut sent = Vec::new();
        while let Some(late) = slots.wait().await {
            let number = next.fetch_add(1, Ordering::AcqRel);
            let begin = Instant::now();
            let sent_us = now_us() - late.as_micros() as u64;
            let (request, delay) = self.template.fill(number, &mut self.random);
            let answer = self.connection.call(request).await?;
            if answer.status != 201 {
                bail!("a submission was not accepted: {}", answer.describe());
            }
            let due_ms = if delay.is_some() { Some(due_of(&answer)?) } else { None };
            sent.push(AcknowledgedTask {
                number,
                sent_us,
                took_us: (begin.elapsed() + late).as_micros() as u32,
                due_ms,
            });
        }
        Ok(sent)
    }
}

/// The moments at which one caller submits.
struct Slots {
    next: Instant,
    end: Instant,
    /// From one slot to the next; zero for a closed loop.
    every: Duration,
    bound: Option<Arc<Bound>>,
}

impl Slots {
    fn new(pace: &Pace, begin: Instant, duration: Duration, caller: usize, callers: usize) -> Self {
        let end = begin + duration;
        match pace {
            Pace::ClosedLoop => Slots { next: begin, end, every: Duration::ZERO, bound: None },
            Pace::Bounded(bound) => Slots { next: begin, end, every: Duration::ZERO, bound: Some(Arc::clone(bound)) },
            Pace::PerSecond(rate) => {
                // The callers' first slots are spread over one period, so that together they are regular.
                let every = Duration::from_secs_f64(callers as f64 / rate);
                Slots { next: begin + every.mul_f64(caller as f64 / callers as f64), end, every, bound: None }
            }
        }
    }

    /// The next slot as seen at `now`.
    fn take(&mut self, now: Instant) -> Slot {
        if self.every.is_zero() {
            return if now < self.end { Slot::Late(Duration::ZERO) } else { Slot::Over };
        }
        let slot = self.next;
        if slot >= self.end {
            return Slot::Over;
        }
        self.next += self.every;
        if now < slot { Slot::At(slot) } else { Slot::Late(now - slot) }
    }

    /// Waits for the next slot and returns how late it is; `None` when time is up.
    async fn wait(&mut self) -> Option<Duration> {
        if let Some(bound) = &self.bound {
            return bound.enter(self.end).await.then_some(Duration::ZERO);
        }
        match self.take(Instant::now()) {
            Slot::At(slot) => {
                tokio::time::sleep_until(slot.into()).await;
                Some(Duration::ZERO)
            }
            Slot::Late(by) => Some(by),
            Slot::Over => None,
        }
    }
}

#[derive(Debug, PartialEq)]
enum Slot {
    /// The slot is still to come.
    At(Instant),
    /// The slot passed while the caller's own previous request was in progress. The wait of a submission that could not
    /// be sent counts as well.
    Late(Duration),
    /// There are no more slots.
    Over,
}

fn due_of(answer: &Answer<'_>) -> Result<u64> {
    let task: serde_json::Value = serde_json::from_slice(answer.body).context("reading an acknowledgement")?;
    task["nextAttemptAt"].as_u64().with_context(|| format!("a task without a due time: {task}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_callers_slots_together_are_regular() {
        let begin = Instant::now();
        let millis = |n| Duration::from_millis(n);
        // Two callers at 100 per second: one slot every 10 ms together.
        let [mut first, mut second] =
            [0, 1].map(|caller| Slots::new(&Pace::PerSecond(100.0), begin, millis(50), caller, 2));
        assert_eq!(first.take(begin), Slot::Late(Duration::ZERO));
        assert_eq!(second.take(begin), Slot::At(begin + millis(10)));
        assert_eq!(first.take(begin + millis(3)), Slot::At(begin + millis(20)));
        assert_eq!(second.take(begin + millis(37)), Slot::Late(millis(7)), "its slot was at 30 ms");
        assert_eq!(first.take(begin + millis(37)), Slot::At(begin + millis(40)));
        assert_eq!(second.take(begin + millis(37)), Slot::Over, "50 ms is the end");
    }

    #[test]
    fn a_closed_loop_goes_on_until_the_end() {
        let begin = Instant::now();
        let mut slots = Slots::new(&Pace::ClosedLoop, begin, Duration::from_secs(1), 0, 1);
        assert_eq!(slots.take(begin + Duration::from_millis(999)), Slot::Late(Duration::ZERO));
        assert_eq!(slots.take(begin + Duration::from_secs(1)), Slot::Over);
    }
}

//! Common clock: the time that all processes over one store agree on.
//!
//! On a shared store it is the store's own time: this process's elapsed time plus an offset that is measured at the
//! start and with every heartbeat. The machine's clock has no effect, also if it is set while the process runs. On an
//! exclusive store there are no other nodes, and the time is the injected clock's.
//!
//! | file | its job |
//! | --- | --- |
//! | `estimate` | what readings of the store's clock mean: pure |
//! | `clock_reader` | reads the store's clock periodically, and reports problems of the clocks |

pub(crate) mod clock_reader;
mod estimate;

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use redrive_core::Timestamp;
use redrive_store::{Error, SharedStore, Store};

use crate::clock::{Clock, Sleep};
use crate::watch::Watch;
use estimate::{ClockEstimate, Reading, micros, offset};

/// How often the store's clock is read at the start before the process gives up, and the pause in between.
const FIRST_READINGS: usize = 20;
const READ_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// How often the store's clock is read in a row until an answer is quick.
const READINGS: usize = 4;
const QUICK: Duration = Duration::from_millis(1);

/// The time that all processes over one store agree on.
pub struct CommonClock {
    local: Arc<dyn Clock>,
    is_shared: bool,
    max_error: OnceLock<Duration>,
    known: Mutex<ClockEstimate>,
    /// The offset of the time that this process works on, in microseconds; see `estimate`.
    offset: AtomicI64,
    is_certain: Watch<bool>,
}

/// The state of this process's clocks, for reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockState {
    /// Whether the time is certain enough to claim tasks.
    pub is_certain: bool,
    /// By how many milliseconds the machine's clock is ahead of the time that the process works on.
    pub ahead_ms: i64,
    /// By how many milliseconds the store's clock has stepped, while that step is not followed.
    pub stepped_ms: Option<i64>,
}

impl ClockState {
    /// Whether the machine's clock differs by more than 1 s.
    pub fn is_machine_off(&self) -> bool {
        self.ahead_ms.unsigned_abs() > estimate::SMALL.as_millis() as u64
    }
}

impl CommonClock {
    /// The time of this store. Before the store's clock has been read, it is what `local` shows.
    pub fn new(local: Arc<dyn Clock>, store: &dyn Store) -> Arc<Self> {
        let is_shared = store.shared().is_some();
        Arc::new(CommonClock {
            offset: AtomicI64::new(offset(local.now(), local.elapsed())),
            local,
            is_shared,
            max_error: OnceLock::new(),
            known: Mutex::new(ClockEstimate::Nothing),
            is_certain: Watch::new(!is_shared),
        })
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        if !self.is_shared {
            return self.local.now();
        }
        let now = self.offset.load(Ordering::Acquire).saturating_add(micros(self.local.elapsed()));
        Timestamp::from_millis(u64::try_from(now / 1_000).unwrap_or_default())
    }

    /// Time since some fixed point; it never jumps.
    pub fn elapsed(&self) -> Duration {
        self.local.elapsed()
    }

    /// Ends after `wait`.
    pub fn sleep(&self, wait: Duration) -> Sleep {
        self.local.sleep(wait)
    }

    /// The state of the clocks.
    pub fn state(&self) -> ClockState {
        let (ours, machines) = (self.now().as_millis() as i64, self.local.wall().as_millis() as i64);
        let stepped_ms = self.known().step();
        ClockState { is_certain: self.is_certain(), ahead_ms: machines.saturating_sub(ours), stepped_ms }
    }

    /// Whether the time is certain enough to claim tasks.
    pub(crate) fn is_certain(&self) -> bool {
        self.is_certain.get()
    }

    /// Waits until the time is certain enough to claim tasks.
    pub(crate) async fn certain(&self) {
        self.is_certain.until(|is_certain| is_certain).await;
    }

    /// Reads the store's clock until the time is certain enough for leases with this margin.
    pub(crate) async fn begin(&self, store: &dyn Store, lease_margin: Duration) -> Result<(), Error> {
        let Some(shared) = store.shared().filter(|_| self.is_shared) else { return Ok(()) };
        self.max_error.get_or_init(|| estimate::max_error(lease_margin));
        for _ in 0..FIRST_READINGS {
            self.read(shared).await?;
            if self.is_certain() {
                return Ok(());
            }
            self.sleep(READ_AGAIN_AFTER).await;
        }
        let within = 2 * self.max_error();
        Err(Error::Unavailable(format!(
            "its time cannot be determined: it does not answer within {} ms",
            within.as_millis()
        )))
    }

    fn max_error(&self) -> Duration {
        self.max_error.get().copied().unwrap_or_default()
    }

    fn known(&self) -> MutexGuard<'_, ClockEstimate> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the store's clock, again if the answer took long: the estimate is as good as the quickest answer.
    async fn read_well(&self, store: &dyn SharedStore) -> Result<(), Error> {
        for _ in 0..READINGS {
            let asked = self.local.elapsed();
            self.read(store).await?;
            if self.local.elapsed().saturating_sub(asked) <= QUICK {
                break;
            }
        }
        Ok(())
    }

    /// Reads the store's clock once.
    async fn read(&self, store: &dyn SharedStore) -> Result<(), Error> {
        let asked = self.local.elapsed();
        let shown = store.time().await?;
        let answered = self.local.elapsed();
        self.note(Reading::new(shown, asked, answered));
        Ok(())
    }

    fn note(&self, reading: Reading) {
        let wall = offset(self.local.wall(), self.local.elapsed());
        let mut known = self.known();
        *known = known.after(reading, wall, self.max_error());
        if let Some(offset) = known.offset() {
            self.offset.store(offset, Ordering::Release);
        }
        drop(known);
        self.review();
    }

    /// Updates whether the time is certain: an old reading is not.
    fn review(&self) {
        let is_certain = !self.is_shared || self.known().is_certain(self.local.elapsed(), self.max_error());
        if is_certain != self.is_certain.get() {
            self.is_certain.change(|known| *known = is_certain);
        }
    }
}

impl Clock for CommonClock {
    fn now(&self) -> Timestamp {
        CommonClock::now(self)
    }

    fn wall(&self) -> Timestamp {
        self.local.wall()
    }

    fn elapsed(&self) -> Duration {
        CommonClock::elapsed(self)
    }

    fn sleep(&self, wait: Duration) -> Sleep {
        CommonClock::sleep(self, wait)
    }
}

impl fmt::Debug for CommonClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommonClock").field("state", &self.state()).finish_non_exhaustive()
    }
}

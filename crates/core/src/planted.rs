//! Bugs that are planted on purpose, so that the simulator can show that it finds them.
//!
//! Each is a few lines at the place where the mistake would be made, behind [`is`]. Without the feature `planted` that is
//! a constant `false` and nothing of them is left; with it, one bug at a time can be switched on, for one thread.
//!
//! Not here: finding them (`crates/sim`).

macro_rules! bugs {
    ($($(#[doc = $doc:literal])* $bug:ident = $name:literal, $($invariant:literal)|+;)*) => {
        /// A bug that can be planted.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Bug {
            $($(#[doc = $doc])* $bug,)*
        }

        impl Bug {
            /// Every bug.
            pub const ALL: &[Bug] = &[$(Bug::$bug,)*];

            /// Its name on the command line.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Bug::$bug => $name,)*
                }
            }

            /// The invariants of ARCHITECTURE.md that it breaks, by number.
            pub const fn breaks(self) -> &'static [u8] {
                match self {
                    $(Bug::$bug => &[$($invariant),+],)*
                }
            }
        }
    };
}

bugs! {
    /// A submission is acknowledged before the store has committed it.
    AcknowledgeBeforeCommit = "acknowledge-before-commit", 1 | 10;
    /// An attempt is sent before the store has committed its claim.
    SendBeforeClaim = "send-before-claim", 2 | 10;
    /// A claim does not count the attempt.
    ClaimUncounted = "claim-uncounted", 2 | 5;
    /// One attempt more than `maxAttempts` is allowed.
    OneAttemptTooMany = "one-attempt-too-many", 2;
    /// A task gives up one attempt early.
    OneAttemptTooFew = "one-attempt-too-few", 1;
    /// An attempt that a crash cut off is retried even if it was the last.
    RetryAfterTheLastUnknown = "retry-after-the-last-unknown", 2;
    /// A connection that breaks is tried again at once, within the same attempt.
    ResendOnReset = "resend-on-reset", 2;
    /// An attempt that was sent and then given up at a stop is taken back as if it had not been.
    TakeBackWhatWasSent = "take-back-what-was-sent", 2;
    /// A retry carries a new idempotency key.
    NewKeyOnRetry = "new-key-on-retry", 3;
    /// A replay carries a new idempotency key.
    NewKeyOnReplay = "new-key-on-replay", 3;
    /// A retry is sent without its body.
    EmptyBodyOnRetry = "empty-body-on-retry", 3;
    /// A cancel does not reach an attempt that is claimed and not yet on the wire.
    CancelMissesTheClaimed = "cancel-misses-the-claimed", 4;
    /// A cancel does not reach an attempt that is still connecting.
    CancelMissesTheConnected = "cancel-misses-the-connected", 4;
    /// A process over a shared store works on its machine's clock.
    TrustsItsOwnClock = "trusts-its-own-clock", 1 | 2 | 5 | 6 | 7 | 13;
    /// A settlement forgets that the task was taken back while it was in flight.
    CancelForgottenInFlight = "cancel-forgotten-in-flight", 4 | 1;
    /// Bringing a task forward brings ended ones back to life.
    BringForwardRevives = "bring-forward-revives", 1 | 2 | 4 | 6;
    /// A settlement is accepted whatever its token.
    SettleWithoutFence = "settle-without-fence", 5;
    /// An attempt is sent though its lease has run out while its process stood still.
    SendAfterLease = "send-after-lease", 2 | 4 | 5 | 7;
    /// A new claim begins again with the first token.
    TokenStartsAgain = "token-starts-again", 5;
    /// A Retry-After is not waited for.
    IgnoreRetryAfter = "ignore-retry-after", 6;
    /// A Retry-After that ends beyond the deadline is waited for.
    WaitBeyondDeadline = "wait-beyond-deadline", 6 | 13;
    /// The deadline is not looked at before a send.
    SendAfterDeadline = "send-after-deadline", 6;
    /// A claim takes tasks that are not due yet.
    ClaimTooEarly = "claim-too-early", 6;
    /// A task that was claimed before it is due is sent as soon as it is claimed.
    HeldTaskIsSentEarly = "held-task-is-sent-early", 6;
    /// A retry waits for nothing at all.
    NoBackoff = "no-backoff", 6;
    /// Too many requests, and no word of when to come back: the wait is not doubled.
    OverloadNotDoubled = "overload-not-doubled", 6;
    /// A lease lasts for the margin only, not for the attempt as well.
    LeaseTooShort = "lease-too-short", 7;
    /// The lease of a task that is claimed before it is due runs from the claim.
    LeaseFromTheClaim = "lease-from-the-claim", 7;
    /// A claim whose answer came late is sent though little is left of its lease.
    LateClaimIsSent = "late-claim-is-sent", 7;
    /// Leases are taken over before they have run out.
    TakeOverTooEarly = "take-over-too-early", 7;
    /// A task that was cancelled while it waited is claimed all the same.
    CancelledStaysDue = "cancelled-stays-due", 4 | 1;
    /// Attempts go on the wire without waiting for a slot of their lane.
    NoSlots = "no-slots", 8;
    /// Slow lanes may use the whole capacity.
    SlowLanesTakeAll = "slow-lanes-take-all", 8;
    /// Lanes of which nothing is known may use the whole capacity.
    UnknownLanesTakeAll = "unknown-lanes-take-all", 8;
    /// Slow lanes claim ahead, and tasks that wait for a slot count towards the capacity.
    WaitingUsesCapacity = "waiting-uses-capacity", 8 | 13;
    /// A slot that becomes free is offered only to the lane that had it.
    SlotNotOffered = "slot-not-offered", 8 | 13;
    /// Lanes without any slot wait behind a lane that has just given one back.
    StarvedLanesWait = "starved-lanes-wait", 8;
    /// A tenant whose lane was served stays first in line.
    TenantsTakeNoTurns = "tenants-take-no-turns", 8;
    /// A lane that waits is served from the pool where it belonged when it began to, and then counted as another one.
    StalePoolServed = "stale-pool-served", 8;
    /// A last attempt is claimed ahead of its slot.
    LastAttemptClaimedAhead = "last-attempt-claimed-ahead", 8;
    /// A send for which this process has no socket left counts as an attempt.
    ShortageCounts = "shortage-counts", 1 | 2;
    /// A dead letter whose process died before the alert never raises it.
    AlertOnlyOnce = "alert-only-once", 9;
    /// A rescuer that ends a task raises no alert.
    RescuerRaisesNoAlert = "rescuer-raises-no-alert", 9;
    /// The counts forget a task that ended EXHAUSTED.
    ExhaustedUncounted = "exhausted-uncounted", 9;
    /// The list of dead letters leaves out those whose outcome is unknown.
    UnknownNotListed = "unknown-not-listed", 9;
    /// The same key with another request is answered as if it were the same.
    KeyIgnoresRequest = "key-ignores-request", 10;
    /// A key is only looked up among the tasks that have not ended.
    KeyForgottenAtEnd = "key-forgotten-at-end", 10;
    /// The request's body does not count for whether two requests are the same.
    FingerprintIgnoresBody = "fingerprint-ignores-body", 10;
    /// A schedule that was lost is rebuilt without the tasks that are not due yet.
    RebuildWithoutWaiting = "rebuild-without-waiting", 11 | 13;
    /// A retry is kept in the queue of the first attempts.
    RetriesAmongFirst = "retries-among-first", 13;
    /// A retry is written down and not noted in the schedule.
    RetryNotScheduled = "retry-not-scheduled", 13;
    /// A task is found whoever asks for it.
    TaskOfAnyTenant = "task-of-any-tenant", 12;
    /// A key is looked up among the keys of all tenants.
    KeyOfAnyTenant = "key-of-any-tenant", 10 | 12;
    /// Attempts whose lease ran out are not taken over.
    NoRescue = "no-rescue", 13;
    /// An attempt whose lease ran out while its process stood still is left behind, and nobody notices.
    LeftBehindUnnoticed = "left-behind-unnoticed", 13;
    /// A claim that the store refused makes the schedule forget the lane.
    ClaimErrorForgetsLane = "claim-error-forgets-lane", 13;
    /// A claim that the store refused keeps the room that it had taken.
    ClaimErrorKeepsRoom = "claim-error-keeps-room", 13;
    /// A task that waits past its deadline ends only once its lane has room for it.
    OverdueWaitsForRoom = "overdue-waits-for-room", 13;
    /// A task that was claimed once is not ended at its deadline when it waits again.
    DeadlineForgotten = "deadline-forgotten", 13;
    /// A claimed task that waits for a slot is not ended at its deadline.
    ClaimedOutlivesDeadline = "claimed-outlives-deadline", 13;
    /// A stop over a shared store waits for a loop that waits for the stop.
    StopNeverEnds = "stop-never-ends", 13;
    /// Ended tasks are kept for an hour instead of a day.
    RetentionTooShort = "retention-too-short", 1 | 10;
    /// Cleaning removes tasks by when they were accepted, ended or not.
    CleanTheLiving = "clean-the-living", 1 | 10;
    /// A replay does not begin a new run: its attempts count as the old one's, and the limit does not hold.
    ReplayWithoutLimit = "replay-without-limit", 2;
    /// A replay has to make do with the time of the run before.
    ReplayKeepsDeadline = "replay-keeps-deadline", 6;
    /// A name that cannot be resolved is tried as often as anything else.
    NameTriedForEver = "name-tried-for-ever", 2;
    /// A name that cannot be resolved is tried again only if no attempt came before.
    DnsCountsAttempts = "dns-counts-attempts", 1;
    /// The attempt log has when the connection was begun, not when the first byte left.
    StartedAtTheConnection = "started-at-the-connection", 1;
    /// What follows a commit in memory is lost when the caller hangs up.
    CallerHangsUp = "caller-hangs-up", 13;
    /// Only the first page of the leases that ran out is taken over.
    RescueFirstPage = "rescue-first-page", 13;
    /// Only the first page of the lanes is read when the schedule is rebuilt.
    RebuildFirstPage = "rebuild-first-page", 11 | 13;
    /// The answers to a batch come in the wrong order.
    BatchAnswersSwapped = "batch-answers-swapped", 1 | 3 | 10;
}

/// Whether this bug is planted right now.
#[cfg(not(feature = "planted"))]
#[inline(always)]
pub const fn is(_: Bug) -> bool {
    false
}

#[cfg(feature = "planted")]
pub use switch::{Planted, is, plant};

#[cfg(feature = "planted")]
mod switch {
    use std::cell::Cell;

    use super::Bug;

    thread_local! {
        static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    /// Whether this bug is planted right now, on this thread.
    pub fn is(bug: Bug) -> bool {
        PLANTED.get() == Some(bug)
    }

    /// Plants a bug on this thread, for as long as what this returns is kept.
    pub fn plant(bug: Bug) -> Planted {
        Planted { before: PLANTED.replace(Some(bug)) }
    }

    /// A planted bug; dropping it digs it up again.
    #[derive(Debug)]
    pub struct Planted {
        before: Option<Bug>,
    }

    impl Drop for Planted {
        fn drop(&mut self) {
            PLANTED.set(self.before);
        }
    }
}

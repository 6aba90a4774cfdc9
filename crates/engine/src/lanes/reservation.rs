//! Reservation: what a claimed task holds of its lane's capacity, until it is settled.

use std::sync::Arc;
use std::time::Duration;

use redrive_core::Class;
use redrive_core::guards::concurrency::Signal;
use redrive_core::guards::{GoneSign, Held, Outcome, Permit, Presence};
use tokio::sync::oneshot;

use super::{Lanes, Origin};
use crate::admission::pace::AttemptEnd;
use crate::schedule::LaneId;
use crate::slots::{Number, Room};

/// What a claimed task holds of its lane's capacity. Dropping it gives everything back.
pub(crate) struct Reservation {
    lanes: Arc<Lanes>,
    lane: LaneId,
    hold: Hold,
    bytes: usize,
    /// Whether the lane's budget holds a retry for this task.
    has_reserved_retry: bool,
    /// What the lane's guards permitted: an attempt on the wire.
    permit: Option<Permit>,
}

/// What a reservation holds.
#[derive(Debug)]
enum Hold {
    /// Claimed ahead of a slot.
    Ahead,
    /// Waits for a slot, under this number.
    Waiting(Number, oneshot::Receiver<()>),
    /// Holds a slot.
    Slot,
    /// Holds a slot, and the attempt with this number is on the wire.
    Wire(Number),
    /// Holds nothing: the attempt has ended.
    Ended,
}

impl Reservation {
    /// A reservation for one task with this room, which was taken, and a body of this size. `has_reserved_retry`: the
    /// lane's budget holds a retry for it.
    pub(super) fn new(lanes: &Arc<Lanes>, lane: LaneId, room: Room, bytes: usize, has_reserved_retry: bool) -> Self {
        let hold = if room.slots > 0 { Hold::Slot } else { Hold::Ahead };
        Reservation { lanes: lanes.clone(), lane, hold, bytes, has_reserved_retry, permit: None }
    }

    /// Whether the task holds a slot: its attempt may be sent.
    pub(crate) fn has_slot(&mut self) -> bool {
        if let Hold::Waiting(number, _) = self.hold
            && self.lanes.with(|state, _| state.slots.is_granted(self.lane, number))
        {
            self.hold = Hold::Slot;
        }
        matches!(self.hold, Hold::Slot)
    }

    /// Lends the slot to other tasks of the lane until this one wants a slot again, if the lane's slots turn over
    /// quickly: a task that is held until it is due sends nothing.
    pub(crate) fn lend_slot(&mut self) {
        if matches!(self.hold, Hold::Slot) && self.lanes.with(|state, now| state.slots.lend(self.lane, now.elapsed)) {
            self.hold = Hold::Ahead;
        }
    }

    /// Waits for a slot, behind the lane's tasks that began to wait before. Cancel safe: a slot that was granted while
    /// this was dropped still belongs to the reservation.
    pub(crate) async fn slot(&mut self) {
        if matches!(self.hold, Hold::Ahead) {
            self.hold = match self.lanes.with(|state, now| state.slots.want(self.lane, now.elapsed)) {
                Ok(()) => Hold::Slot,
                Err((number, granted)) => Hold::Waiting(number, granted),
            };
        }
        if let Hold::Waiting(_, granted) = &mut self.hold {
            // The sender is dropped only with all lanes, and then nothing waits for a slot any more.
            if granted.await.is_ok() {
                self.hold = Hold::Slot;
            }
        }
    }

    /// Asks the lane's guards for the last time, and notes that the attempt goes on the wire. `origin` says where
    /// it goes.
    pub(crate) fn begin(&mut self, class: Class, origin: impl FnOnce() -> Origin) -> Result<(), Held> {
        if !matches!(self.hold, Hold::Slot) {
            return Ok(());
        }
        let lane = self.lane;
        let has_reserved_retry = std::mem::take(&mut self.has_reserved_retry);
        let (permit, number) = self.lanes.with(|state, now| {
            match (class, has_reserved_retry) {
                (Class::Retry, false) => state.reserve_retries(lane, 1, now),
                (Class::First, true) => state.release_retries(lane, 1),
                _ => {}
            }
            let permit = state.begin_guarded(lane, class, origin, now)?;
            Ok((permit, state.slots.begin(lane, now.elapsed)))
        })?;
        self.hold = Hold::Wire(number);
        self.permit = Some(permit);
        Ok(())
    }

    /// Notes that the attempt has ended: the slot is free while its result is stored. `call` is the latency of the
    /// dependency, if the attempt measured it; `outcome` and `presence` are for the guards. Returns whether the
    /// dependency seems to be gone.
    pub(crate) fn end(
        &mut self,
        end: AttemptEnd,
        call: Option<Duration>,
        outcome: Outcome,
        presence: Option<Presence>,
    ) -> Option<GoneSign> {
        let Hold::Wire(number) = self.hold else {
            self.give_back();
            return None;
        };
        self.hold = Hold::Ended;
        let permit = self.permit.take();
        self.lanes.with(|state, now| {
            if let Some(took) = call {
                state.record_call(self.lane, took, now.elapsed);
            }
            let gone = permit.and_then(|permit| state.end_guarded(self.lane, permit, outcome, presence, now));
            state.slots.end(self.lane, number, end, now.elapsed);
            state.ended();
            gone
        })
    }

    /// Gives back the slot or the wait for one, and the guards' permit: nothing was sent. The task's memory still counts.
    pub(crate) fn give_back(&mut self) {
        let one = |slots, ahead| Room { slots, ahead };
        let lane = self.lane;
        if matches!(self.hold, Hold::Ended) {
            return;
        }
        let permit = self.permit.take();
        let has_reserved_retry = std::mem::take(&mut self.has_reserved_retry);
        self.lanes.with(|state, now| {
            state.ended();
            if let Some(permit) = permit {
                state.withdraw_guarded(lane, permit, now);
            }
            if has_reserved_retry {
                state.release_retries(lane, 1);
            }
            match std::mem::replace(&mut self.hold, Hold::Ended) {
                Hold::Ended => {}
                Hold::Wire(number) => state.slots.abandon(lane, number, now.elapsed),
                Hold::Slot => state.slots.give_back(lane, one(1, 0), now.elapsed),
                Hold::Ahead => state.slots.give_back(lane, one(0, 1), now.elapsed),
                Hold::Waiting(number, _) => {
                    let is_granted = state.slots.stop_waiting(lane, number);
                    let held = if is_granted { one(1, 0) } else { one(0, 1) };
                    state.slots.give_back(lane, held, now.elapsed);
                }
            }
        });
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take() {
            // The attempt broke off: what was sent is not known, so it stays charged.
            let nothing = Outcome { health: None, signal: Signal::Neutral, took: Duration::ZERO, retry_after: None };
            self.lanes.with(|state, now| {
                state.end_guarded(self.lane, permit, nothing, None, now);
            });
        }
        if !matches!(self.hold, Hold::Ended) {
            self.give_back();
        }
        self.lanes.with(|state, now| {
            state.leave();
            state.slots.drop_bytes(self.lane, self.bytes, now.elapsed);
        });
    }
}

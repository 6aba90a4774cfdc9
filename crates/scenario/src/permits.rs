//! The permits of attempts in flight, by client.
//!
//! A permit is several times the size of a client's other state, and there may be ten million clients. So a client has
//! the number of a slot, and there are as many slots as there were attempts in flight at once.

use redrive_core::guards::Permit;

/// The permits of attempts in flight.
#[derive(Debug, Default)]
pub(crate) struct Permits {
    /// The slot of each client's permit; empty before the first permit.
    slots: Vec<u32>,
    permits: Vec<Permit>,
    free: Vec<u32>,
    clients: usize,
}

const NO_SLOT: u32 = u32::MAX;

impl Permits {
    /// No permits yet, for this many clients.
    pub(crate) fn new(clients: usize) -> Self {
        Permits { clients, ..Permits::default() }
    }

    /// Keeps the permit of a client's attempt until it ends.
    pub(crate) fn put(&mut self, client: u32, permit: Permit) {
        if self.slots.is_empty() {
            self.slots = vec![NO_SLOT; self.clients];
        }
        let slot = match self.free.pop() {
            Some(slot) => {
                self.permits[slot as usize] = permit;
                slot
            }
            None => {
                self.permits.push(permit);
                (self.permits.len() - 1) as u32
            }
        };
        self.slots[client as usize] = slot;
    }

    /// Takes the permit of a client's attempt, if it has one.
    pub(crate) fn take(&mut self, client: u32) -> Option<Permit> {
        let slot = self.slots.get_mut(client as usize).filter(|slot| **slot != NO_SLOT)?;
        let slot = std::mem::replace(slot, NO_SLOT);
        self.free.push(slot);
        Some(self.permits[slot as usize])
    }

    /// How many permits are kept.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.permits.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use redrive_core::Timestamp;
    use redrive_core::guards::{LaneGuards, Settings};
    use redrive_core::task::Class;

    use super::*;

    #[test]
    fn a_permit_is_taken_once_and_its_slot_is_used_again() {
        let mut guards = LaneGuards::new(Settings::default());
        let mut permit =
            |second: u64| guards.begin(Class::First, None, Timestamp::from_millis(second * 1_000)).unwrap();
        let (one, two, three) = (permit(1), permit(2), permit(3));
        let mut permits = Permits::new(10);
        assert_eq!((permits.take(7), permits.count()), (None, 0));
        permits.put(7, one);
        permits.put(2, two);
        assert_eq!((permits.take(7), permits.take(7), permits.count()), (Some(one), None, 1));
        permits.put(9, three);
        assert_eq!(permits.permits.len(), 2);
        assert_eq!((permits.take(9), permits.take(2), permits.count()), (Some(three), Some(two), 0));
    }
}

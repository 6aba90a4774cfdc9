//! Counts of tasks that ended.

use crate::task::Status;

/// Counts of tasks that ended as delivered or as dead letters. Cancelled tasks say nothing about a dependency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Tasks that ended.
    pub ended: u32,
    /// Those that took more than one attempt.
    pub retried: u32,
    /// Those that became dead letters.
    pub dead_letters: u32,
    /// The attempts of all tasks that were delivered.
    pub attempts_of_delivered: u32,
    /// Tasks that were delivered by their second attempt.
    pub delivered_by_second: u32,
}

impl Tally {
    /// One task that ended in this status after so many attempts of its last run; `None` if it is not counted.
    pub fn of(status: Status, attempts: u32) -> Option<Self> {
        let is_delivered = status == Status::Succeeded;
        if !is_delivered && !status.is_dead_letter() {
            return None;
        }
        Some(Tally {
            ended: 1,
            retried: u32::from(attempts > 1),
            dead_letters: u32::from(!is_delivered),
            attempts_of_delivered: if is_delivered { attempts } else { 0 },
            delivered_by_second: u32::from(is_delivered && attempts == 2),
        })
    }

    /// Tasks that were delivered.
    pub const fn delivered(&self) -> u32 {
        self.ended.saturating_sub(self.dead_letters)
    }

    /// Adds another tally.
    pub fn add(&mut self, other: &Tally) {
        let Tally { ended, retried, dead_letters, attempts_of_delivered, delivered_by_second } = other;
        for (sum, more) in [
            (&mut self.ended, ended),
            (&mut self.retried, retried),
            (&mut self.dead_letters, dead_letters),
            (&mut self.attempts_of_delivered, attempts_of_delivered),
            (&mut self.delivered_by_second, delivered_by_second),
        ] {
            *sum = sum.saturating_add(*more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_counted_by_how_it_ended() {
        // Status, attempts: ended, retried, dead letters, attempts of delivered, delivered by the second.
        for (status, attempts, expected) in [
            (Status::Succeeded, 1, Some([1, 0, 0, 1, 0])),
            (Status::Succeeded, 2, Some([1, 1, 0, 2, 1])),
            (Status::Succeeded, 3, Some([1, 1, 0, 3, 0])),
            (Status::Failed, 1, Some([1, 0, 1, 0, 0])),
            (Status::Exhausted, 2, Some([1, 1, 1, 0, 0])),
            (Status::Exhausted, 0, Some([1, 0, 1, 0, 0])),
            (Status::Cancelled, 2, None),
            (Status::Pending, 2, None),
            (Status::InFlight, 2, None),
        ] {
            let counted = Tally::of(status, attempts).map(|tally| {
                let Tally { ended, retried, dead_letters, attempts_of_delivered, delivered_by_second } = tally;
                [ended, retried, dead_letters, attempts_of_delivered, delivered_by_second]
            });
            assert_eq!(counted, expected, "{status:?} after {attempts}");
        }
    }
}

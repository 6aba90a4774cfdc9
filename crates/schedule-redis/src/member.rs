//! The encoding of a pending task as a member of a sorted set: 16 bytes of id, then the token without its leading zero
//! bytes.
//!
//! Members with the same due time are ordered by their bytes, so by id: the older task comes first.
//!
//! The token is part of the member, so an entry from before a task's last claim is another member. It cannot be
//! confused with the present task, and the store rejects it as out of date when it is taken. Under one token a task
//! becomes pending once, and its due time only moves earlier (a retry-now). That is why adding never moves a member to
//! a later time, and why the order of additions does not matter.

use redrive_core::{TaskId, Timestamp};
use redrive_store::Token;

const ID_BYTES: usize = 16;
const TOKEN_BYTES: usize = 8;
/// The latest time that a score can tell from the next millisecond: scores are floating point numbers of 53 bits.
const LATEST: u64 = 1 << 53;

/// The member for this task.
pub(crate) fn encode(id: TaskId, token: Token) -> Vec<u8> {
    let token = token.0.to_be_bytes();
    let zeros = token.iter().take_while(|byte| **byte == 0).count();
    let mut member = Vec::with_capacity(ID_BYTES + TOKEN_BYTES - zeros);
    member.extend_from_slice(&id.as_u128().to_be_bytes());
    member.extend_from_slice(&token[zeros..]);
    member
}

/// The task that a member encodes; `None` if it is invalid.
pub(crate) fn decode(member: &[u8]) -> Option<(TaskId, Token)> {
    let (id, rest) = member.split_first_chunk::<ID_BYTES>()?;
    let id = TaskId::from_u128(u128::from_be_bytes(*id))?;
    if rest.len() > TOKEN_BYTES {
        return None;
    }
    let token = rest.iter().fold(0, |token, byte| token << 8 | u64::from(*byte));
    Some((id, Token(token)))
}

/// The score for a task with this due time.
pub(crate) fn score(due: Timestamp) -> u64 {
    due.as_millis().min(LATEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_leads_back_to_its_task() {
        for (sequence, tail, token, bytes) in [
            (0, 0, 0, 16),
            (1, 2, 1, 17),
            (u64::MAX >> 1, u64::MAX >> 5, 255, 17),
            (7 << 40, 9, 256, 18),
            (1, 1, u64::MAX, 24),
        ] {
            let id = TaskId::from_parts(sequence, tail);
            let member = encode(id, Token(token));
            assert_eq!((member.len(), decode(&member)), (bytes, Some((id, Token(token)))));
        }
    }

    #[test]
    fn what_is_no_member_stands_for_no_task() {
        let member = encode(TaskId::from_parts(1, 2), Token(u64::MAX));
        assert_eq!(decode(&member[..15]), None);
        assert_eq!(decode(&[&member[..], b"x"].concat()), None);
        assert_eq!(decode(&[0; 16]), None, "not a version 7 UUID");
        assert_eq!(decode(b""), None);
    }

    #[test]
    fn members_are_ordered_as_their_ids_are() {
        let ids =
            [(1, 9), (2, 3), (7, 1), (8, 0), (1 << 15, 0)].map(|(sequence, tail)| TaskId::from_parts(sequence, tail));
        assert!(ids.map(|id| encode(id, Token(3))).is_sorted());
    }

    #[test]
    fn a_score_is_a_number_that_redis_keeps_exactly() {
        assert_eq!(score(Timestamp::from_millis(1_700_000_000_123)), 1_700_000_000_123);
        assert_eq!(score(Timestamp::MAX) as f64 as u64, score(Timestamp::MAX));
    }
}

//! The trace of a task, and the ids of its spans.
//!
//! The id of a span is the first 8 bytes of SHA-256 over: the 16 bytes `redrive span v1\0`, the 16 bytes of the task's id,
//! one byte for the kind (`r` for a run, `a` for an attempt), and the number of the run or attempt in 4 bytes, big-endian.
//! Should these 8 bytes be zero, the id is 1. A change would break traces across an upgrade.

use std::num::{NonZeroU64, NonZeroU128};

use sha2::{Digest, Sha256};

use super::id::{SpanId, TraceId};
use super::parent::{Flags, TraceParent};
use super::sampler::Sampler;
use crate::id::TaskId;
use crate::task::Task;

const DOMAIN: &[u8; 16] = b"redrive span v1\0";

/// The trace that a task belongs to: its caller's, or else one with the bits of the task's id.
pub fn trace_of(task: &Task) -> TraceId {
    match task.trace_parent {
        Some(parent) => parent.trace,
        // The version of a task's id is in its bits, so they are never all zero.
        None => NonZeroU128::new(task.id.as_u128()).unwrap_or(NonZeroU128::MIN).into(),
    }
}

/// The span of a run of a task. The span of the first run is the root of the task's spans.
pub fn span_of_run(task: TaskId, run: u32) -> SpanId {
    derived(task, b'r', run)
}

/// The span of an attempt of a task; attempts are numbered over all runs.
pub fn span_of_attempt(task: TaskId, attempt: u32) -> SpanId {
    derived(task, b'a', attempt)
}

/// What the request of an attempt says about its trace: the attempt's own span is the parent of what the dependency does.
pub fn attempt_context(task: &Task, sampler: &Sampler) -> TraceParent {
    let flags = Flags {
        is_sampled: sampler.samples(task),
        is_random: task.trace_parent.is_some_and(|parent| parent.flags.is_random),
    };
    TraceParent { trace: trace_of(task), span: span_of_attempt(task.id, task.attempt_number), flags }
}

fn derived(task: TaskId, kind: u8, number: u32) -> SpanId {
    let hash: [u8; 32] = Sha256::new()
        .chain_update(DOMAIN)
        .chain_update(task.as_u128().to_be_bytes())
        .chain_update([kind])
        .chain_update(number.to_be_bytes())
        .finalize()
        .into();
    let bits = hash.iter().take(8).fold(0, |bits, byte| bits << 8 | u64::from(*byte));
    NonZeroU64::new(bits).unwrap_or(NonZeroU64::MIN).into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::trace::Undecided;

    const ON: Sampler = Sampler { follows_parent: true, otherwise: Undecided::Always };

    /// Made once with `printf … | sha256sum`, outside of this program.
    #[test]
    fn the_ids_of_spans_stay_the_same_from_release_to_release() {
        let task: TaskId = "018bcfe5-6800-7f57-a123-456789abcdef".parse().unwrap();
        for (span, expected) in [
            (span_of_run(task, 1), "3c63959a0d99cf05"),
            (span_of_run(task, 2), "e3f469f1592d18fd"),
            (span_of_attempt(task, 1), "b264f28599e0d053"),
            (span_of_attempt(task, 258), "78ce8070a30328f8"),
        ] {
            assert_eq!(span.to_string(), expected);
        }
    }

    #[test]
    fn every_run_and_attempt_of_every_task_has_its_own_span() {
        let tasks = (1..50).map(|n| TaskId::from_parts(n, n));
        let spans: BTreeSet<SpanId> = tasks
            .flat_map(|task| (1..20).flat_map(move |n| [span_of_run(task, n), span_of_attempt(task, n)]))
            .collect();
        assert_eq!(spans.len(), 49 * 19 * 2);
    }

    #[test]
    fn a_task_continues_its_callers_trace_or_begins_one_with_its_own_id() {
        let own = crate::task::tests::dead_letter();
        let task = own.id.to_string().replace('-', "");
        let span = span_of_attempt(own.id, 3);
        assert_eq!(attempt_context(&own, &ON).to_string(), format!("00-{task}-{span}-01"));

        let caller = |flags: &str| Task {
            trace_parent: format!("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-{flags}").parse().ok(),
            ..own.clone()
        };
        // The flags that were given, and those that are sent.
        for (given, sent) in [("01", "01"), ("00", "00"), ("03", "03"), ("02", "02")] {
            let context = attempt_context(&caller(given), &ON).to_string();
            assert_eq!(context, format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{span}-{sent}"));
        }
    }
}

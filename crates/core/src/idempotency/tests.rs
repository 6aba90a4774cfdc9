//! Every transition of a record, and random lives against a model that knows only who did what when.

use std::time::Duration;

use super::*;
use crate::time::Timestamp;

const LEASE: Duration = Duration::from_secs(60);
const RETENTION: Duration = Duration::from_secs(86_400);
const NOW: Timestamp = Timestamp::from_millis(1_000_000_000);

fn hash(number: u8) -> RequestHash {
    RequestHash([number; 32])
}

fn execution(number: u128) -> ExecutionId {
    ExecutionId::from_u128(number)
}

fn ask(number: u128) -> Reserve {
    Reserve {
        request_hash: hash(1),
        execution: execution(number),
        lease: LEASE,
        retention: RETENTION,
        is_complete: false,
    }
}

fn owner(number: u128, epoch: u64) -> Owner {
    Owner { execution: execution(number), epoch: Epoch(epoch) }
}

fn response(status: u16) -> Completion {
    Completion { response: Some(Response { status, headers: Vec::new(), body: "done".into() }), resource: None }
}

/// A record of execution 7 in its third epoch, in this state.
fn record(state: State) -> Record {
    let completion = if state.is_final() { response(200) } else { Completion::default() };
    Record {
        request_hash: hash(1),
        state,
        owner: owner(7, 3),
        lease_until: NOW.after(LEASE),
        retention: RETENTION,
        started_at: NOW,
        updated_at: NOW,
        expires_at: NOW.after(LEASE + RETENTION),
        completion,
    }
}

/// What a reservation leads to, in short.
#[derive(Debug, PartialEq)]
enum Expected {
    Granted(u64, Option<State>),
    InProgress,
    Ended(State),
    OtherRequest,
}

fn short(reserved: &Reserved) -> Expected {
    match reserved {
        Reserved::Granted { epoch, previous, .. } => {
            Expected::Granted(epoch.0, previous.map(|previous| previous.state))
        }
        Reserved::InProgress { .. } => Expected::InProgress,
        Reserved::Ended(record) => Expected::Ended(record.state),
        Reserved::OtherRequest => Expected::OtherRequest,
    }
}

#[test]
fn every_state_answers_a_reservation() {
    use Expected::{Ended, Granted, InProgress, OtherRequest};
    use State::{FailedFinal, FailedRetryable, InProgress as Running, Released, Succeeded};
    let soon = NOW.after(Duration::from_secs(1));
    let late = NOW.after(LEASE);
    let expired = NOW.after(LEASE + RETENTION);
    // the stored state, the time, the same request?, what is answered
    let cases = [
        (None, soon, true, Granted(1, None)),
        (Some(Running), soon, true, InProgress),
        (Some(Running), soon, false, OtherRequest),
        (Some(Running), late, true, Granted(4, Some(Running))),
        (Some(Running), late, false, OtherRequest),
        (Some(Running), expired, true, Granted(4, None)),
        (Some(Running), expired, false, Granted(4, None)),
        (Some(Succeeded), soon, true, Ended(Succeeded)),
        (Some(Succeeded), late, true, Ended(Succeeded)),
        (Some(Succeeded), soon, false, OtherRequest),
        (Some(Succeeded), expired, true, Granted(4, None)),
        (Some(Succeeded), expired, false, Granted(4, None)),
        (Some(FailedFinal), soon, true, Ended(FailedFinal)),
        (Some(FailedFinal), soon, false, OtherRequest),
        (Some(FailedFinal), expired, false, Granted(4, None)),
        (Some(FailedRetryable), soon, true, Granted(4, Some(FailedRetryable))),
        (Some(FailedRetryable), soon, false, OtherRequest),
        (Some(FailedRetryable), expired, false, Granted(4, None)),
        (Some(Released), soon, true, Granted(4, None)),
        (Some(Released), soon, false, Granted(4, None)),
        (Some(Released), expired, false, Granted(4, None)),
    ];
    for (state, now, is_same, expected) in cases {
        let stored = state.map(record);
        let asked = Reserve { request_hash: hash(if is_same { 1 } else { 2 }), ..ask(8) };
        let (answer, change) = reserve(stored.as_ref(), &asked, now);
        assert_eq!(short(&answer), expected, "{state:?} at {now:?}, same request: {is_same}");
        assert_eq!(change.is_some(), matches!(expected, Granted(..)), "only a grant changes the record");
        if let Some(record) = change {
            assert_eq!((record.state, record.owner.execution), (Running, execution(8)));
            assert_eq!((record.started_at, record.lease_until), (now, now.after(LEASE)));
            assert_eq!((record.request_hash, record.completion), (asked.request_hash, Completion::default()));
            assert_eq!(record.expires_at, now.after(LEASE + RETENTION), "it is kept for its retention after its lease");
        }
    }
}

#[test]
fn an_execution_that_asks_again_gets_its_own_epoch_and_a_new_lease() {
    let (answer, change) = reserve(Some(&record(State::InProgress)), &ask(7), NOW.after(LEASE / 2));
    assert_eq!(short(&answer), Expected::Granted(3, None));
    let record = change.unwrap();
    assert_eq!((record.owner, record.started_at), (owner(7, 3), NOW));
    assert_eq!(record.lease_until, NOW.after(LEASE / 2 + LEASE));
}

#[test]
fn a_reservation_that_is_complete_at_once_has_no_lease() {
    let (answer, change) = reserve(None, &Reserve { is_complete: true, ..ask(8) }, NOW);
    assert_eq!(short(&answer), Expected::Granted(1, None));
    let record = change.unwrap();
    assert_eq!((record.state, record.lease_until, record.expires_at), (State::Succeeded, NOW, NOW.after(RETENTION)));
    let (answer, change) = reserve(Some(&record), &ask(9), NOW.after(LEASE));
    assert_eq!((short(&answer), change), (Expected::Ended(State::Succeeded), None));
}

#[test]
fn an_execution_that_repeats_a_reservation_which_was_complete_at_once_is_granted_again() {
    use Expected::{Ended, Granted};
    let complete = |number| Reserve { is_complete: true, ..ask(number) };
    let at_once = reserve(Some(&record(State::FailedRetryable)), &complete(8), NOW).1.unwrap();
    let began = reserve(None, &ask(8), NOW).1.unwrap();
    let Changed::Done(confirmed) =
        change(Some(&began), owner(8, 1), &Change::Complete(Completion::default()), NOW.after(LEASE / 2)).0
    else {
        panic!("not confirmed")
    };
    let (soon, expired) = (NOW.after(LEASE / 2), NOW.after(RETENTION));
    let other_request = Reserve { request_hash: hash(2), ..complete(8) };
    // the stored record, the request, the time, what is answered
    for (stored, asked, now, expected) in [
        (&at_once, complete(8), soon, Granted(4, None)),
        (&at_once, complete(8), NOW, Granted(4, None)),
        (&at_once, complete(9), soon, Ended(State::Succeeded)),
        (&at_once, ask(8), soon, Ended(State::Succeeded)),
        (&at_once, other_request, soon, Expected::OtherRequest),
        (&at_once, complete(8), expired, Granted(5, None)),
        (&*confirmed, complete(8), soon, Ended(State::Succeeded)),
        (&record(State::Succeeded), complete(7), soon, Ended(State::Succeeded)),
        (&record(State::FailedFinal), complete(7), soon, Ended(State::FailedFinal)),
    ] {
        let (answer, changed) = reserve(Some(stored), &asked, now);
        assert_eq!(short(&answer), expected, "{asked:?} at {now:?}");
        assert_eq!(changed.is_some(), now == expired, "what was granted before stays as it is");
    }
}

#[test]
fn only_the_owner_of_a_record_in_progress_changes_it() {
    use State::{FailedFinal, FailedRetryable, InProgress, Released, Succeeded};
    let (soon, late) = (NOW.after(Duration::from_secs(1)), NOW.after(LEASE + LEASE));
    let changes = [
        (Change::Complete(response(201)), Succeeded),
        (Change::FailFinal(response(402)), FailedFinal),
        (Change::FailRetryable, FailedRetryable),
        (Change::Renew(LEASE * 2), InProgress),
        (Change::Release, Released),
    ];
    for (made, state) in changes {
        for now in [soon, late] {
            let (answer, stored) = change(Some(&record(InProgress)), owner(7, 3), &made, now);
            let stored = stored.unwrap();
            assert_eq!(answer, Changed::Done(Box::new(stored.clone())), "{made:?}");
            assert_eq!((stored.state, stored.updated_at, stored.owner), (state, now, owner(7, 3)));
            let lease_until = if state == InProgress { now.after(LEASE * 2) } else { now };
            assert_eq!((stored.lease_until, stored.expires_at), (lease_until, lease_until.after(RETENTION)));
            // The same call again, because its answer was lost.
            let (again, change_again) = change(Some(&stored), owner(7, 3), &made, now);
            assert_eq!(again, Changed::Done(Box::new(stored.clone())));
            assert!(change_again.is_none() || state == InProgress, "{made:?}");
            // Another end after this one.
            for other in [Change::Complete(response(500)), Change::FailFinal(Completion::default())] {
                let (other_answer, other_change) = change(Some(&stored), owner(7, 3), &other, now);
                if state != InProgress {
                    assert_eq!(
                        (other_answer, other_change),
                        (Changed::AlreadyEnded(state), None),
                        "{made:?} {other:?}"
                    );
                }
            }
        }
        for (not_the_owner, state, expected) in [
            (owner(7, 2), InProgress, Changed::Fenced),
            (owner(7, 4), InProgress, Changed::Fenced),
            (owner(8, 3), InProgress, Changed::Fenced),
            (owner(8, 2), Succeeded, Changed::Fenced),
            (owner(8, 2), FailedRetryable, Changed::Fenced),
            (owner(8, 2), FailedFinal, Changed::Fenced),
            (owner(8, 2), Released, Changed::Fenced),
            (owner(8, 3), Released, Changed::Absent),
            (owner(8, 4), Released, Changed::Absent),
        ] {
            assert_eq!(
                change(Some(&record(state)), not_the_owner, &made, soon),
                (expected, None),
                "{made:?} {state:?}"
            );
        }
        assert_eq!(change(None, owner(7, 3), &made, soon), (Changed::Absent, None));
        let expired = NOW.after(LEASE + RETENTION);
        assert_eq!(change(Some(&record(InProgress)), owner(7, 3), &made, expired), (Changed::Absent, None));
    }
}

#[test]
fn a_deleted_record_counts_as_absent_and_keeps_its_epoch() {
    for state in State::ALL {
        let deleted = delete(&record(state), NOW);
        assert!(!deleted.is_present(NOW));
        assert_eq!(deleted.completion, Completion::default());
        let other_request = Reserve { request_hash: hash(2), ..ask(8) };
        let (answer, _) = reserve(Some(&deleted), &other_request, NOW);
        assert_eq!(short(&answer), Expected::Granted(4, None), "{state:?}");
    }
}

/// A small random generator with a fixed result for a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// What the model knows: who holds the record now, and what duplicates are to be told. It does not know the rules.
#[derive(Default)]
struct Model {
    /// The executions that were granted, in order, with their epochs.
    granted: Vec<(ExecutionId, u64)>,
    /// The holder, and until when no other may take over.
    holder: Option<(ExecutionId, u64, Timestamp)>,
    /// The request that the key stands for, and until when.
    request: Option<(RequestHash, Timestamp)>,
    /// The final result.
    result: Option<(State, Completion)>,
    /// The execution whose reservation was complete at once.
    at_once: Option<ExecutionId>,
}

impl Model {
    /// Whether the key stands for a request now. A clock that steps back makes an expired record present again.
    fn is_present(&self, now: Timestamp) -> bool {
        self.request.is_some_and(|(_, until)| now < until)
    }

    fn judge_reserve(&mut self, asked: &Reserve, answer: &Reserved, now: Timestamp) {
        let is_present = self.is_present(now);
        let is_other = is_present && self.request.is_some_and(|(hash, _)| hash != asked.request_hash);
        match answer {
            Reserved::OtherRequest => assert!(is_other, "told that it is another request"),
            _ if is_other => panic!("another request got {answer:?}"),
            Reserved::Ended(record) => {
                let (state, completion) = self.result.as_ref().expect("a result");
                assert_eq!((record.state, &record.completion), (*state, completion), "the result changed");
            }
            Reserved::InProgress { lease_until, .. } => {
                let (holder, _, until) = self.holder.expect("a holder");
                assert!(now < until && holder != asked.execution && *lease_until == until);
            }
            Reserved::Granted { epoch, lease_until, .. } => {
                if !is_present {
                    (self.holder, self.result, self.at_once) = (None, None, None);
                }
                if self.result.is_some() {
                    let is_repeated = asked.is_complete && self.at_once == Some(asked.execution);
                    assert!(is_repeated, "a second execution after a final result");
                    assert_eq!(self.granted.last(), Some(&(asked.execution, epoch.0)), "a repeat is no new owner");
                    return;
                }
                let is_again =
                    self.holder.is_some_and(|(holder, held, _)| (holder, held) == (asked.execution, epoch.0));
                if !is_again {
                    assert!(self.holder.is_none_or(|(_, _, until)| now >= until), "two owners at once");
                    assert!(self.granted.iter().all(|(_, earlier)| *earlier < epoch.0), "an epoch did not grow");
                    self.granted.push((asked.execution, epoch.0));
                }
                self.holder = Some((asked.execution, epoch.0, *lease_until));
                if asked.is_complete {
                    (self.holder, self.result) = (None, Some((State::Succeeded, Completion::default())));
                    // One that was in progress before has its own start, and is not known to be complete at once.
                    self.at_once = Some(asked.execution).filter(|_| !is_again);
                }
                self.request = Some((asked.request_hash, lease_until.after(asked.retention)));
            }
        }
    }

    fn judge_change(&mut self, owner: Owner, made: &Change, answer: &Changed, now: Timestamp) {
        let Changed::Done(record) = answer else { return };
        let is_newest = self.granted.last() == Some(&(owner.execution, owner.epoch.0));
        assert!(is_newest, "an execution that was replaced changed the record");
        // The owner that gave the record up may say so again.
        let is_repeated_release = *made == Change::Release && self.request.is_none();
        assert!(self.is_present(now) || is_repeated_release, "a record that is not there was changed");
        match made {
            Change::Renew(_) => self.holder = Some((owner.execution, owner.epoch.0, record.lease_until)),
            Change::Release => (self.holder, self.request) = (None, None),
            Change::FailRetryable => self.holder = None,
            Change::Complete(completion) | Change::FailFinal(completion) => {
                self.holder = None;
                let result = (made.state(), completion.clone());
                assert!(self.result.as_ref().is_none_or(|known| *known == result), "a result was replaced");
                self.result = Some(result);
            }
        }
        self.request = self.request.map(|(hash, _)| (hash, record.expires_at));
    }
}

/// Callers that crash, stall, come back and repeat their calls, over a clock that also steps back.
#[test]
fn in_random_lives_there_is_one_owner_one_result_and_epochs_only_grow() {
    let mut ends = [0; 4];
    for seed in 0..2_000 {
        let mut random = Random(seed);
        let (mut stored, mut model) = (None::<Record>, Model::default());
        let mut owners = Vec::new();
        let mut now = NOW;
        for step in 0_u64..60 {
            now = match random.below(12) {
                0 => now.before(Duration::from_millis(random.below(5_000))),
                1 => now.after(LEASE + Duration::from_secs(random.below(60))),
                2 if random.below(6) == 0 => now.after(RETENTION),
                _ => now.after(Duration::from_millis(random.below(20_000))),
            };
            let context = format!("seed {seed}, step {step}");
            if random.below(2) == 0 || owners.is_empty() {
                let again = random.below(5) == 0;
                let number = match owners.last() {
                    Some(Owner { execution, .. }) if again => execution.as_u128(),
                    _ => u128::from(step) + 1_000 * u128::from(seed + 1),
                };
                let asked = Reserve {
                    request_hash: hash(1 + u8::from(random.below(8) == 0)),
                    is_complete: random.below(8) == 0,
                    ..ask(number)
                };
                let (answer, change) = reserve(stored.as_ref(), &asked, now);
                model.judge_reserve(&asked, &answer, now);
                if let Reserved::Granted { epoch, .. } = answer {
                    owners.push(Owner { execution: asked.execution, epoch });
                }
                stored = change.or(stored);
            } else {
                let by = owners[owners.len() - 1 - random.below(owners.len().min(3) as u64) as usize];
                let made = match random.below(8) {
                    0 | 1 => Change::Renew(LEASE),
                    2 => Change::Release,
                    3 | 4 => Change::FailRetryable,
                    5 => Change::FailFinal(response(400 + random.below(2) as u16)),
                    _ => Change::Complete(response(200 + random.below(2) as u16)),
                };
                let (answer, changed) = change(stored.as_ref(), by, &made, now);
                model.judge_change(by, &made, &answer, now);
                ends[match answer {
                    Changed::Done(_) => 0,
                    Changed::Fenced => 1,
                    Changed::AlreadyEnded(_) => 2,
                    Changed::Absent => 3,
                }] += 1;
                stored = changed.or(stored);
                assert!(stored.is_some(), "{context}");
            }
            if random.below(40) == 0 {
                // The cleaner came by.
                stored = stored.filter(|record| now < record.expires_at);
                if stored.is_none() {
                    // Epochs begin again once the row is gone.
                    (model, owners) = (Model::default(), Vec::new());
                }
            }
        }
    }
    assert!(ends.iter().all(|count| *count > 500), "every answer was met: {ends:?}");
}

#[test]
fn the_text_of_an_operation_says_what_it_is() {
    for text in ["create-payment", "a.b:c_d", "inbox/billing"] {
        assert_eq!(text.parse::<Operation>().unwrap().to_string(), text);
    }
    assert!(matches!("inbox/a".parse(), Ok(Operation::Inbox(_))));
    assert!(matches!("inbox".parse(), Ok(Operation::Named(_))));
    for text in ["", "a/b", "inbox/", "inbox/a/b", "a b"] {
        assert!(text.parse::<Operation>().is_err(), "{text:?}");
    }
}

#[test]
fn references_have_a_type_and_an_id() {
    let resource = Resource::try_new("payment", "pay_123").unwrap();
    assert_eq!((resource.kind(), resource.id()), ("payment", "pay_123"));
    assert_eq!(Resource::try_new("", "x"), Err(ResourceError::Kind));
    assert_eq!(Resource::try_new("a\nb", "x"), Err(ResourceError::Kind));
    assert_eq!(Resource::try_new("a", ""), Err(ResourceError::Id));
    assert_eq!(Resource::try_new("a", "x".repeat(501)), Err(ResourceError::Id));
}

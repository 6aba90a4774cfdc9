//! The same calls to this store and to the reference store: the same answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use redrive_core::BodyRef;
use redrive_core::idempotency::State;
use redrive_store::conformance::samples::{at, stored, tenant};
use redrive_store::{Answers, Blob, Error, MemoryStore, RecordChange, SeenRecord};

use super::support::open;
use super::*;

const STEPS: u64 = 400;

/// Both stores, and what was seen of their records.
struct Both {
    memory: MemoryStore,
    sqlite: SqliteStore,
    owners: Vec<(RecordKey, Owner)>,
    seen: BTreeMap<RecordKey, SeenRecord>,
    random: Random,
    now: Timestamp,
}

impl Both {
    fn some_key(&mut self) -> RecordKey {
        let operation = self.random.pick(&["pay", "refund", "pay.later", "inbox/billing"]);
        key_of(tenant(self.random.pick(&["acme", "other"])), operation, self.random.pick(&["a", "b", "c"]))
    }

    fn some_reservation(&mut self, step: u64) -> Reservation {
        let mut asked = reservation(self.some_key(), u128::from(step * 10 + self.random.below(3)));
        if self.random.chance(10) {
            asked.ask.request_hash = RequestHash([2; 32]);
        }
        asked.ask.is_complete = self.random.chance(10);
        asked
    }

    fn some_change(&mut self) -> RecordChange {
        let newest = self.owners.len().saturating_sub(10);
        let place = newest + self.random.below((self.owners.len() - newest) as u64) as usize;
        let (key, owner) = self.owners[place].clone();
        let change = match self.random.below(8) {
            0 => Change::Renew(LEASE),
            1 => Change::Release,
            2 => Change::FailRetryable,
            3 => Change::FailFinal(completion("failed")),
            4 => Change::Complete(with_blob(stored(self.random.pick(&["one", "two"]), 1))),
            _ => Change::Complete(completion("done")),
        };
        RecordChange { key, owner, change }
    }

    async fn reserve(&mut self, step: u64) {
        let asked: Vec<_> = (0..1 + self.random.below(4)).map(|_| self.some_reservation(step)).collect();
        let expected = answers(self.memory.records().reserve(asked.clone(), self.now).await);
        assert_eq!(answers(self.sqlite.records().reserve(asked.clone(), self.now).await), expected, "step {step}");
        for (Reservation { key, ask }, answer) in asked.into_iter().zip(expected) {
            if let Reserved::Granted { epoch, .. } = answer {
                self.owners.push((key, Owner { execution: ask.execution, epoch }));
            }
        }
    }

    async fn change(&mut self, step: u64) {
        if self.owners.is_empty() {
            return;
        }
        let changes: Vec<_> = (0..1 + self.random.below(4)).map(|_| self.some_change()).collect();
        let expected = answers(self.memory.records().change(changes.clone(), self.now).await);
        assert_eq!(answers(self.sqlite.records().change(changes, self.now).await), expected, "step {step}");
    }

    async fn delete(&mut self, step: u64) {
        let key = self.some_key();
        let seen = self.seen.get(&key).copied().filter(|_| self.random.chance(70));
        let expected = self.memory.records().delete(key.clone(), seen, self.now).await.unwrap();
        assert_eq!(self.sqlite.records().delete(key, seen, self.now).await.unwrap(), expected, "step {step}");
    }

    async fn keep_house(&mut self, step: u64) {
        let body = stored(self.random.pick(&["one", "two"]), 1);
        let expected = self.memory.blobs().adopt(tenant("acme"), body, self.now).await.unwrap();
        assert_eq!(self.sqlite.blobs().adopt(tenant("acme"), body, self.now).await.unwrap(), expected, "step {step}");
        let expected = self.memory.records().clean(self.now, 1_000).await.unwrap();
        assert_eq!(self.sqlite.records().clean(self.now, 1_000).await.unwrap(), expected, "step {step}");
        if self.random.chance(30) {
            let condemned = blobs(&self.memory).await;
            assert_eq!(blobs(&self.sqlite).await, condemned, "step {step}");
            self.memory.blobs().forget(condemned.clone()).await.unwrap();
            self.sqlite.blobs().forget(condemned).await.unwrap();
        }
    }

    async fn compare(&mut self, step: u64) {
        for tenant in ["acme", "other"].map(tenant) {
            let counts = self.memory.records().counts(tenant.clone(), None, 10, 4).await.unwrap();
            assert_eq!(self.sqlite.records().counts(tenant.clone(), None, 10, 4).await.unwrap(), counts, "step {step}");
            let inbox = OperationFilter::One("inbox/billing".parse().unwrap());
            for operations in [OperationFilter::AllNamed, inbox] {
                let state = self.random.chance(50).then(|| self.random.pick(&State::ALL));
                let limit = 1 + self.random.below(5) as usize;
                let query = RecordQuery { operations, state, limit, ..query(tenant.clone(), self.now) };
                let expected = sorted(list(&self.memory, query.clone()).await);
                assert_eq!(sorted(list(&self.sqlite, query).await), expected, "step {step}");
                self.seen.extend(expected.into_iter().map(|(key, record)| (key, SeenRecord::of(&record))));
            }
        }
        let key = self.some_key();
        assert_eq!(read(&self.sqlite, key.clone(), self.now).await, read(&self.memory, key, self.now).await);
    }
}

/// A small generator, so that a seed gives the same life again.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

fn answers<T>(answers: Result<Answers<T>, Error>) -> Vec<T> {
    answers.unwrap().into_iter().map(Result::unwrap).collect()
}

fn with_blob(body: BodyRef) -> Completion {
    Completion { response: Some(Response { status: 200, headers: Vec::new(), body: body.into() }), resource: None }
}

fn sorted(mut records: Vec<(RecordKey, Record)>) -> Vec<(RecordKey, Record)> {
    records.sort_by(|(one, _), (other, _)| one.cmp(other));
    records
}

async fn blobs(store: &dyn Store) -> Vec<Blob> {
    store.blobs().condemn(Timestamp::MAX, None, 100).await.unwrap().blobs
}

#[tokio::test]
async fn random_lives_are_the_same_in_both_stores() {
    for (seed, recent_keys) in [(1, 1), (2, 8), (3, 1_000), (4, 20)] {
        let directory = tempfile::tempdir().unwrap();
        let mut both = Both {
            memory: MemoryStore::default(),
            sqlite: open_with(directory.path(), recent_keys),
            owners: Vec::new(),
            seen: BTreeMap::new(),
            random: Random(seed),
            now: at(0),
        };
        for step in 0..STEPS {
            let passed = match both.random.below(20) {
                0 => LEASE,
                1 => RETENTION,
                _ => Duration::from_millis(both.random.below(20_000)),
            };
            both.now = both.now.after(passed);
            match both.random.below(20) {
                0..8 => both.reserve(step).await,
                8..15 => both.change(step).await,
                15 => both.delete(step).await,
                16 | 17 => both.keep_house(step).await,
                18 => {
                    both.sqlite.close().await;
                    both.sqlite = open_with(directory.path(), recent_keys);
                }
                _ => both.compare(step).await,
            }
        }
        both.compare(STEPS).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_thousand_callers_at_once_one_owns_the_record() {
    for recent_keys in [1, 1_000] {
        let directory = tempfile::tempdir().unwrap();
        let store = Arc::new(open_with(directory.path(), recent_keys));
        let callers: Vec<_> = (0..1_000)
            .map(|execution| {
                let store = Arc::clone(&store);
                tokio::spawn(
                    async move { store.records().reserve(vec![reservation(key("a"), execution)], at(0)).await },
                )
            })
            .collect();
        let (mut granted, mut refused) = (0, 0);
        for caller in callers {
            match caller.await.unwrap().unwrap().remove(0).unwrap() {
                Reserved::Granted { epoch: Epoch(1), previous: None, .. } => granted += 1,
                Reserved::InProgress { .. } => refused += 1,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!((granted, refused), (1, 999));
    }
}

#[tokio::test]
async fn a_thousand_records_in_one_call_and_their_duplicates_within_it() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let asked = (0..1_000).map(|n| reservation(numbered(n % 700), u128::from(n))).collect();
    let answers = store.records().reserve(asked, at(0)).await.unwrap();
    for (n, answer) in answers.into_iter().enumerate() {
        let is_granted = matches!(answer, Ok(Reserved::Granted { epoch: Epoch(1), .. }));
        assert_eq!(is_granted, n < 700, "item {n}");
    }
    let complete = |n| RecordChange {
        key: numbered(n),
        owner: owner(u128::from(n), 1),
        change: Change::Complete(completion("done")),
    };
    let changes = (0..700).chain(0..300).map(complete).collect();
    let answers = store.records().change(changes, at(1)).await.unwrap();
    assert!(answers.iter().all(|answer| matches!(answer, Ok(RecordChanged::Decided(Changed::Done(_))))));
    let counts = store.records().counts(acme(), None, 9, 10_000).await.unwrap();
    assert_eq!((counts[0].in_progress, counts[0].succeeded), (0, 700));
}

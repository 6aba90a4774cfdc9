//! Random lives of a few records, compared with the pure functions over a map.

use std::collections::BTreeMap;

use redrive_core::idempotency::{self, Change};

use super::*;
use crate::conformance::samples::{at, tenant};
use crate::conformance::workload::Random;
use crate::{RecordChange, Reservation};

/// Steps of one life. Every step is one call with up to three items.
const STEPS: u64 = 300;

pub(crate) async fn random_lives_of_records_end_as_the_pure_functions_say(store: &dyn Store) {
    let mut random = Random(17);
    let mut model: BTreeMap<RecordKey, Record> = BTreeMap::new();
    let mut owners: Vec<(RecordKey, Owner)> = Vec::new();
    let mut now = at(0);
    for step in 0..STEPS {
        now = now.after(match random.below(10) {
            0 => LEASE,
            1 if random.below(5) == 0 => RETENTION,
            _ => Duration::from_millis(random.below(20_000)),
        });
        let items = 1 + random.below(3);
        if random.chance(50) || owners.is_empty() {
            let asked: Vec<_> = (0..items).map(|_| reservation(&mut random, step, &owners)).collect();
            let answers = store.records().reserve(asked.clone(), now).await.unwrap();
            for (Reservation { key, ask }, answer) in asked.into_iter().zip(answers) {
                let (expected, changed) = idempotency::reserve(model.get(&key), &ask, now);
                assert_eq!(answer.unwrap(), expected, "step {step}, {key}");
                if let Reserved::Granted { epoch, .. } = expected {
                    owners.push((key.clone(), Owner { execution: ask.execution, epoch }));
                }
                model.extend(changed.map(|record| (key, record)));
            }
        } else {
            let made: Vec<_> = (0..items).map(|_| made(&mut random, &owners)).collect();
            let answers = store.records().change(made.clone(), now).await.unwrap();
            for (RecordChange { key, owner, change }, answer) in made.into_iter().zip(answers) {
                let (expected, changed) = idempotency::change(model.get(&key), owner, &change, now);
                assert_eq!(answer.unwrap(), RecordChanged::Decided(expected), "step {step}, {key}");
                model.extend(changed.map(|record| (key, record)));
            }
        }
        if random.chance(5) {
            let expired = model.values().filter(|record| record.expires_at <= now).count();
            assert_eq!(store.records().clean(now, 100).await.unwrap(), expired, "step {step}");
            model.retain(|_, record| now < record.expires_at);
        }
    }
    for (key, record) in model {
        let expected = Some(record).filter(|record| record.is_present(now));
        assert_eq!(read(store, key.clone(), now).await, expected, "{key}");
    }
}

fn some_key(random: &mut Random) -> RecordKey {
    let operation = random.pick(&["pay", "refund", "inbox/billing"]);
    key_of(tenant(random.pick(&["acme", "other"])), operation, random.pick(&["a", "b"]))
}

fn reservation(random: &mut Random, step: u64, owners: &[(RecordKey, Owner)]) -> Reservation {
    if !owners.is_empty() && random.chance(15) {
        // Its answer was lost: it asks again.
        let (key, owner) = &owners[random.below(owners.len() as u64) as usize];
        return Reservation { key: key.clone(), ask: ask(owner.execution.as_u128()) };
    }
    let number = u128::from(step * 10 + random.below(8));
    let mut asked = if random.chance(15) { ask_otherwise(number) } else { ask(number) };
    asked.is_complete = random.chance(10);
    Reservation { key: some_key(random), ask: asked }
}

fn made(random: &mut Random, owners: &[(RecordKey, Owner)]) -> RecordChange {
    let newest = &owners[owners.len().saturating_sub(12)..];
    let (key, owner) = newest[random.below(newest.len() as u64) as usize].clone();
    let change = match random.below(7) {
        0 => Change::Renew(LEASE),
        1 => Change::Release,
        2 => Change::FailRetryable,
        3 => Change::FailFinal(response("failed")),
        _ => Change::Complete(with_resource(response(random.pick(&["one", "two"])))),
    };
    RecordChange { key, owner, change }
}

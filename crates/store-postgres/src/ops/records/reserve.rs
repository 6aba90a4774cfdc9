//! Reserving records.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use redrive_core::Timestamp;
use redrive_core::idempotency::{self, Owner, Record, Reserve, Reserved};
use redrive_store::{Error, Reservation};

use super::keys::{EncodedKey, Keys, TextKey};
use super::slots::{LOCK_FREE_LIGHT, LOCK_LIGHT, READ_LIGHT, Slot, closed, commit, fill, fill_held};
use crate::batch::Locks;
use crate::codec::{Cells, RecordArrays};
use crate::connection::Connection;
use crate::postgres_error::PostgresError;

pub(crate) const DOING: &str = "reserving records";

/// How often to try again for a record that was there and then was not: it was cleaned away in between.
const TRIES: usize = 5;

/// When a caller may ask again for a key that a transaction of another program holds.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// A reservation and its time.
#[derive(Debug)]
pub(crate) struct EncodedReservation {
    pub(crate) key: EncodedKey,
    ask: Reserve,
    now: Timestamp,
    /// What an earlier run granted, in a transaction whose commit was not confirmed.
    granted: Mutex<Option<Reserved>>,
}

impl EncodedReservation {
    pub(crate) fn new(Reservation { key, ask }: Reservation, now: Timestamp) -> Self {
        EncodedReservation { key: EncodedKey::new(key), ask, now, granted: Mutex::default() }
    }

    /// Decides the reservation, and returns the record to store if it changes. If the record is as an earlier run
    /// left it, that run was committed, and its answer is given again: it says what is known of the owner before, and
    /// that a record which is complete at once was made by this very call.
    fn decide(&self, stored: Option<&Record>) -> (Reserved, Option<Record>) {
        let (answer, changed) = self.judge(stored);
        if changed.is_some() {
            *self.granted.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer.clone());
        }
        (answer, changed)
    }

    /// The same for a record that this run cannot change.
    fn judge(&self, stored: Option<&Record>) -> (Reserved, Option<Record>) {
        if let (Some(answer @ Reserved::Granted { epoch, .. }), Some(record)) = (self.granted(), stored)
            && (record.owner, record.updated_at) == (Owner { execution: self.ask.execution, epoch }, self.now)
        {
            return (answer, None);
        }
        idempotency::reserve(stored, &self.ask, self.now)
    }

    fn granted(&self) -> Option<Reserved> {
        self.granted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The answer while another transaction holds the key: by what is committed, because that transaction may roll back.
    /// `None` if this cannot be known: the transaction may be an earlier run of this very reservation, whose connection was
    /// lost during its commit.
    fn held(&self, committed: Option<&Record>) -> Option<Reserved> {
        match (self.judge(committed), self.granted()) {
            ((answer @ Reserved::Granted { .. }, None), _) => Some(answer),
            (_, Some(_)) => None,
            ((answer, None), None) => Some(answer),
            ((_, Some(_)), None) => {
                Some(Reserved::InProgress { started_at: self.now, lease_until: self.now.after(ASK_AGAIN_AFTER) })
            }
        }
    }
}

/// The outcome for one item, or why it failed.
pub(crate) type Answer = Result<Reserved, Error>;

/// Decides each reservation, in order. `None` if another transaction has locked its record, which has to be changed.
pub(crate) async fn reserve(
    connection: &mut Connection,
    items: &[&EncodedReservation],
    locks: Locks,
) -> Result<Vec<Option<Answer>>, PostgresError> {
    let keys = Keys::of(items.iter().map(|item| item.key.text()));
    for _ in 0..TRIES {
        let outcome = run(connection, items, &keys, locks).await;
        match closed(connection, outcome).await {
            Ok(Some(answers)) => return Ok(answers),
            Ok(None) => {}
            Err(failure) if failure.is_lock_timeout() && keys.len() == 1 && locks == Locks::Wait => {
                let answers = held(connection, items, &keys).await?;
                return if answers.iter().any(Option::is_none) { Err(failure) } else { Ok(answers) };
            }
            Err(failure) => return Err(failure),
        }
    }
    let gone = || Err(Error::Unavailable(format!("{DOING}: a record was removed again and again")));
    Ok(items.iter().map(|_| Some(gone())).collect())
}

/// The answers for one key that another transaction holds.
async fn held(
    connection: &Connection,
    items: &[&EncodedReservation],
    keys: &Keys<'_>,
) -> Result<Vec<Option<Answer>>, PostgresError> {
    let rows = connection.query(READ_LIGHT, &keys.columns(0..1).arguments()).await?;
    let mut slots = [Slot::Absent];
    fill(&mut slots, &[0], &rows, DOING)?;
    let [committed] = &slots;
    Ok(items
        .iter()
        .map(|item| match committed.record() {
            Ok(record) => item.held(record).map(Ok),
            Err(unreadable) => Some(Err(unreadable)),
        })
        .collect())
}

/// Inserts the records of keys that have no row. A key that another transaction has inserted and not committed is waited
/// for, at most for the lock timeout. Rows that are seen are left alone, because an INSERT would also wait for a
/// transaction that changes them.
const INSERT: &str = "
INSERT INTO redrive.idempotency_records (
    tenant, operation, name, request_hash, state, execution, epoch, lease_until, retention_ms, started_at, updated_at,
    expires_at, response_status, response_headers, body_ref, body, resource_kind, resource_id
)
SELECT given.tenant, given.operation, given.name, given.request_hash, given.state, given.execution, given.epoch,
       given.lease_until, given.retention_ms, given.started_at, given.updated_at, given.expires_at,
       given.response_status, given.response_headers, given.body_ref, given.body, given.resource_kind,
       given.resource_id
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::bytea[], $5::text[], $6::uuid[], $7::bigint[], $8::bigint[], $9::bigint[],
    $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::text[], $15::text[], $16::bytea[], $17::text[],
    $18::text[]
) WITH ORDINALITY AS given (
    tenant, operation, name, request_hash, state, execution, epoch, lease_until, retention_ms, started_at, updated_at,
    expires_at, response_status, response_headers, body_ref, body, resource_kind, resource_id, place
)
WHERE (
    SELECT count(*) FROM (
        SELECT FROM redrive.idempotency_records AS known
        WHERE known.tenant = given.tenant AND known.operation = given.operation AND known.name = given.name
        LIMIT 1
    ) AS known
) = 0
ORDER BY given.place
ON CONFLICT (tenant, operation, name) DO NOTHING
RETURNING tenant, operation, name";

/// One transaction. `None` if a record was removed while it was being reserved.
async fn run(
    connection: &mut Connection,
    items: &[&EncodedReservation],
    keys: &Keys<'_>,
    locks: Locks,
) -> Result<Option<Vec<Option<Answer>>>, PostgresError> {
    let places: Vec<usize> = items.iter().map(|item| keys.find(item.key.text()).unwrap_or_default()).collect();
    let firsts = firsts(items, &places, keys.len());
    let inserted = insert(connection, keys, &firsts).await?;
    let mut slots = vec![Slot::Absent; keys.len()];
    let others: Vec<usize> = (0..keys.len()).filter(|place| !inserted[*place]).collect();
    if !others.is_empty() {
        let lock = if locks == Locks::Skip { LOCK_FREE_LIGHT } else { LOCK_LIGHT };
        let rows = connection.query(lock, &keys.columns(others.iter().copied()).arguments()).await?;
        fill(&mut slots, &others, &rows, DOING)?;
        if locks == Locks::Skip {
            fill_held(connection, keys, &mut slots, &others, (READ_LIGHT, DOING)).await?;
        }
        if others.iter().any(|place| matches!(slots[*place], Slot::Absent)) {
            connection.roll_back().await?;
            return Ok(None);
        }
    }
    let waiting = waiting(items, &places, &slots);
    let answers = items.iter().zip(places).map(|(item, place)| {
        let decide = |slot: &mut Slot| {
            let (answer, changed) = item.decide(slot.record()?);
            slot.change(changed);
            Ok(answer)
        };
        (!waiting[place]).then(|| decide(&mut slots[place]))
    });
    let answers: Vec<Option<Answer>> = answers.collect();
    // What was inserted is written again only if a later item has changed it.
    for (place, first) in firsts.iter().enumerate() {
        if inserted[place] && matches!((&slots[place], first), (Slot::Changed(now), Some(first)) if now == first) {
            slots[place] = Slot::Absent;
        }
    }
    commit(connection, keys, &slots, inserted.contains(&true)).await?;
    Ok(Some(answers))
}

/// For each key, whether its row is held and has to be changed. The other items for the key keep their order behind that.
fn waiting(items: &[&EncodedReservation], places: &[usize], slots: &[Slot]) -> Vec<bool> {
    let mut waiting = vec![false; slots.len()];
    for (item, place) in items.iter().zip(places) {
        if let Slot::Held(committed) = &slots[*place] {
            let is_changed = committed.record().is_ok_and(|record| item.judge(record).1.is_some());
            waiting[*place] |= is_changed || item.granted().is_some();
        }
    }
    waiting
}

/// For each key, the record that its first item makes if there is none.
fn firsts(items: &[&EncodedReservation], places: &[usize], count: usize) -> Vec<Option<Record>> {
    let mut firsts: Vec<Option<Record>> = vec![None; count];
    for (item, place) in items.iter().zip(places) {
        if firsts[*place].is_none() {
            firsts[*place] = idempotency::reserve(None, &item.ask, item.now).1;
        }
    }
    firsts
}

/// Opens the transaction and inserts; returns for each key whether it was inserted.
async fn insert(
    connection: &mut Connection,
    keys: &Keys<'_>,
    firsts: &[Option<Record>],
) -> Result<Vec<bool>, PostgresError> {
    let mut records = RecordArrays::default();
    for record in firsts.iter().flatten() {
        records.push(record).map_err(|error| PostgresError::corrupt("a record", error))?;
    }
    let columns = keys.columns((0..firsts.len()).filter(|place| firsts[*place].is_some()));
    let arguments: Vec<_> = columns.arguments().into_iter().chain(records.arguments()).collect();
    let mut inserted = vec![false; firsts.len()];
    for row in &connection.begin_with(INSERT, &arguments).await? {
        let mut cells = Cells::of(row);
        let key = TextKey { tenant: cells.get()?, operation: cells.get()?, name: cells.get()? };
        let place = keys.find(key).ok_or_else(|| cells.wrong("is of no record of this batch"))?;
        inserted[place] = true;
    }
    Ok(inserted)
}

#[cfg(test)]
mod tests {
    use redrive_core::RecordName;
    use redrive_core::TenantId;
    use redrive_core::idempotency::{ExecutionId, RecordKey, RequestHash};

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);
    const LEASE: Duration = Duration::from_secs(60);

    fn item(number: u128, hash: u8, now: Timestamp) -> EncodedReservation {
        let key = RecordKey {
            tenant: TenantId::default_tenant(),
            operation: "pay".parse().unwrap(),
            name: RecordName::try_new("a").unwrap(),
        };
        let ask = Reserve {
            request_hash: RequestHash([hash; 32]),
            execution: ExecutionId::from_u128(number),
            lease: LEASE,
            retention: LEASE,
            is_complete: false,
        };
        EncodedReservation::new(Reservation { key, ask }, now)
    }

    #[test]
    fn a_held_key_is_answered_by_what_is_committed() {
        let committed = item(1, 1, NOW).decide(None).1.unwrap();
        let (soon, late) = (NOW.after(LEASE / 2), NOW.after(LEASE));
        let again = |now: Timestamp| Reserved::InProgress { started_at: now, lease_until: now.after(ASK_AGAIN_AFTER) };
        let leased = Reserved::InProgress { started_at: NOW, lease_until: NOW.after(LEASE) };
        // the item, the committed record, the answer
        for (item, committed, expected) in [
            (item(2, 1, soon), None, again(soon)),
            (item(2, 1, soon), Some(&committed), leased),
            (item(2, 1, late), Some(&committed), again(late)),
            (item(2, 2, soon), Some(&committed), Reserved::OtherRequest),
            (item(2, 2, late), Some(&committed), Reserved::OtherRequest),
            (item(1, 1, soon), Some(&committed), again(soon)),
        ] {
            assert_eq!(item.held(committed), Some(expected), "{item:?}");
        }
    }

    #[test]
    fn while_the_outcome_of_an_earlier_run_is_unknown_a_held_key_is_not_taken_for_that_of_another_execution() {
        let before = item(1, 1, NOW).decide(None).1.unwrap();
        let late = NOW.after(LEASE);
        for committed in [None, Some(&before)] {
            let in_doubt = item(2, 1, late);
            let (granted, record) = in_doubt.decide(committed);
            assert_eq!(in_doubt.held(committed), None, "its own commit may hold the key: {committed:?}");
            assert_eq!(in_doubt.held(record.as_ref()), Some(granted), "its commit is there");
        }
    }
}

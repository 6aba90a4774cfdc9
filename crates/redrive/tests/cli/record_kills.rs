//! Idempotency records while `redrive serve` is killed with SIGKILL at random points: effects that do not share a transaction
//! with their record.
//!
//! Clients reserve a key, apply an effect to a ledger of their own, which outlives the service, and complete the record. Some die
//! after the effect. An owner applies its effect without looking, unless it is told of an execution before it: so an owner that
//! is wrongly not told makes a second effect, and the test fails.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::net::TcpStream;
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::world::Service;

const SEED: u64 = 17;
const CLIENTS: u64 = 6;
const KEYS: u64 = 24;
const KILLS: u64 = 6;
/// The calls between two kills, at most. Each client makes at least one call for each key, so every kill comes before they end.
const MOST_CALLS_BETWEEN: u64 = CLIENTS * KEYS / KILLS - 4;
/// How long anything may take before the test is given up.
const PATIENCE: Duration = Duration::from_secs(120);

/// A seeded generator (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn uuid(&mut self) -> String {
        let bits = format!("{:016x}{:016x}", self.next(), self.next());
        format!("{}-{}-4{}-8{}-{}", &bits[..8], &bits[8..12], &bits[13..16], &bits[17..20], &bits[20..])
    }
}

/// Where the service listens, and how many calls were begun.
#[derive(Default)]
struct Endpoint {
    state: Mutex<EndpointState>,
    changed: Condvar,
}

#[derive(Default)]
struct EndpointState {
    authority: Option<String>,
    generation: u64,
    calls: u64,
}

impl Endpoint {
    fn listens_at(&self, authority: Option<String>) {
        let mut state = self.state.lock().unwrap();
        state.generation += u64::from(authority.is_some());
        state.authority = authority;
        self.changed.notify_all();
    }

    fn wait_while(&self, is_so: impl Fn(&EndpointState) -> bool) -> std::sync::MutexGuard<'_, EndpointState> {
        let state = self.state.lock().unwrap();
        let (state, waited) = self.changed.wait_timeout_while(state, PATIENCE, |state| is_so(state)).unwrap();
        assert!(!waited.timed_out(), "the other side does not go on");
        state
    }

    /// Calls the service until it answers: again after each restart. Returns the answer, and whether earlier calls were lost.
    fn call(&self, path: &str, prefer: &str, document: &Value) -> (u16, String, Value, bool) {
        let (mut after, mut is_repeated) = (0, false);
        loop {
            let mut state = self.wait_while(|state| state.authority.is_none() || state.generation <= after);
            state.calls += 1;
            let (authority, generation) = (state.authority.clone().unwrap(), state.generation);
            drop(state);
            self.changed.notify_all();
            if let Some((status, head, answer)) = try_call(&authority, path, prefer, &document.to_string()) {
                return (status, head, answer, is_repeated);
            }
            (after, is_repeated) = (generation, true);
        }
    }
}

/// One call; `None` if the service was killed before its answer was complete.
fn try_call(authority: &str, path: &str, prefer: &str, body: &str) -> Option<(u16, String, Value)> {
    let mut stream = TcpStream::connect(authority).ok()?;
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nprefer: {prefer}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let answer = std::io::read_to_string(&mut stream).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, head.to_lowercase(), serde_json::from_str(body).ok()?))
}

/// What the clients know and do, which outlives every process of the service.
#[derive(Default)]
struct Ledger {
    /// The executions that asked for each key.
    asked: BTreeMap<u64, BTreeSet<String>>,
    /// The execution of each key and epoch.
    owners: BTreeMap<(u64, u64), String>,
    /// The effects on each key: the epochs of their owners.
    effects: BTreeMap<u64, Vec<u64>>,
    /// The highest epoch that has looked or applied: a lower one is refused.
    highest: BTreeMap<u64, u64>,
    /// The responses whose completion was acknowledged.
    completed: BTreeMap<u64, Value>,
    /// Owners that were told of an execution before them and found its effect.
    duplicates_detected: u64,
}

impl Ledger {
    /// The highest epoch of a key that a client was granted.
    fn last_epoch(&self, key: u64) -> u64 {
        self.owners.range((key, 0)..=(key, u64::MAX)).next_back().map_or(0, |((_, epoch), _)| *epoch)
    }

    /// Notes a granted reservation. `before` was the highest epoch when it was asked for.
    fn granted(&mut self, key: u64, execution: &str, before: u64, answer: &Value, is_repeated: bool) -> u64 {
        let epoch = answer["epoch"].as_u64().unwrap();
        assert_eq!(answer["executionId"], execution, "{key}: {answer}");
        let owner = self.owners.entry((key, epoch)).or_insert_with(|| execution.to_owned());
        assert_eq!(owner, execution, "two executions hold key {key} with epoch {epoch}");
        assert!(epoch > before, "key {key}: epoch {epoch} came after epoch {before}");
        let previous = &answer["previous"];
        if epoch > 1 && !is_repeated {
            assert_eq!(previous["outcome"], "unknown", "key {key}, epoch {epoch}: {answer}");
            assert_eq!(previous["epoch"], epoch - 1, "key {key}: {answer}");
            let named = previous["executionId"].as_str().unwrap();
            assert!(self.asked[&key].contains(named), "key {key}: {answer}");
            if let Some(known) = self.owners.get(&(key, epoch - 1)) {
                assert_eq!(known, named, "key {key}: {answer}");
            }
        }
        assert!(epoch > 1 || previous.is_null(), "key {key}: the first owner has none before it: {answer}");
        epoch
    }

    /// Applies the effect of an owner. One that was told of an execution before it looks first.
    fn apply(&mut self, key: u64, epoch: u64) {
        let highest = self.highest.entry(key).or_default();
        if epoch < *highest {
            return;
        }
        *highest = epoch;
        let effects = self.effects.entry(key).or_default();
        match epoch > 1 && !effects.is_empty() {
            true => self.duplicates_detected += 1,
            false => effects.push(epoch),
        }
    }
}

/// One client, which asks for every key until it has its response.
fn client(number: u64, endpoint: &Endpoint, ledger: &Mutex<Ledger>) {
    let mut random = Random(SEED ^ (number << 32));
    let first = random.below(KEYS);
    for at in 0..KEYS {
        let key = (first + at) % KEYS;
        while !execute(key, &mut random, endpoint, ledger) {}
    }
}

/// One execution. Says whether the client has the response.
fn execute(key: u64, random: &mut Random, endpoint: &Endpoint, ledger: &Mutex<Ledger>) -> bool {
    let path = format!("/idempotency-records/create-payment/order-{key}");
    let execution = random.uuid();
    let (before, completed) = {
        let mut ledger = ledger.lock().unwrap();
        ledger.asked.entry(key).or_default().insert(execution.clone());
        (ledger.last_epoch(key), ledger.completed.get(&key).cloned())
    };
    let reserve = json!({ "requestHash": format!("{key:064x}"), "executionId": execution, "leaseMs": 1_000 });
    let (status, head, answer, is_repeated) = endpoint.call(&format!("{path}/reserve"), "wait=5", &reserve);
    let epoch = match status {
        201 => ledger.lock().unwrap().granted(key, &execution, before, &answer, is_repeated),
        200 => {
            assert!(head.contains("idempotent-replayed: true"), "{head}");
            let response = &answer["response"];
            let known = ledger.lock().unwrap().completed.entry(key).or_insert_with(|| response.clone()).clone();
            assert_eq!(*response, known, "key {key} has another response");
            return true;
        }
        409 => {
            assert_eq!(answer["type"], "/problems/idempotency-in-progress", "{answer}");
            return false;
        }
        _ => panic!("{status} {answer}"),
    };
    assert_eq!(completed, None, "key {key} was completed, and epoch {epoch} was granted afterwards");
    ledger.lock().unwrap().apply(key, epoch);
    // A client that dies here leaves its effect without a result.
    if random.below(4) == 0 {
        return false;
    }
    let is_stale = ledger.lock().unwrap().last_epoch(key) > epoch;
    let response = json!({ "status": 201, "bodyText": format!("{key} by {execution}") });
    let complete = json!({ "executionId": execution, "epoch": epoch, "response": response });
    let (status, _, answer, _) = endpoint.call(&format!("{path}/complete"), "wait=0", &complete);
    match status {
        200 => assert!(!is_stale, "key {key}: epoch {epoch} completed after a later one was granted"),
        409 => assert_eq!(answer["type"], "/problems/fenced", "{answer}"),
        _ => panic!("{status} {answer}"),
    }
    // The next call asks for the response, as a client that got no answer does.
    if status == 200 {
        note_completed(key, &path, &response, endpoint, ledger);
    }
    status == 200
}

/// Reads what an acknowledged completion stored, and notes it: every later answer must be the same.
fn note_completed(key: u64, path: &str, response: &Value, endpoint: &Endpoint, ledger: &Mutex<Ledger>) {
    let reserve = json!({ "requestHash": format!("{key:064x}") });
    let (status, _, answer, _) = endpoint.call(&format!("{path}/reserve"), "wait=0", &reserve);
    assert_eq!(status, 200, "key {key} was completed: {answer}");
    let stored = &answer["response"];
    assert_eq!(stored["bodyBytes"], response["bodyText"].as_str().unwrap().len(), "{answer}");
    let known = ledger.lock().unwrap().completed.entry(key).or_insert_with(|| stored.clone()).clone();
    assert_eq!(*stored, known, "key {key} has another response");
}

#[test]
fn no_key_has_two_owners_and_no_effect_is_repeated_unnoticed_while_the_service_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let (endpoint, ledger) = (&Endpoint::default(), &Mutex::<Ledger>::default());
    let mut random = Random(SEED);
    let mut service = Service::start_in(directory.path(), &[]);
    endpoint.listens_at(Some(service.authority().to_owned()));
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|n| scope.spawn(move || client(n, endpoint, ledger))).collect();
        let mut kill_at = 0;
        for _ in 0..KILLS {
            kill_at += 1 + random.below(MOST_CALLS_BETWEEN);
            drop(endpoint.wait_while(|state| state.calls < kill_at));
            service.program.signal("KILL");
            endpoint.listens_at(None);
            drop(service);
            service = Service::start_in(directory.path(), &[]);
            endpoint.listens_at(Some(service.authority().to_owned()));
        }
        clients.into_iter().for_each(|client| client.join().unwrap());
    });
    let ledger = ledger.lock().unwrap();
    assert_eq!(ledger.completed.len() as u64, KEYS);
    for (key, effects) in &ledger.effects {
        assert_eq!(effects.len(), 1, "key {key} has effects of the epochs {effects:?}");
    }
    assert!(ledger.duplicates_detected > 0, "no client died between effect and result");
}

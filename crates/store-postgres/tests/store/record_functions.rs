//! `redrive.reserve` and its siblings: idempotency records in the caller's own transaction.

use std::collections::BTreeMap;
use std::time::Duration;

use redrive_core::idempotency::request_hash::HashedRequest;
use redrive_core::idempotency::{
    self, Change, Changed, Completion, Epoch, ExecutionId, Owner, Record, RecordKey, RequestHash, Reserve, Reserved,
    Resource, Response, State,
};
use redrive_core::{RecordName, Status, TenantId, Timestamp};
use redrive_store::Store;
use redrive_store::conformance::samples::at;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, GenericClient};

use crate::support::{Opened, Random, open, plain};

const LEASE: Duration = Duration::from_secs(60);
const RETENTION: Duration = Duration::from_secs(3_600);

async fn world() -> (Opened, Client) {
    let opened = open("one").await;
    let client = plain(opened.database.url()).await;
    (opened, client)
}

fn key(name: &str) -> RecordKey {
    let (operation, name) = ("pay".parse().unwrap(), RecordName::try_new(name).unwrap());
    RecordKey { tenant: TenantId::default_tenant(), operation, name }
}

/// The answer of a reservation: its outcome, its epoch and the state of the execution before.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    outcome: String,
    epoch: Option<i64>,
    lease_until: Option<i64>,
    previous: Option<String>,
    status: Option<i32>,
    body: Option<Vec<u8>>,
}

/// What the SQL function should answer for this decision.
fn expected(answer: &Reserved) -> Told {
    let plain = |outcome: &str| Told {
        outcome: outcome.to_owned(),
        epoch: None,
        lease_until: None,
        previous: None,
        status: None,
        body: None,
    };
    let millis = |at: &Timestamp| Some(at.as_millis().cast_signed());
    match answer {
        Reserved::Granted { epoch, lease_until, previous } => Told {
            epoch: Some(epoch.0.cast_signed()),
            lease_until: millis(lease_until),
            previous: previous.map(|previous| previous.state.name().to_owned()),
            ..plain("reserved")
        },
        Reserved::InProgress { lease_until, .. } => Told { lease_until: millis(lease_until), ..plain("in_progress") },
        Reserved::Ended(record) => Told {
            epoch: Some(record.owner.epoch.0.cast_signed()),
            status: record.completion.response.as_ref().map(|response| response.status.into()),
            body: record.completion.response.as_ref().and_then(|response| response.body.inline()).map(|b| b.to_vec()),
            ..plain(if record.state == State::Succeeded { "replay" } else { "failed" })
        },
        Reserved::OtherRequest => plain("other_request"),
    }
}

async fn reserve_in_sql(client: &impl GenericClient, name: &str, ask: &Reserve, now: Timestamp) -> Told {
    let sql = "
        SELECT outcome, epoch, floor(extract(epoch FROM lease_until) * 1000)::bigint, previous_state, response_status,
               response_body
        FROM redrive.reserve_at($1, 'default', 'pay', $2, $3, $4, $5, $6::text::uuid, $7)";
    let millis = |duration: Duration| i64::try_from(duration.as_millis()).unwrap();
    let lease = if ask.is_complete { 0 } else { millis(ask.lease) };
    let row = client
        .query_one(
            sql,
            &[
                &now.as_millis().cast_signed(),
                &name,
                &&ask.request_hash.0[..],
                &lease,
                &millis(ask.retention),
                &ask.execution.to_string(),
                &ask.is_complete,
            ],
        )
        .await
        .unwrap();
    Told {
        outcome: row.get(0),
        epoch: row.get(1),
        lease_until: row.get(2),
        previous: row.get(3),
        status: row.get(4),
        body: row.get(5),
    }
}

async fn change_in_sql(
    client: &impl GenericClient,
    name: &str,
    owner: Owner,
    change: &Change,
    now: Timestamp,
) -> String {
    let sql = "
        SELECT redrive.change_record_at(
            $1, 'default', 'pay', $2, $3::text::uuid, $4, $5, $6, $7::text::jsonb, $8, $9, $10
        )";
    let completion = match change {
        Change::Complete(completion) | Change::FailFinal(completion) => completion.clone(),
        _ => Completion::default(),
    };
    let response = completion.response.as_ref();
    let headers = response.map(|response| {
        let fields: Vec<String> =
            response.headers.iter().map(|(name, value)| format!("[{name:?},{value:?}]")).collect();
        format!("[{}]", fields.join(","))
    });
    let body = response.and_then(|response| response.body.inline()).map(|bytes| bytes.to_vec());
    let row = client
        .query_one(
            sql,
            &[
                &now.as_millis().cast_signed(),
                &name,
                &owner.execution.to_string(),
                &owner.epoch.0.cast_signed(),
                &change.state().name(),
                &response.map(|response| i32::from(response.status)),
                &headers,
                &body,
                &completion.resource.as_ref().map(|resource| resource.kind().to_owned()),
                &completion.resource.as_ref().map(|resource| resource.id().to_owned()),
            ],
        )
        .await
        .unwrap();
    row.get(0)
}

fn response(random: &mut Random) -> Completion {
    let headers = random.pick(&[&[][..], &[("x-a", "1")][..]]).iter();
    let response = Response {
        status: 200 + random.below(2) as u16,
        headers: headers.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        body: random.pick(&["", "done"]).into(),
    };
    Completion {
        response: Some(response).filter(|_| random.chance(80)),
        resource: random.chance(30).then(|| Resource::try_new("payment", "pay_1").unwrap()),
    }
}

fn some_change(random: &mut Random) -> Change {
    match random.below(8) {
        0 | 1 => Change::Release,
        2 | 3 => Change::FailRetryable,
        4 => Change::FailFinal(response(random)),
        _ => Change::Complete(response(random)),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn random_sequences_of_the_sql_functions_end_as_the_pure_functions_say() {
    let (opened, client) = world().await;
    let mut random = Random(11);
    let mut model: BTreeMap<&str, Record> = BTreeMap::new();
    let mut owners: Vec<(&str, Owner)> = Vec::new();
    let mut now = at(0);
    let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
    for step in 0..3_000_u128 {
        now = match random.below(20) {
            0 => now.after(LEASE),
            1 if random.chance(20) => now.after(RETENTION),
            2 => now.before(Duration::from_millis(random.below(3_000))),
            // Exactly when a lease or a retention ends, and just before.
            3 => {
                let ends = model.values().flat_map(|record| [record.lease_until, record.expires_at]);
                let ends: Vec<_> = ends.filter(|end| *end > now).chain([now]).collect();
                random.pick(&ends).before(Duration::from_millis(random.below(2)))
            }
            _ => now.after(Duration::from_millis(random.below(4_000))),
        };
        let told = if random.chance(55) || owners.is_empty() {
            let name = random.pick(&["a", "b", "c"]);
            let own = owners.iter().rev().find(|(known, _)| *known == name && random.chance(20));
            let ask = Reserve {
                request_hash: RequestHash([1 + u8::from(random.chance(10)); 32]),
                execution: own.map_or(ExecutionId::from_u128(step + 1), |(_, owner)| owner.execution),
                lease: LEASE,
                retention: RETENTION,
                is_complete: random.chance(10),
            };
            let (answer, changed) = idempotency::reserve(model.get(name), &ask, now);
            let told = reserve_in_sql(&client, name, &ask, now).await;
            assert_eq!(told, expected(&answer), "step {step}, {ask:?}, {:?}", model.get(name));
            if let Reserved::Granted { epoch, .. } = answer {
                owners.push((name, Owner { execution: ask.execution, epoch }));
            }
            model.extend(changed.map(|record| (name, record)));
            told.outcome
        } else {
            let place = owners.len() - 1 - random.below(owners.len().min(5) as u64) as usize;
            let (name, mut owner) = owners[place];
            owner.epoch = if random.chance(5) { owner.epoch.next() } else { owner.epoch };
            let change = some_change(&mut random);
            let (answer, changed) = idempotency::change(model.get(name), owner, &change, now);
            let expected = match answer {
                Changed::Done(_) => "done",
                Changed::Fenced => "fenced",
                Changed::AlreadyEnded(_) => "ended",
                Changed::Absent => "absent",
            };
            let told = change_in_sql(&client, name, owner, &change, now).await;
            assert_eq!(told, expected, "step {step}, {owner:?}, {change:?}, {:?}", model.get(name));
            model.extend(changed.map(|record| (name, record)));
            told
        };
        *outcomes.entry(told).or_default() += 1;
        for (name, record) in &model {
            let stored = opened.store.records().read(key(name), now).await.unwrap();
            assert_eq!(stored.as_ref(), Some(record).filter(|record| record.is_present(now)), "step {step}, {name}");
        }
    }
    assert_eq!(outcomes.len(), 9, "every answer was met: {outcomes:?}");
    assert!(outcomes.values().all(|count| *count >= 10), "{outcomes:?}");
}

/// Reserves `order-1` and returns the row.
async fn reserve(client: &impl tokio_postgres::GenericClient) -> tokio_postgres::Row {
    let sql = "
        SELECT outcome, execution_id::text, epoch, response_status, response_headers::text, response_body, resource_type,
               resource_id
        FROM redrive.reserve('pay', 'order-1', redrive.request_hash('POST', '/pay', 'application/json', '{}'))";
    client.query_one(sql, &[]).await.unwrap()
}

const COMPLETE: &str = "
SELECT redrive.complete(
    'pay', 'order-1', $1::text::uuid, $2, response_status => 201, response_headers => '{\"X-A\": \"1\"}',
    response_body => 'paid', resource_type => 'payment', resource_id => 'pay_1'
)";

#[tokio::test(flavor = "multi_thread")]
async fn the_business_write_the_record_and_the_task_commit_together_or_not_at_all() {
    let (opened, mut client) = world().await;
    client.batch_execute("CREATE TABLE payments (id int)").await.unwrap();
    for commits in [false, true] {
        let transaction = client.transaction().await.unwrap();
        let row = reserve(&transaction).await;
        assert_eq!(row.get::<_, &str>(0), "reserved");
        let (execution, epoch): (String, i64) = (row.get(1), row.get(2));
        transaction.batch_execute("INSERT INTO payments VALUES (1)").await.unwrap();
        let enqueue = "SELECT redrive.enqueue('http://a.b/', idempotency_key => 'order-1')";
        transaction.batch_execute(enqueue).await.unwrap();
        transaction.query_one(COMPLETE, &[&execution, &epoch]).await.unwrap();
        let before = opened.store.records().read(key("order-1"), at(0)).await.unwrap();
        assert_eq!(before, None, "it is not visible before the commit");
        if commits {
            transaction.commit().await.unwrap()
        } else {
            transaction.rollback().await.unwrap()
        }
        let rows = "SELECT (SELECT count(*) FROM payments), (SELECT count(*) FROM redrive.idempotency_records)";
        let row = client.query_one(rows, &[]).await.unwrap();
        let counted = opened.store.reads().counts(TenantId::default_tenant()).await.unwrap();
        let pending = counted.get(&Status::Pending).copied().unwrap_or(0);
        let one = i64::from(commits);
        assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1), pending), (one, one, one.cast_unsigned()));
    }
    let row = reserve(&client).await;
    assert_eq!((row.get::<_, &str>(0), row.get::<_, i32>(3)), ("replay", 201));
    assert_eq!((row.get::<_, &str>(4), row.get::<_, &[u8]>(5)), (r#"[["X-A", "1"]]"#, &b"paid"[..]));
    assert_eq!((row.get::<_, &str>(6), row.get::<_, &str>(7)), ("payment", "pay_1"));
    // The API finds the same record.
    let now = opened.store.shared().unwrap().time().await.unwrap();
    let request = HashedRequest {
        method: "POST",
        path: "/pay",
        content_type: "application/json",
        body: b"{}",
        ..HashedRequest::default()
    };
    let ask = Reserve {
        request_hash: RequestHash::of(&request),
        execution: ExecutionId::from_u128(1),
        lease: LEASE,
        retention: RETENTION,
        is_complete: false,
    };
    let Reserved::Ended(record) = opened.store.records().reserve_one(key("order-1"), ask, now).await.unwrap() else {
        panic!("it has ended")
    };
    let response = record.completion.response.unwrap();
    assert_eq!((response.status, response.headers), (201, vec![("X-A".to_owned(), "1".to_owned())]));
    assert_eq!(response.body, "paid".into());
}

/// Waits until a session waits for a lock in this database.
async fn until_a_session_waits(opened: &Opened) {
    let client = plain(opened.database.url()).await;
    let waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    while client.query(waiting, &[]).await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_transaction_with_the_same_event_waits_for_the_first_and_then_tells_the_truth() {
    let (opened, mut client) = world().await;
    for (event, commits) in [("evt-1", true), ("evt-2", false)] {
        let first = client.transaction().await.unwrap();
        let seen = format!("SELECT redrive.seen('billing', '{event}')");
        assert!(!first.query_one(&seen, &[]).await.unwrap().get::<_, bool>(0));
        let second = plain(opened.database.url()).await;
        let asking = tokio::spawn({
            let seen = seen.clone();
            async move { second.query_one(&seen, &[]).await.unwrap().get::<_, bool>(0) }
        });
        until_a_session_waits(&opened).await;
        if commits {
            first.commit().await.unwrap()
        } else {
            first.rollback().await.unwrap()
        }
        assert_eq!(asking.await.unwrap(), commits, "{event}");
        assert!(client.query_one(&seen, &[]).await.unwrap().get::<_, bool>(0), "seen by one of them");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_was_not_granted_a_record_holds_no_lock_on_it() {
    let (opened, mut client) = world().await;
    let owner = plain(opened.database.url()).await;
    let ask = Reserve {
        request_hash: RequestHash([1; 32]),
        execution: ExecutionId::from_u128(1),
        lease: LEASE,
        retention: RETENTION,
        is_complete: false,
    };
    let end = |name| format!("UPDATE redrive.idempotency_records SET state = '{name}'");
    reserve_in_sql(&owner, "a", &ask, at(0)).await;
    // the stored state, the hash that is asked for, what is answered
    for (state, hash, outcome) in [
        ("IN_PROGRESS", 1, "in_progress"),
        ("IN_PROGRESS", 2, "other_request"),
        ("SUCCEEDED", 1, "replay"),
        ("SUCCEEDED", 2, "other_request"),
        ("FAILED_FINAL", 1, "failed"),
    ] {
        owner.batch_execute(&end(state)).await.unwrap();
        let open = client.transaction().await.unwrap();
        let asked =
            Reserve { execution: ExecutionId::from_u128(2), request_hash: RequestHash([hash; 32]), ..ask.clone() };
        assert_eq!(reserve_in_sql(&open, "a", &asked, at(1)).await.outcome, outcome);
        let lock = "SELECT FROM redrive.idempotency_records FOR UPDATE NOWAIT";
        assert!(owner.query(lock, &[]).await.is_ok(), "{outcome} keeps the owner from its record");
        open.rollback().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_ends_while_another_transaction_waits_to_take_it_over_is_replayed() {
    let (opened, mut client) = world().await;
    let ask = Reserve {
        request_hash: RequestHash([1; 32]),
        execution: ExecutionId::from_u128(1),
        lease: LEASE,
        retention: RETENTION,
        is_complete: false,
    };
    reserve_in_sql(&client, "a", &ask, at(0)).await;
    let ending = client.transaction().await.unwrap();
    // Locked and not changed, so that the other transaction still reads a lease that is over.
    ending.query("SELECT FROM redrive.idempotency_records FOR UPDATE", &[]).await.unwrap();
    let second = plain(opened.database.url()).await;
    let asking = tokio::spawn(async move {
        let asked = Reserve { execution: ExecutionId::from_u128(2), ..ask };
        reserve_in_sql(&second, "a", &asked, at(0).after(LEASE)).await
    });
    until_a_session_waits(&opened).await;
    let owner = Owner { execution: ExecutionId::from_u128(1), epoch: Epoch(1) };
    let complete = Change::Complete(Completion::default());
    assert_eq!(change_in_sql(&ending, "a", owner, &complete, at(1)).await, "done");
    ending.commit().await.unwrap();
    assert_eq!(asking.await.unwrap().outcome, "replay");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_was_begun_over_the_api_is_not_taken_for_new_or_seen() {
    let (opened, client) = world().await;
    let event = RecordKey { operation: "inbox/billing".parse().unwrap(), ..key("evt-1") };
    let now = opened.store.shared().unwrap().time().await.unwrap();
    let ask = Reserve {
        request_hash: RequestHash([0; 32]),
        execution: ExecutionId::from_u128(1),
        lease: LEASE,
        retention: RETENTION,
        is_complete: false,
    };
    let store = opened.store.records();
    store.reserve_one(event.clone(), ask, now).await.unwrap();
    let seen = "SELECT redrive.seen('billing', 'evt-1')";
    let refused = client.query_one(seen, &[]).await.unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "RD006");
    let owner = Owner { execution: ExecutionId::from_u128(1), epoch: Epoch(1) };
    store.change_one(event, owner, Change::Complete(Completion::default()), now).await.unwrap();
    assert!(client.query_one(seen, &[]).await.unwrap().get::<_, bool>(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_execution_that_is_not_the_owner_is_refused_with_its_own_sqlstate() {
    let (_opened, client) = world().await;
    let row = reserve(&client).await;
    let (execution, epoch): (String, i64) = (row.get(1), row.get(2));
    let call = async |function: &str, execution: &str, epoch: i64, rest: &str| {
        let sql = format!("SELECT redrive.{function}('pay', 'order-1', '{execution}', {epoch}{rest})");
        let refused = client.query_one(&sql, &[]).await.map(drop);
        refused.map_err(|error| error.code().unwrap().code().to_owned())
    };
    let refused = |state: &str| Err(state.to_owned());
    let stranger = "00000000-0000-0000-0000-000000000009";
    assert_eq!(call("complete", stranger, epoch, "").await, refused("RD003"));
    assert_eq!(call("release", &execution, epoch + 1, "").await, refused("RD003"));
    assert_eq!(call("fail", &execution, epoch, ", true").await, Ok(()));
    assert_eq!(call("fail", &execution, epoch, ", true").await, Ok(()), "the same again");
    assert_eq!(call("complete", &execution, epoch, "").await, refused("RD005"));
    let again = reserve(&client).await;
    let (execution, epoch): (String, i64) = (again.get(1), again.get(2));
    assert_eq!(epoch, 2);
    assert_eq!(call("release", &execution, epoch, "").await, Ok(()));
    assert_eq!(call("complete", stranger, 1, "").await, refused("RD003"), "a newer owner has given it up");
    assert_eq!(call("complete", stranger, 2, "").await, refused("RD004"));
    assert_eq!(call("fail", &execution, epoch, ", false").await, refused("RD005"));
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_arguments_are_refused_with_a_message() {
    let (_opened, client) = world().await;
    let hash = "sha256('')";
    let own = "'00000000-0000-0000-0000-000000000001', 1";
    for (call, told) in [
        (format!("reserve('', 'k', {hash})"), "redrive.reserve: operation must be 1 to 100 letters"),
        (format!("reserve('a/b', 'k', {hash})"), "operation must be 1 to 100 letters"),
        (format!("reserve('inbox/a', 'k', {hash})"), "operation must not be an inbox: use redrive.seen"),
        (format!("reserve('submit-task', 'k', {hash})"), "operation must not be submit-task: use redrive.enqueue"),
        (format!("reserve('a', 'k k', {hash})"), "key must be 1 to 64 visible ASCII characters"),
        (format!("reserve('a', repeat('k', 65), {hash})"), "key must be 1 to 64 visible ASCII characters"),
        (format!("reserve('a', 'k', {hash}, tenant => '')"), "tenant must be 1 to 64 letters"),
        ("reserve('a', 'k', 'x')".to_owned(), "request_hash must be 32 bytes"),
        (format!("reserve('a', 'k', {hash}, lease => '0')"), "lease must be from 1 second to 24:00:00"),
        (format!("reserve('a', 'k', {hash}, lease => '25 hours')"), "lease must be from 1 second to 24:00:00"),
        (format!("reserve('a', 'k', {hash}, retention => '91 days')"), "retention must be from 1 second to 90 days"),
        (format!("reserve('a', 'k', {hash}, execution_id => NULL)"), "execution_id must be a UUID"),
        (
            format!("complete('a', 'k', {own}, response_status => 99)"),
            "response_status must be from 100 to 599, got 99",
        ),
        (format!("complete('a', 'k', {own}, response_body => 'x')"), "need a response_status"),
        (
            format!("complete('a', 'k', {own}, 200, response_body => convert_to(repeat('x', 1048577), 'UTF8'))"),
            "response_body must be at most 1048576 bytes, got 1048577",
        ),
        (format!("complete('a', 'k', {own}, 200, '\"x\"')"), "response_headers must be a JSON object of texts"),
        (format!("complete('a', 'k', {own}, 200, '{{\"a b\": \"x\"}}')"), "response_headers must be header names"),
        (
            format!("complete('a', 'k', {own}, resource_id => 'x')"),
            "resource_type and resource_id must be given together",
        ),
        ("complete('a', 'k', NULL, 1)".to_owned(), "execution_id and epoch must be those of the reservation"),
        (format!("fail('a', 'k', {own}, true, 500)"), "redrive.fail: a retryable failure has no result to keep"),
        (format!("fail('a', 'k', {own}, NULL)"), "retryable must be true or false"),
        ("seen('a b', 'e')".to_owned(), "redrive.seen: consumer must be 1 to 100 letters"),
        ("seen('a', '')".to_owned(), "event_id must be 1 to 200 visible ASCII characters"),
        ("request_hash(NULL, '/')".to_owned(), "method and path must be given"),
    ] {
        let refused = client.query_one(&format!("SELECT redrive.{call}"), &[]).await.unwrap_err();
        let refused = refused.as_db_error().unwrap();
        assert!(refused.message().contains(told), "{call}: {}", refused.message());
        assert_eq!(*refused.code(), SqlState::INVALID_PARAMETER_VALUE, "{call}");
    }
    let rows = client.query("SELECT FROM redrive.idempotency_records", &[]).await.unwrap();
    assert!(rows.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hash_of_a_request_is_that_of_the_api() {
    let (_opened, client) = world().await;
    for (method, path, content_type, body) in [
        ("POST", "/payments?dry=0", "application/json", &b"{\"amount\": 100.00}"[..]),
        ("put", "/ü", " Application/JSON ; charset=utf-8", b"\x00\xff"),
        ("GET", "", "", b""),
        ("GET", "", ";", b""),
    ] {
        let request = HashedRequest { method, path, content_type, body, ..HashedRequest::default() };
        let sql = "SELECT redrive.request_hash($1, $2, $3, $4)";
        let row = client.query_one(sql, &[&method, &path, &content_type, &body]).await.unwrap();
        assert_eq!(row.get::<_, &[u8]>(0), RequestHash::of(&request).0, "{request:?}");
    }
    let absent = "SELECT redrive.request_hash('GET', '') = redrive.request_hash('GET', '', '', '')";
    assert!(client.query_one(absent, &[]).await.unwrap().get::<_, bool>(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_use_the_schema_may_reserve_and_neither_read_nor_choose_the_time() {
    let (opened, client) = world().await;
    let role = format!("app_of_{}", opened.database.name());
    client
        .batch_execute(&format!("CREATE ROLE {role}; GRANT USAGE ON SCHEMA redrive TO {role}; SET ROLE {role}"))
        .await
        .unwrap();
    let row = reserve(&client).await;
    let (execution, epoch): (String, i64) = (row.get(1), row.get(2));
    client.query_one(COMPLETE, &[&execution, &epoch]).await.unwrap();
    assert!(!client.query_one("SELECT redrive.seen('billing', 'e')", &[]).await.unwrap().get::<_, bool>(0));
    let mut refused = Vec::new();
    for statement in [
        "SELECT FROM redrive.idempotency_records",
        "SELECT redrive.reserve_at(0, 'default', 'pay', 'k', sha256(''), 1, 1, gen_random_uuid(), false)",
        "SELECT redrive.change_record_at(0, 'default', 'pay', 'k', gen_random_uuid(), 1, 'RELEASED', NULL, NULL, NULL, NULL, NULL)",
    ] {
        refused.push(client.query(statement, &[]).await.unwrap_err());
    }
    client.batch_execute(&format!("RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}")).await.unwrap();
    for error in refused {
        assert_eq!(error.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE));
    }
}

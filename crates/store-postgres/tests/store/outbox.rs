//! `redrive.enqueue`: submits a task in the caller's own transaction.

use crate::support::{Opened, node, open, plain, until_listening};
use redrive_core::request::{Fingerprint, FingerprintVersion};
use redrive_core::trace::CallerContext;
use redrive_core::{Class, IdempotencyKey, PolicyId, Status, TenantId, policy};
use redrive_store::{Expected, LaneDue, News, Store};
use redrive_store_postgres::{Options, PostgresStore};
use redrive_testbed::Postgres;
use tokio_postgres::error::SqlState;

/// A store with the policy that everything uses, and a client's own connection.
async fn world() -> (Opened, tokio_postgres::Client) {
    let opened = open("one").await;
    let (tenant, id) = (TenantId::default_tenant(), PolicyId::default_policy());
    let now = redrive_core::Timestamp::from_millis(0);
    opened.store.policies().put(tenant, id, policy::Spec::default(), Expected::Anything, now).await.unwrap();
    let client = plain(opened.database.url()).await;
    (opened, client)
}

async fn pending(opened: &Opened) -> u64 {
    let counts = opened.store.reads().counts(TenantId::default_tenant()).await.unwrap();
    counts.get(&Status::Pending).copied().unwrap_or(0)
}

#[tokio::test]
async fn the_task_exists_if_and_only_if_the_transaction_commits() {
    let (opened, mut client) = world().await;
    client.batch_execute("CREATE TABLE orders (id int PRIMARY KEY)").await.unwrap();
    for (order, commits) in [(1, true), (2, false)] {
        let transaction = client.transaction().await.unwrap();
        transaction.execute("INSERT INTO orders VALUES ($1)", &[&order]).await.unwrap();
        let enqueue = "SELECT redrive.enqueue(target_url => 'https://example.com/orders', body => '{\"a\": 1}'::jsonb)";
        transaction.query_one(enqueue, &[]).await.unwrap();
        assert_eq!(pending(&opened).await, u64::from(order == 2), "it is not visible before the commit");
        if commits { transaction.commit().await.unwrap() } else { transaction.rollback().await.unwrap() }
    }
    assert_eq!(pending(&opened).await, 1);
}

#[tokio::test]
async fn what_is_enqueued_is_what_will_be_sent() {
    let (opened, client) = world().await;
    let enqueue = "SELECT redrive.enqueue(
        target_url => 'https://User@Example.COM:443/hooks?x=1', method => 'PUT', body => 'hello',
        headers => '{\"X-One\": \"1\", \"X-Two\": [\"a\", \"b\"]}', idempotency_key => 'order-1',
        labels => '{\"order\": \"1\"}', correlation_id => 'checkout-1')::text";
    let id: String = client.query_one(enqueue, &[]).await.unwrap().get(0);
    let detail = opened.store.reads().task(TenantId::default_tenant(), id.parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(detail.task.lane.dependency.as_str(), "https://example.com");
    assert_eq!((detail.task.idempotency_key.as_str(), detail.task.status), ("order-1", Status::Pending));
    assert_eq!(detail.task.correlation().to_string(), "checkout-1");
    assert_eq!((detail.task.max_attempts, detail.task.policy.version, detail.task.run), (6, 1, 1));
    assert_eq!(detail.task.deadline_at.since(detail.task.created_at).as_secs(), 86_400);
    let request = &detail.request;
    assert_eq!((request.method.as_str(), &request.body), ("PUT", &"hello".into()));
    assert_eq!(request.target_url, "https://User@Example.COM:443/hooks?x=1");
    let headers: Vec<_> = request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let expected = [("X-One", "1"), ("X-Two", "a"), ("X-Two", "b"), ("content-type", "text/plain; charset=utf-8")];
    assert_eq!(headers, expected);
    assert_eq!(request.labels.get("order").map(String::as_str), Some("1"));
}

#[tokio::test]
async fn the_callers_trace_is_read_in_sql_as_it_is_in_the_program() {
    let (opened, client) = world().await;
    let (trace, span) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let valid = format!("00-{trace}-{span}-01");
    let mut values: Vec<Vec<String>> = ["", "00", "x"].map(|text| vec![text.to_owned()]).into();
    values.extend([vec![], vec![valid.clone(), valid.clone()], vec![format!(" {valid}\t")]]);
    values.push(vec![format!("00-{}-{span}-01", "0".repeat(32))]);
    values.push(vec![format!("00-{trace}-{}-01", "0".repeat(16))]);
    values.push(vec![valid.to_uppercase()]);
    for version in ["00", "01", "cc", "ff", "0G", "Cc", "0"] {
        for flags in ["00", "01", "02", "03", "0e", "ff", "a1", "0A", "1", "011"] {
            for rest in ["", "-", "-more", "more", ",x"] {
                values.push(vec![format!("{version}-{trace}-{span}-{flags}{rest}")]);
            }
        }
    }
    for values in values {
        let fields: Vec<(&str, &str)> = values.iter().map(|value| ("TraceParent", value.as_str())).collect();
        let expected = CallerContext::of(fields.iter().copied()).parent.map(|parent| parent.to_string());
        let fields = serde_json::to_string(&fields).unwrap();
        let row = client.query_one("SELECT redrive.trace_parent($1::text::jsonb)", &[&fields]).await.unwrap();
        assert_eq!(row.get::<_, Option<String>>(0), expected, "{values:?}");
    }

    let enqueue = format!(
        "SELECT redrive.enqueue(target_url => 'http://a.b/', idempotency_key => 'k', headers => '{{\"traceparent\": \"{valid}\"}}')::text"
    );
    let id: String = client.query_one(&enqueue, &[]).await.unwrap().get(0);
    let detail = opened.store.reads().task(TenantId::default_tenant(), id.parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(detail.task.trace_parent.map(|parent| parent.to_string()), Some(valid.clone()));
    let again = enqueue.replace(span, "00f067aa0ba902b8");
    assert_eq!(
        client.query_one(&again, &[]).await.unwrap().get::<_, String>(0),
        id,
        "another span is the same request"
    );
}

#[tokio::test]
async fn ids_are_those_of_tasks_and_grow() {
    let (_opened, client) = world().await;
    let enqueue = "SELECT redrive.enqueue(target_url => 'http://a.b/')::text FROM generate_series(1, 100)";
    let rows = client.query(enqueue, &[]).await.unwrap();
    let ids: Vec<redrive_core::TaskId> = rows.iter().map(|row| row.get::<_, String>(0).parse().unwrap()).collect();
    assert!(ids.is_sorted_by(|one, next| one < next), "{ids:?}");
}

#[tokio::test]
async fn the_same_key_and_request_is_the_same_task_and_another_request_is_refused() {
    let (opened, client) = world().await;
    let enqueue = |url: &str| {
        format!("SELECT redrive.enqueue(target_url => '{url}', idempotency_key => 'k', body => '1'::bytea)::text")
    };
    let first: String = client.query_one(&enqueue("http://a.b/"), &[]).await.unwrap().get(0);
    let again: String = client.query_one(&enqueue("http://a.b/"), &[]).await.unwrap().get(0);
    assert_eq!(first, again);
    let refused = client.query_one(&enqueue("http://a.b/c"), &[]).await.unwrap_err();
    let refused = refused.as_db_error().unwrap();
    assert_eq!(refused.code().code(), "RD001");
    let message = format!("redrive.enqueue: the idempotency key 'k' belongs to another request (task {first})");
    assert_eq!(refused.message(), message);
    assert_eq!(pending(&opened).await, 1);
}

const WITH_TOKEN: &str = "
SELECT redrive.enqueue('http://a.b/', 'x'::bytea, idempotency_key => 'k', headers => $1::text::jsonb)::text";

#[tokio::test]
async fn renewed_credentials_and_traces_do_not_make_another_request() {
    let (opened, client) = world().await;
    let enqueue = async |headers: &str| {
        let row = client.query_one(WITH_TOKEN, &[&headers]).await;
        row.map(|row| row.get::<_, String>(0)).map_err(|error| error.code().unwrap().code().to_owned())
    };
    let first = enqueue(r#"[["Authorization", "Bearer 1"], ["X-A", "1"], ["traceparent", "00-1"]]"#).await;
    assert!(first.is_ok(), "{first:?}");
    assert_eq!(
        enqueue(r#"[["X-A", "1"], ["authorization", "Bearer 2"], ["Date", "now"], ["baggage", "b"]]"#).await,
        first
    );
    assert_eq!(enqueue(r#"[["X-A", "1"]]"#).await, first);
    assert_eq!(enqueue(r#"[["X-A", "2"]]"#).await, Err("RD001".to_owned()));
    assert_eq!(enqueue(r#"[["X-A", "1"], ["Cookie", "c"]]"#).await, Err("RD001".to_owned()));
    let (_, print) = by_key(&opened).await;
    assert_eq!(print.version, FingerprintVersion::V2);
}

async fn by_key(opened: &Opened) -> (redrive_core::Task, Fingerprint) {
    let (tenant, key) = (TenantId::default_tenant(), IdempotencyKey::try_new("k").unwrap());
    opened.store.reads().by_key(tenant, key).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_key_that_was_stored_with_a_fingerprint_of_version_1_is_recognised_by_its_rules() {
    let (opened, client) = world().await;
    let headers = r#"[["Authorization", "Bearer 1"]]"#;
    let first: String = client.query_one(WITH_TOKEN, &[&headers]).await.unwrap().get(0);
    // As `enqueue` of the versions before has written it.
    let before = "UPDATE redrive.tasks SET fingerprint = redrive.fingerprint(
        'POST', 'http://a.b/', 'x', 'default', NULL, NULL, $1::text::jsonb, '{}')";
    client.execute(before, &[&headers]).await.unwrap();
    assert_eq!(by_key(&opened).await.1.version, FingerprintVersion::V1);
    let again: String = client.query_one(WITH_TOKEN, &[&headers]).await.unwrap().get(0);
    assert_eq!(again, first);
    let renewed = client.query_one(WITH_TOKEN, &[&r#"[["Authorization", "Bearer 2"]]"#]).await.unwrap_err();
    assert_eq!(renewed.code().unwrap().code(), "RD001", "every header counts in version 1");
}

#[tokio::test]
async fn invalid_arguments_are_refused_with_a_message() {
    let (opened, client) = world().await;
    for (arguments, told) in [
        ("target_url => 'ftp://x/'", "target_url must be an absolute http or https URL"),
        ("target_url => '/hooks'", "target_url must be an absolute http or https URL"),
        ("target_url => 'https://a.b/#c'", "target_url must not have a fragment"),
        ("target_url => 'https://a b/'", "target_url must be 1 to 8192 visible ASCII characters"),
        ("target_url => NULL", "target_url is missing"),
        ("target_url => ''", "target_url is missing"),
        ("target_url => 'https://a.b:0/'", "target_url must have a port from 1 to 65535"),
        ("target_url => 'https://a.b:65536/'", "target_url must have a port from 1 to 65535"),
        ("target_url => 'http://a.b', method => 'CONNECT'", "method must not be CONNECT: it opens a tunnel"),
        ("target_url => 'http://a.b', method => 'GE T'", "method must be a method such as POST"),
        ("target_url => 'http://a.b', idempotency_key => ''", "idempotency_key must be 1 to 64 visible"),
        ("target_url => 'http://a.b', idempotency_key => repeat('k', 65)", "idempotency_key must be 1 to 64 visible"),
        ("target_url => 'http://a.b', headers => '{\"Host \": \"x\"}'", "headers: 'Host ' is no header name"),
        ("target_url => 'http://a.b', headers => '{\"Idempotency-Key\": \"x\"}'", "is set by Redrive on every attempt"),
        ("target_url => 'http://a.b', headers => '{\"Content-Length\": \"1\"}'", "is set when the request is sent"),
        ("target_url => 'http://a.b', headers => '{\"Host\": \" \"}'", "headers: Host must not be empty"),
        (
            "target_url => 'http://a.b', headers => '{\"Host\": [\"a\", \"a\"]}'",
            "headers: Host must be given only once",
        ),
        ("target_url => 'http://a.b', headers => '{\"Host\": \"a\", \"host\": \"a\"}'", "must be given only once"),
        ("target_url => 'http://a.b:+80'", "must be an absolute http or https URL"),
        ("target_url => 'http://a.b', headers => '{\"X\": 1}'", "headers must be texts"),
        ("target_url => 'http://a.b', headers => '\"x\"'", "headers must be a JSON object of texts"),
        (
            "target_url => 'http://a.b', headers => jsonb_build_object('X', E'a\\nb')",
            "must not contain control characters",
        ),
        (
            "target_url => 'http://a.b', headers => jsonb_build_object('X', repeat('x', 32768))",
            "headers must be at most 32768 bytes in all, got 32769",
        ),
        ("target_url => 'http://a.b', labels => '{\"a b\": \"x\"}'", "labels must have names of 1 to 64"),
        ("target_url => 'http://a.b', correlation_id => 'a b'", "correlation_id must be 1 to 128 visible"),
        ("target_url => 'http://a.b', correlation_id => repeat('x', 129)", "correlation_id must be 1 to 128 visible"),
        ("target_url => 'http://a.b', dependency => ''", "dependency must be 1 to 300 visible"),
        ("target_url => 'http://a.b', body => repeat('x', 1048577)", "body must be at most 1048576 bytes, got 1048577"),
        ("target_url => 'http://a.b', policy_id => NULL", "policy_id must be 1 to 100 letters"),
        ("target_url => 'http://a.b', not_before => 'infinity'", "not_before must be a moment"),
        ("target_url => 'http://a.b', not_before => now() + '2 days'", "not_before must leave time for an attempt"),
    ] {
        let refused = client.query_one(&format!("SELECT redrive.enqueue({arguments})"), &[]).await.unwrap_err();
        let refused = refused.as_db_error().unwrap();
        assert!(refused.message().contains(told), "{arguments}: {}", refused.message());
        assert_eq!(*refused.code(), SqlState::INVALID_PARAMETER_VALUE, "{arguments}");
    }
    let refused = client.query_one("SELECT redrive.enqueue('http://a.b', policy_id => 'p')", &[]).await.unwrap_err();
    let refused = refused.as_db_error().unwrap();
    assert_eq!(refused.message(), "redrive.enqueue: there is no policy 'p' of tenant 'default'");
    assert_eq!(refused.code().code(), "RD002");
    assert_eq!(pending(&opened).await, 0);
}

#[tokio::test]
async fn a_content_type_that_a_caller_implies_is_checked_like_any_header() {
    let (opened, client) = world().await;
    for (implied, told) in [
        ("E'text/plain\\r\\nX-Injected: 1'", "the content type must be"),
        ("E'text/plain\\nX-Injected: 1'", "the content type must be"),
        ("repeat('x', 40000)", "the content type must be"),
    ] {
        let enqueue = format!(
            "SELECT redrive.enqueue_bytes('http://a.b', 'x', {implied}, 'POST', NULL, 'default', NULL, 'default', NULL, NULL, NULL, NULL)"
        );
        let refused = client.query_one(&enqueue, &[]).await.unwrap_err();
        let refused = refused.as_db_error().unwrap();
        assert!(refused.message().contains(told), "{implied}: {}", refused.message());
    }
    // The limit is the API's number of bytes, whatever their length as JSON.
    let quotes = "SELECT redrive.enqueue('http://a.b', headers => jsonb_build_object('X', repeat('\"', 32767)))";
    client.query_one(quotes, &[]).await.unwrap();
    assert_eq!(pending(&opened).await, 1);
}

#[tokio::test]
async fn a_transaction_that_has_enqueued_can_be_prepared() {
    let settings = [("max_prepared_transactions", "2")];
    let postgres =
        Postgres::start_with(redrive_testbed::postgres::Options { fsync: false, settings: &settings, files: &[] });
    let database = postgres.fresh_database();
    let store = PostgresStore::open(Options::new(database.url(), node("one"))).await.unwrap();
    let (tenant, id) = (TenantId::default_tenant(), PolicyId::default_policy());
    let now = redrive_core::Timestamp::from_millis(0);
    store.policies().put(tenant.clone(), id, policy::Spec::default(), Expected::Anything, now).await.unwrap();
    let client = plain(database.url()).await;
    client.batch_execute("BEGIN; SELECT redrive.enqueue(target_url => 'http://a.b/')").await.unwrap();
    client.batch_execute("PREPARE TRANSACTION 'order 1'").await.unwrap();
    client.batch_execute("COMMIT PREPARED 'order 1'").await.unwrap();
    assert_eq!(store.reads().counts(tenant).await.unwrap()[&Status::Pending], 1);
}

#[tokio::test]
async fn a_policy_that_an_open_transaction_pins_is_not_deleted_under_it() {
    let (opened, mut client) = world().await;
    let transaction = client.transaction().await.unwrap();
    transaction.query_one("SELECT redrive.enqueue(target_url => 'http://a.b/')", &[]).await.unwrap();
    let (tenant, id) = (TenantId::default_tenant(), PolicyId::default_policy());
    let deleting = opened.store.policies().delete(tenant, id, Expected::Anything);
    let committing = async {
        // The delete waits for this transaction: whichever is polled first, it finds the task.
        tokio::task::yield_now().await;
        transaction.commit().await.unwrap();
    };
    let (deleted, ()) = tokio::join!(deleting, committing);
    assert_eq!(deleted.unwrap(), redrive_store::DeletePolicy::Pinned(1));
}

/// The lane in which a first attempt is announced as due.
fn lane_of(news: &News) -> String {
    match news {
        News::Due(LaneDue { lane, class: Class::First, .. }) => lane.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn other_processes_are_told_when_it_commits() {
    let (opened, mut client) = world().await;
    until_listening(&opened, 1).await;
    let heard = tokio::spawn({
        let store = opened.store.clone();
        async move { store.shared().unwrap().next_news().await }
    });
    let transaction = client.transaction().await.unwrap();
    transaction.query_one("SELECT redrive.enqueue(target_url => 'http://a.b/')", &[]).await.unwrap();
    transaction.commit().await.unwrap();
    let heard = heard.await.unwrap();
    assert_eq!(heard.len(), 1);
    assert_eq!(lane_of(&heard[0]), "default/http://a.b");
}

#[tokio::test]
async fn a_transaction_that_turns_notifications_off_sends_none() {
    let (opened, client) = world().await;
    until_listening(&opened, 1).await;
    let heard = tokio::spawn({
        let store = opened.store.clone();
        async move { store.shared().unwrap().next_news().await }
    });
    for (notify, url) in [("off", "http://quiet/"), ("on", "http://loud/")] {
        client.batch_execute(&format!("SET redrive.notify = {notify}")).await.unwrap();
        client.query_one("SELECT redrive.enqueue(target_url => $1)", &[&url]).await.unwrap();
    }
    let lanes: Vec<String> = heard.await.unwrap().iter().map(lane_of).collect();
    assert_eq!(lanes, ["default/http://loud"]);
    assert_eq!(pending(&opened).await, 2);
}

#[tokio::test]
async fn whoever_may_use_the_schema_may_enqueue_and_read_nothing() {
    let (opened, client) = world().await;
    let role = format!("app_of_{}", opened.database.name());
    client.batch_execute(&format!("CREATE ROLE {role}; SET ROLE {role}")).await.unwrap();
    let enqueue = "SELECT redrive.enqueue(target_url => 'http://a.b/', idempotency_key => 'k', body => 'x')::text";
    let refused = client.query_one(enqueue, &[]).await.unwrap_err();
    assert_eq!(refused.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE));
    client
        .batch_execute(&format!("RESET ROLE; GRANT USAGE ON SCHEMA redrive TO {role}; SET ROLE {role}"))
        .await
        .unwrap();
    let first: String = client.query_one(enqueue, &[]).await.unwrap().get(0);
    let again: String = client.query_one(enqueue, &[]).await.unwrap().get(0);
    let read = client.query("SELECT FROM redrive.tasks", &[]).await.unwrap_err();
    client.batch_execute(&format!("RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}")).await.unwrap();
    assert_eq!(first, again);
    assert_eq!(read.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE));
}

//! A private PostgreSQL server, and the shared one.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

use std::path::Path;
use std::time::{Duration, Instant};

use redrive_testbed::postgres::Options;
use redrive_testbed::{PgBouncer, Postgres, wait_until};
use tokio_postgres::{Client, NoTls};

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn number(client: &Client, query: &str) -> i64 {
    client.query_one(query, &[]).await.unwrap().get(0)
}

async fn text(client: &Client, query: &str) -> String {
    client.query_one(query, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn commits_survive_a_kill_and_an_immediate_stop_on_the_same_port() {
    let postgres = Postgres::start();
    let database = postgres.fresh_database();
    let client = connect(database.url()).await;
    assert_eq!(text(&client, "SHOW fsync").await, "on");
    client.batch_execute("CREATE TABLE seen (n bigint); INSERT INTO seen VALUES (1)").await.unwrap();

    let first = postgres.pid();
    postgres.kill();
    assert!(client.batch_execute("SELECT 1").await.is_err());
    assert!(!Path::new(&format!("/proc/{first}")).exists());
    postgres.start_again();
    let client = connect(database.url()).await;
    assert_eq!(number(&client, "SELECT count(*) FROM seen").await, 1);
    client.batch_execute("INSERT INTO seen VALUES (2)").await.unwrap();

    postgres.stop_immediate();
    assert!(client.batch_execute("SELECT 1").await.is_err());
    postgres.start_again();
    assert!(postgres.log().contains("was not properly shut down"), "it recovered from a crash");
    let client = connect(database.url()).await;
    assert_eq!(number(&client, "SELECT count(*) FROM seen").await, 2);
}

#[tokio::test]
async fn a_kill_ends_a_backend_in_the_middle_of_its_statement() {
    let postgres = Postgres::start_with(Options { fsync: false, settings: &[], files: &[] });
    let client = connect(&postgres.url()).await;
    let backend: i32 = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    // An endless loop, which never checks whether the main process still exists.
    let statement = tokio::spawn(async move { client.batch_execute("DO $$ BEGIN LOOP END LOOP; END $$").await });
    let observer = connect(&postgres.url()).await;
    let running = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'DO %' AND state = 'active'";
    let begin = Instant::now();
    while number(&observer, running).await == 0 {
        assert!(begin.elapsed() < Duration::from_secs(60));
    }
    postgres.kill();
    assert!(statement.await.unwrap().is_err());
    let state = std::fs::read_to_string(format!("/proc/{backend}/stat")).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z "), "{state}");
}

#[tokio::test]
async fn a_paused_server_answers_when_it_is_resumed() {
    let postgres = Postgres::start_with(Options { fsync: false, settings: &[], files: &[] });
    let client = connect(&postgres.url()).await;
    postgres.pause();
    let query = client.query_one("SELECT 7::bigint", &[]);
    tokio::pin!(query);
    assert!(tokio::time::timeout(Duration::from_millis(50), &mut query).await.is_err());
    postgres.resume();
    assert_eq!(query.await.unwrap().get::<_, i64>(0), 7);
}

#[tokio::test]
async fn settings_and_cpu_time_are_the_servers() {
    let postgres = Postgres::start_with(Options {
        fsync: false,
        settings: &[("max_connections", "17"), ("work_mem", "5MB")],
        files: &[],
    });
    let client = connect(&postgres.url()).await;
    assert_eq!(text(&client, "SHOW max_connections").await, "17");
    assert_eq!(text(&client, "SHOW work_mem").await, "5MB");
    assert_eq!(text(&client, "SHOW fsync").await, "off");
    let before = postgres.cpu_time();
    let after_work = before + Duration::from_millis(100);
    let begin = Instant::now();
    while postgres.cpu_time() < after_work {
        client.batch_execute("SELECT sum(n) FROM generate_series(1, 100000) n").await.unwrap();
        assert!(begin.elapsed() < Duration::from_secs(60));
    }
    // The time of a backend stays counted after it has ended.
    drop(client);
    let observer = connect(&postgres.url()).await;
    let begin = Instant::now();
    while number(&observer, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'").await > 1 {
        assert!(begin.elapsed() < Duration::from_secs(60));
    }
    // The server counts it when it notices the end, which may be a moment after the backend is out of the list.
    while postgres.cpu_time() < after_work {
        assert!(begin.elapsed() < Duration::from_secs(60));
        tokio::task::yield_now().await;
    }
}

#[test]
fn nothing_is_left_of_a_dropped_server() {
    let postgres = Postgres::start_with(Options { fsync: false, settings: &[], files: &[] });
    let (pid, data, port) = (postgres.pid(), postgres.data_directory(), postgres.port());
    assert!(data.join("PG_VERSION").exists());
    drop(postgres);
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
    assert!(!data.parent().unwrap().exists());
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[tokio::test]
async fn the_shared_server_gives_distinct_databases_and_drops_them() {
    let shared = Postgres::shared();
    let (one, other) = (shared.fresh_database(), shared.fresh_database());
    assert_ne!(one.url(), other.url());
    let client = connect(one.url()).await;
    client.batch_execute("CREATE TABLE mine ()").await.unwrap();
    assert_eq!(text(&client, "SELECT current_database()::text").await, one.name());
    let tables = "SELECT count(*) FROM pg_tables WHERE tablename = 'mine'";
    assert_eq!(number(&connect(other.url()).await, tables).await, 0);

    let observer = connect(shared.url()).await;
    let exists = format!("SELECT count(*) FROM pg_database WHERE datname = '{}'", one.name());
    assert_eq!(number(&observer, &exists).await, 1);
    drop(one);
    assert_eq!(number(&observer, &exists).await, 0, "although a client was connected");
}

#[tokio::test]
async fn pgbouncer_gives_the_connection_away_between_transactions() {
    let postgres = Postgres::start_with(Options { fsync: false, settings: &[], files: &[] });
    let database = postgres.fresh_database();
    let pooler = PgBouncer::start(&postgres);
    let (one, other) = (connect(&pooler.url(database.name())).await, connect(&pooler.url(database.name())).await);
    let backend = "SELECT pg_backend_pid()";
    // One after the other, both get the connection that was used last.
    let by_one = simple(&one, backend).await;
    assert_eq!(simple(&other, backend).await, by_one);
    one.batch_execute("BEGIN").await.unwrap();
    assert_eq!(simple(&one, backend).await, by_one);
    assert_ne!(simple(&other, backend).await, by_one, "it belongs to a transaction");
    one.batch_execute("COMMIT").await.unwrap();
}

/// The first column of a query without a prepared statement, which a pooler in transaction mode does not keep.
async fn simple(client: &Client, query: &str) -> String {
    let messages = client.simple_query(query).await.unwrap();
    let row = messages.iter().find_map(|message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    });
    row.unwrap()
}

#[tokio::test]
async fn a_promoted_standby_has_what_a_synchronous_commit_wrote_and_can_be_started_again() {
    let options = Options { fsync: false, settings: &[("max_connections", "150")], files: &[] };
    let primary = Postgres::start_with(options);
    primary.set(&[("synchronous_standby_names", "walreceiver")]);
    let standby = primary.start_standby_with(options);
    let database = primary.fresh_database();
    connect(database.url()).await.batch_execute("CREATE TABLE kept ()").await.unwrap();
    primary.kill();
    standby.promote();
    standby.set(&[]);
    let url = database.url().replace(&format!(":{}/", primary.port()), &format!(":{}/", standby.port()));
    connect(&url).await.batch_execute("SELECT FROM kept; CREATE TABLE more ()").await.unwrap();
    standby.kill();
    standby.start_again();
    connect(&url).await.batch_execute("SELECT FROM more").await.unwrap();
}

#[test]
fn a_paused_server_is_gone_after_its_drop() {
    let postgres = Postgres::start_with(Options { fsync: false, settings: &[], files: &[] });
    let pid = postgres.pid();
    postgres.pause();
    drop(postgres);
    wait_until("it is gone", || !Path::new(&format!("/proc/{pid}")).exists());
}

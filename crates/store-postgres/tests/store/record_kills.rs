//! `redrive.reserve`, an effect and `redrive.complete` in one transaction, while backends and the whole server are killed:
//! each key has exactly one effect, and all of its callers see the same response.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use redrive_store_postgres::{Options, PostgresStore};
use redrive_testbed::Postgres;
use tokio_postgres::{Client, NoTls};

use crate::support::{Random, node};

/// Concurrent clients. All of them go through the same keys.
const CLIENTS: usize = 12;
/// How often a backend is killed, and before which of these kills the server is killed as well.
const KILLS: u64 = 60;
const SERVER_KILLS: [u64; 3] = [5, 25, 45];
/// The most statements between two kills.
const STATEMENTS: u64 = 40;

/// What the clients and the killer share.
#[derive(Default)]
struct Shared {
    /// How many statements the clients have begun.
    statements: AtomicU64,
    is_over: AtomicBool,
}

impl Shared {
    fn next(&self) {
        self.statements.fetch_add(1, Ordering::Relaxed);
    }
}

async fn connect(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(async move { connection.await.unwrap_or_default() });
    Ok(client)
}

/// One try: the response, if the transaction was committed or another one was before. An error leaves open which.
async fn execute(client: &mut Client, key: &str, own: &str, shared: &Shared) -> Result<String, tokio_postgres::Error> {
    shared.next();
    let transaction = client.transaction().await?;
    shared.next();
    let reserve = "
        SELECT outcome, execution_id::text, epoch, convert_from(response_body, 'UTF8')
        FROM redrive.reserve('pay', $1, sha256('pay'))";
    let row = transaction.query_one(reserve, &[&key]).await?;
    match row.get(0) {
        "reserved" => {}
        "replay" => return Ok(row.get(3)),
        // Its transaction is not over: an owner that was killed leaves no record.
        other => panic!("{key} is {other}"),
    }
    let (execution, epoch): (String, i64) = (row.get(1), row.get(2));
    shared.next();
    transaction.execute("INSERT INTO effects VALUES ($1, $2)", &[&key, &own]).await?;
    shared.next();
    let complete = "
        SELECT redrive.complete(
            'pay', $1, $2::text::uuid, $3, response_status => 201, response_body => convert_to($4, 'UTF8')
        )";
    transaction.query_one(complete, &[&key, &execution, &epoch, &own]).await?;
    shared.next();
    transaction.commit().await?;
    Ok(own.to_owned())
}

/// Goes through the keys until the killer has finished. Each is tried until it has a response.
async fn client(number: usize, url: String, shared: Arc<Shared>) -> Vec<String> {
    let mut responses = Vec::new();
    let (mut connection, mut tries) = (None, 0);
    while !shared.is_over.load(Ordering::Relaxed) {
        let (key, own) = (format!("k-{}", responses.len()), format!("client {number}, try {tries}"));
        tries += 1;
        let mut client: Client = match connection.take() {
            Some(client) => client,
            None => match connect(&url).await {
                Ok(client) => client,
                Err(_) => {
                    tokio::task::yield_now().await;
                    continue;
                }
            },
        };
        if let Ok(response) = execute(&mut client, &key, &own, &shared).await {
            responses.push(response);
            connection = Some(client);
        }
    }
    responses
}

/// Kills one backend, or leaves that to a later kill if the server does not answer.
async fn kill_backend(url: &str, which: u64) -> bool {
    let kill = "
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
        ORDER BY pid OFFSET $1 LIMIT 1";
    let Ok(client) = connect(url).await else { return false };
    client.query(kill, &[&which.cast_signed()]).await.is_ok_and(|rows| !rows.is_empty())
}

async fn kill_again_and_again(postgres: &Postgres, url: &str, shared: &Shared) {
    let mut random = Random(17);
    let mut killed = 0;
    while killed < KILLS {
        let point = shared.statements.load(Ordering::Relaxed) + random.below(STATEMENTS);
        while shared.statements.load(Ordering::Relaxed) < point {
            tokio::task::yield_now().await;
        }
        if SERVER_KILLS.contains(&killed) {
            postgres.kill();
            postgres.start_again();
        }
        killed += u64::from(kill_backend(url, random.below(CLIENTS as u64)).await);
    }
    shared.is_over.store(true, Ordering::Relaxed);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_key_has_one_effect_and_one_response_while_backends_and_the_server_are_killed() {
    let postgres = Postgres::start();
    let database = postgres.fresh_database();
    let store = PostgresStore::open(Options::new(database.url(), node("one"))).await.unwrap();
    redrive_store::Store::close(&store).await;
    let setup = connect(database.url()).await.unwrap();
    setup.batch_execute("CREATE TABLE effects (key text, made_by text)").await.unwrap();
    drop(setup);
    let shared = Arc::new(Shared::default());
    let clients: Vec<_> =
        (0..CLIENTS).map(|number| tokio::spawn(client(number, database.url().to_owned(), shared.clone()))).collect();
    kill_again_and_again(&postgres, database.url(), &shared).await;
    let mut seen: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for client in clients {
        for (key, response) in client.await.unwrap().into_iter().enumerate() {
            seen.entry(format!("k-{key}")).or_default().push(response);
        }
    }
    let reader = connect(database.url()).await.unwrap();
    let mut effects: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in reader.query("SELECT key, made_by FROM effects", &[]).await.unwrap() {
        effects.entry(row.get(0)).or_default().push(row.get(1));
    }
    assert!(seen.len() > 10 && effects.len() >= seen.len(), "{} keys", seen.len());
    for (key, made_by) in &effects {
        assert_eq!(made_by.len(), 1, "{key} has one effect: {made_by:?}");
        let responses = seen.get(key).into_iter().flatten();
        assert!(responses.clone().all(|response| response == &made_by[0]), "{key}: {made_by:?}, {responses:?}");
    }
    assert!(seen.keys().all(|key| effects.contains_key(key)), "every response has its effect");
}

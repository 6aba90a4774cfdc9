//! Runs one statement on a server, from a thread of its own, so that it works inside and outside of an async runtime.

use std::time::Duration;

use tokio_postgres::NoTls;

/// Far more than any statement of the testbed takes.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs `statement` in the database at `url`.
pub(super) fn execute(url: &str, statement: &str) -> Result<(), String> {
    let work = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
        let bounded = async { tokio::time::timeout(LIMIT, connect_and_execute(url, statement)).await };
        match runtime.block_on(bounded) {
            Ok(done) => done.map_err(|error| described(&error)),
            Err(_) => Err(format!("no answer within {LIMIT:?}")),
        }
    };
    std::thread::scope(|scope| scope.spawn(work).join().expect("a thread for a statement panicked"))
}

async fn connect_and_execute(url: &str, statement: &str) -> Result<(), tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    let connection = tokio::spawn(connection);
    let outcome = client.batch_execute(statement).await;
    drop(client);
    // A failure of the connection is also a failure of the statement.
    connection.await.ok();
    outcome
}

fn described(error: &tokio_postgres::Error) -> String {
    let source = std::error::Error::source(error).map_or_else(String::new, |source| format!(": {source}"));
    format!("{error}{source}")
}

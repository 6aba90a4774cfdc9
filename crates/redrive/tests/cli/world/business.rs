//! An application's PostgreSQL database with an outbox table, and a connection to it.

use std::path::Path;

use redrive_testbed::{Database, Postgres, wait_until};
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use super::{Program, Service, redrive};

/// The table of every test.
pub(crate) const TABLE: &str = "app.outbox";

/// A database and a connection to it.
pub(crate) struct Business {
    pub(crate) url: String,
    runtime: Runtime,
    client: Client,
    _database: Option<Database>,
}

impl Business {
    /// A fresh database with the table as `redrive outbox table` makes it.
    pub(crate) fn start() -> Business {
        let database = Postgres::shared().fresh_database();
        let mut business = Business::connect(database.url());
        business._database = Some(database);
        business.make_table();
        business
    }

    /// One more connection to a database.
    pub(crate) fn connect(url: &str) -> Business {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let client = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
            tokio::spawn(async move { connection.await.unwrap_or_default() });
            client
        });
        Business { url: url.to_owned(), runtime, client, _database: None }
    }

    pub(crate) fn make_table(&self) {
        let words = ["outbox", "table", "--table", TABLE, "--notify"];
        let statements = Program::start(redrive(Path::new("."), &words)).end().with(0).stdout;
        self.run(&statements);
    }

    /// Runs statements.
    pub(crate) fn run(&self, statements: &str) {
        self.runtime.block_on(self.client.batch_execute(statements)).unwrap();
    }

    /// What a query answers, each row with its columns separated by `|`.
    pub(crate) fn ask(&self, query: &str) -> Vec<String> {
        let answer = self.runtime.block_on(self.client.simple_query(query)).unwrap();
        let rows = answer.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        rows.map(|row| {
            let columns: Vec<&str> = (0..row.len()).map(|at| row.get(at).unwrap_or("NULL")).collect();
            columns.join("|")
        })
        .collect()
    }

    /// The SQLSTATE with which a statement is refused.
    pub(crate) fn refusal(&self, statement: &str) -> String {
        let refused = self.runtime.block_on(self.client.batch_execute(statement)).unwrap_err();
        refused.code().unwrap().code().to_owned()
    }

    /// Inserts `count` rows to `url`, with their number as the body.
    pub(crate) fn insert(&self, url: &str, count: usize) {
        self.run(&format!(
            "INSERT INTO {TABLE} (target_url, body)
             SELECT '{url}', convert_to(n::text, 'UTF8') FROM generate_series(1, {count}) AS n"
        ));
    }

    /// The ids of all rows.
    pub(crate) fn ids(&self) -> Vec<String> {
        self.ask(&format!("SELECT id FROM {TABLE} ORDER BY id"))
    }

    /// Waits until a relay is in the middle of its work: a row is gone. (Where all are, there is nothing to wait for.)
    pub(crate) fn wait_until_fewer(&self) {
        let before = self.ids().len();
        wait_until("the outbox has fewer rows", || self.ids().len() < before || before == 0);
    }

    pub(crate) fn wait_until_empty(&self) {
        wait_until("the outbox is empty", || self.ids().is_empty());
    }

    /// Starts a relay of the table to `service`.
    pub(crate) fn relay(&self, service: &Service, flags: &[&str]) -> Program {
        service.begin(&self.words(flags))
    }

    /// Starts a relay of the table to something that says it is a Redrive server.
    pub(crate) fn relay_to(&self, server: &str, flags: &[&str]) -> Program {
        let words = [self.words(flags), vec!["--server", server]].concat();
        Program::start(redrive(Path::new("."), &words))
    }

    fn words<'a>(&'a self, flags: &[&'a str]) -> Vec<&'a str> {
        [&["outbox", "relay", "--from", &self.url, "--table", TABLE], flags].concat()
    }
}

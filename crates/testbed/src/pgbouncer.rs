//! PgBouncer in front of a PostgreSQL server.

use std::fs;
use std::process::Command;

use rustix::process::Signal;

use crate::home::{Farewell, Home, StorageMedium};
use crate::postgres::Postgres;
use crate::program;
use crate::server::{Plan, Server};

/// A pooler in transaction mode: a client gets a server connection for one transaction at a time.
#[derive(Debug)]
pub struct PgBouncer {
    server: Server,
}

impl PgBouncer {
    /// Starts a pooler for all databases of `postgres`.
    pub fn start(postgres: &Postgres) -> Self {
        let program = program::PGBOUNCER.path();
        let account = program::account_for_servers();
        let home = Home::new(StorageMedium::Disk, account, Farewell::Kill);
        let file = home.path().join("pgbouncer.ini");
        let target = postgres.port();
        let command = move |port: u16| {
            fs::write(&file, configuration(port, target)).expect("writing PgBouncer's configuration");
            let mut command = Command::new(&program);
            command.arg(&file);
            program::run_as(&mut command, account);
            command
        };
        let plan = Plan { name: "PgBouncer", command: Box::new(command), ready: "process up", farewell: Signal::KILL };
        PgBouncer { server: Server::start(plan, home) }
    }

    /// The URL of a database through the pooler.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://redrive@127.0.0.1:{}/{database}", self.server.port())
    }
}

fn configuration(port: u16, target: u16) -> String {
    format!(
        "[databases]\n\
         * = host=127.0.0.1 port={target} user=redrive\n\
         [pgbouncer]\n\
         listen_addr = 127.0.0.1\n\
         listen_port = {port}\n\
         unix_socket_dir =\n\
         auth_type = any\n\
         pool_mode = transaction\n\
         max_client_conn = 500\n\
         default_pool_size = 10\n"
    )
}

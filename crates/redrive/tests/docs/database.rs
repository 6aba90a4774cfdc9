//! A PostgreSQL server of a document's own, because documents make roles and databases.

use redrive_testbed::Postgres;
use redrive_testbed::postgres::Options;

use super::document_run::DocumentRun;

/// Starts a server that `psql` in the shell of `document_run` is connected to, as a superuser. Addresses with
/// `@localhost/` and `@db.internal/` lead there.
pub(crate) fn start(run: &mut DocumentRun) -> Postgres {
    let server = Postgres::start_with(Options { fsync: false, ..Options::default() });
    let port = server.port();
    for host in ["localhost", "db.internal"] {
        run.replace(&format!("@{host}/"), &format!("@127.0.0.1:{port}/"));
    }
    // The server was made by a role `redrive`, a name that documents give to theirs.
    let url = server.url();
    run.setup(&format!("psql '{url}' -c 'CREATE ROLE operator SUPERUSER LOGIN'"));
    run.setup(&format!("export PGHOST=127.0.0.1 PGPORT={port} PGUSER=operator"));
    run.setup("psql postgres -c 'ALTER ROLE redrive RENAME TO testbed'");
    server
}

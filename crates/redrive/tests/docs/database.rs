//! A PostgreSQL server of a document's own, because documents make roles and databases.

use std::path::Path;

use redrive_testbed::Postgres;
use redrive_testbed::postgres::Options;

use super::document_run::DocumentRun;

/// Who may connect: the reader of a document as if there were a password file, all others with their passwords.
const ENTRIES: &str = "
host postgres redrive  all trust
host all      operator all trust
host all      root     all trust
host all      all      all scram-sha-256
";

/// The password that `…` in a document stands for.
pub(crate) const PASSWORD: &str = "secret";

/// Starts a server that `psql` in the shell of `document_run` is connected to as `operator`: not a superuser, but a role that may
/// create roles and databases. Addresses with `@localhost/` and `@db.internal/` lead there.
pub(crate) fn start(run: &mut DocumentRun) -> Postgres {
    let files = [("pg_hba.conf", ENTRIES)];
    let server = Postgres::start_with(Options { fsync: false, files: &files, ..Options::default() });
    let port = server.port();
    for host in ["localhost", "db.internal"] {
        run.replace(&format!("@{host}/"), &format!("@127.0.0.1:{port}/"));
    }
    run.replace(":…@", &format!(":{PASSWORD}@"));
    run.replace("'…'", &format!("'{PASSWORD}'"));
    // The server was made by a role `redrive`, a name that documents give to theirs.
    let url = server.url();
    run.setup(&format!(
        "psql '{url}' -c 'CREATE ROLE root SUPERUSER LOGIN' -c 'CREATE ROLE operator CREATEROLE CREATEDB LOGIN'"
    ));
    run.setup(&format!("export PGHOST=127.0.0.1 PGPORT={port} PGUSER=operator"));
    run.setup("PGUSER=root psql postgres -c 'ALTER ROLE redrive RENAME TO testbed'");
    server
}

/// Starts a server that has TLS, with a certificate and a key from files in `directory`.
pub(crate) fn start_with_certificate(directory: &Path, certificate: &str, key: &str) -> Postgres {
    let read = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap();
    Postgres::start_with(Options {
        fsync: false,
        settings: &[("ssl", "on"), ("ssl_cert_file", "its.pem"), ("ssl_key_file", "its.key")],
        files: &[("its.pem", &read(certificate)), ("its.key", &read(key))],
    })
}

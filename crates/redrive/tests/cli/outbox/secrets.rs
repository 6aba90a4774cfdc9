//! A password is never shown.

use std::path::Path;

use super::super::world::{Program, redrive};

#[test]
fn the_password_of_the_source_is_never_shown() {
    let from = "postgres://relay:s3cret@127.0.0.1:1/shop";
    for words in [
        &["outbox", "relay", "--table", "app.outbox", "--once", "--log-level", "trace"][..],
        &["outbox", "relay", "--table", "app.outbox", "--batch", "0"],
        &["outbox", "relay", "--help"],
    ] {
        let mut command = redrive(Path::new("."), words);
        command.env("REDRIVE_OUTBOX_FROM", from);
        let ended = Program::start(command).end();
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(!said.contains("s3cret"), "{words:?}: {said}");
    }
    let mut command = redrive(Path::new("."), &["outbox", "relay", "--table", "app.outbox", "--once"]);
    command.env("REDRIVE_OUTBOX_FROM", from);
    Program::start(command)
        .end()
        .with(6)
        .says(&["cannot use the table app.outbox of postgres://relay:***@127.0.0.1:1/shop"]);
}

#[test]
fn looking_all_the_time_is_refused() {
    for poll in ["0s", "9ms"] {
        let words = ["outbox", "relay", "--from", "postgres://127.0.0.1:1/shop", "--table", "a", "--poll", poll];
        Program::start(redrive(Path::new("."), &words)).end().with(2).says(&["must be at least 10ms"]);
    }
}

#[test]
fn an_address_that_cannot_be_read_is_told_without_its_password() {
    let looks = "must be postgres://user:password@host:5432/database";
    for (from, told) in [
        ("postgres://relay:s3cret@db:port/shop", "invalid value for option `port`"),
        ("postgres://relay:p@s3cret/x@db/shop", "percent-encoded (@ is %40"),
        ("mysql://relay:s3cret@db/shop", looks),
        ("relay", looks),
        ("host=db password=s3cret colour=red", "unknown option `colour`"),
    ] {
        let words = ["outbox", "relay", "--from", from, "--table", "app.outbox"];
        let ended = Program::start(redrive(Path::new("."), &words)).end().with(78).says(&["cannot use --from", told]);
        assert!(!format!("{}{}", ended.stdout, ended.stderr).contains("s3cret"), "{ended:?}");
    }
}

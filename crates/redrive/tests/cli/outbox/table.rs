//! The table, and what is no such table.

use std::path::Path;

use super::super::world::{Business, Program, Service, Target, redrive};

#[test]
fn the_statements_make_a_table_of_any_name_that_the_relay_can_use() {
    let (service, business, target) = (Service::start(), Business::start(), Target::answering(&[200]));
    for name in ["outgoing", "\"Shop\".\"Out \"\"box\""] {
        for notify in [&[][..], &["--notify"]] {
            let words = [&["outbox", "table", "--table", name], notify].concat();
            let statements = Program::start(redrive(Path::new("."), &words)).end().with(0).stdout;
            business.run(&statements);
            business.run(&format!("INSERT INTO {name} (target_url) VALUES ('{}')", target.url));
            let words = ["outbox", "relay", "--from", &business.url, "--table", name, "--once"];
            service.run(&words).with(0).says(&["moved 1 row,"]);
            target.arrival();
            business.run(&format!("DROP TABLE {name}"));
        }
    }
}

#[test]
fn the_relay_needs_no_more_than_select_update_and_delete() {
    let (service, business, target) = (Service::start(), Business::start(), Target::answering(&[200]));
    let role = format!("relay_{}", business.ask("SELECT current_database()")[0]);
    business.run(&format!("CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA app TO {role}"));
    business.insert(&target.url, 2);
    business.insert("ftp://x", 1);
    let from = business.url.replacen("redrive@", &format!("{role}@"), 1);
    let relay = || service.run(&["outbox", "relay", "--from", &from, "--table", "app.outbox", "--once"]);
    let refused = ["SELECT, UPDATE", "DELETE"].map(|privileges| {
        let refused = relay();
        business.run(&format!("GRANT {privileges} ON app.outbox TO {role}"));
        refused
    });
    let relayed = relay();
    business.run(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
    for ended in refused {
        ended.with(78).says(&["the role needs SELECT, UPDATE and DELETE on the table"]);
    }
    relayed.with(1).says(&["moved 2 rows, refused 1 row", "Redrive refused 1 row, which stays"]);
}

#[test]
fn what_is_no_outbox_table_ends_the_relay_with_a_word_about_it() {
    let (service, business) = (Service::start(), Business::start());
    business.run(
        "CREATE TABLE app.other (id int); CREATE VIEW app.view AS SELECT * FROM app.outbox;
         CREATE TABLE app.texts (LIKE app.outbox); ALTER TABLE app.texts ALTER COLUMN body TYPE text;",
    );
    for (table, told) in [
        ("app.nothing", "there is no table app.nothing; create it with the statements of `redrive outbox table`"),
        ("app.view", "there is no table app.view"),
        ("app.other", "column \"body\" does not exist (SQLSTATE 42703)"),
        ("app.texts", "the column body must be of type bytea, not text"),
    ] {
        let words = ["outbox", "relay", "--from", &business.url, "--table", table];
        service.run(&words).with(78).says(&[told]);
    }
    let nowhere = business.url.replacen("/redrive_", "/nowhere_", 1);
    let words = ["outbox", "relay", "--from", &nowhere, "--table", "app.outbox"];
    service.run(&words).with(78).says(&["does not exist (SQLSTATE 3D000)"]);
}

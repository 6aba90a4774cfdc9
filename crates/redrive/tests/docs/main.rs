//! The commands of README.md and docs, run as a reader would run them.
//!
//! Every fenced block of `sh`, `console` or `sql` is run, in the order of the document, or is marked in the document as not
//! run, with the reason. What `console` blocks show is compared with what is printed.
//!
//! | file | its job |
//! | --- | --- |
//! | `markdown` | finds the blocks and their markers |
//! | `compare` | compares what is shown with what was printed |
//! | `shell`, `prelude.sh` | a `bash` that runs one block after the other |
//! | `document_run` | one document: ports, placeholders, the order of its blocks |
//! | `database`, `target` | what the documents' commands talk to |

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "in a test, what is not there is a failure")]

mod compare;
mod database;
mod document_run;
mod markdown;
mod shell;
mod target;

use std::path::{Path, PathBuf};
use std::time::Duration;

use document_run::DocumentRun;
use markdown::{Block, Marker};
use target::Target;

/// How long anything may take before a test is given up.
const PATIENCE: Duration = Duration::from_secs(60);

/// A retry configuration that breaks two rules, as README.md lints it.
const BREAKS_TWO_RULES: &str = include_str!("retries.toml");

#[test]
fn every_document_with_commands_has_a_test() {
    let tests = include_str!("main.rs");
    for path in documents() {
        let has_commands = read(&path).iter().any(|block| block.marker != Marker::NotRun);
        let has_test = tests.contains(&format!("DocumentRun::new(\"{path}\")"));
        assert_eq!(has_test, has_commands, "{path}: whether there is a test, and whether there are commands to run");
    }
}

#[test]
fn the_commands_of_the_readme_work() {
    let mut run = DocumentRun::new("README.md");
    run.shell.put("retries.toml", BREAKS_TWO_RULES.as_bytes());
    run.shell.put("video.mp4", &vec![7; 52_428_800]);
    run.setup("redrive serve");
    let waits = run.run_until("a dependency that is down");
    let waiting = run.begin(&waits);
    run.setup("kill -KILL ${running[0]}; wait ${running[0]} || true");
    run.setup("redrive serve");
    let target = run.run_until("the target");
    run.run_block(&target);
    let retry_now = run.run_until("do not wait");
    // On a slow machine an attempt may be under way, or have delivered the task.
    let retry_now = retry_now.text.trim();
    run.setup(&format!("until {retry_now} || redrive tasks show ID | grep -q SUCCEEDED; do sleep 0.05; done"));
    let delivered = run.run_until("the dependency is up");
    run.finish(&waiting, &delivered, "SUCCEEDED");
    run.wait_for_arrival("#1 POST /hook, key ");

    let mut same_key = run.run_until("the same key");
    for status in ["HTTP/1.1 201 Created", "HTTP/1.1 200 OK"] {
        let answer = run.run_block(&same_key).to_lowercase();
        assert!(answer.starts_with(&status.to_lowercase()), "{answer}");
        assert_eq!(answer.contains("idempotent-replayed: true"), status.contains("200"), "{answer}");
    }
    same_key.text = same_key.text.replace("100.00", "100.01");
    let answer = run.run_block(&same_key);
    assert!(answer.starts_with("HTTP/1.1 422"), "{answer}");
    run.wait_for_arrival("POST /orders, key order-7, attempt 1, 18 bytes: 200 OK");

    let psql = run.run_until("roles and databases");
    run.setup("stop TERM");
    let target = Target::listen(run.port("9000"));
    let _server = database::start(&mut run);
    run.run_block(&psql);
    let two_nodes = run.run_until("two nodes");
    run.run_block(&two_nodes);
    let nodes = run.setup("redrive nodes");
    assert!(nodes.contains("one ") && nodes.contains("two ") && nodes.matches("ALIVE").count() == 2, "{nodes}");

    run.send_to_target();
    program_with_orders(&mut run, "redrive");
    let enqueue = run.run_until("enqueue");
    run.run_block(&enqueue);
    target.wait_for("order-7");
    run.setup("createdb shop");
    run.run_rest();
}

#[test]
fn the_commands_of_outbox_deliver_what_was_committed() {
    let mut run = DocumentRun::new("docs/outbox.md");
    let _server = database::start(&mut run);
    run.send_to_target();
    let target = Target::listen(run.port("9000"));
    run.setup("createdb redrive; createdb shop");
    run.setup("REDRIVE_STORE=postgres://operator@localhost/redrive redrive serve");
    program_with_orders(&mut run, "redrive");
    let table = run.run_until("the table");
    target.wait_for("order-7-paid");

    // The same key in a service of its own.
    run.setup("stop TERM; redrive serve");
    run.setup(&orders_in("shop"));
    run.run_block(&table);
    run.setup("psql shop -c 'GRANT USAGE ON SCHEMA app TO shop' -c 'GRANT INSERT ON app.outbox TO shop'");
    let insert = run.run_until("an insert");
    run.use_database_as("shop", database::PASSWORD, "shop");
    run.run_block(&insert);
    let role = run.run_until("the role of the relay");
    run.use_database("shop");
    run.run_block(&role);
    let relay = run.run_until("the relay");
    run.run_block(&relay);
    target.wait_for("order-7-paid");
    run.run_rest();
}

#[test]
fn the_commands_of_deploying_work() {
    let mut run = DocumentRun::new("docs/deploying.md");
    for (text, here) in [("/var/lib/redrive", "redrive-data"), ("/backup", "backup"), ("10.0.0.5", "127.0.0.1")] {
        run.replace(text, here);
    }
    run.setup("mkdir backup; redrive serve; redrive send -X GET http://127.0.0.1:8620/livez --wait");
    let backup = run.run_until("backup");
    run.run_block(&backup);
    let kept = run.setup("sqlite3 backup/redrive.db 'SELECT status FROM task_overview'");
    assert_eq!(kept, "SUCCEEDED");
    run.setup("stop TERM");

    let names = run.run_until("host names");
    run.run_block(&names);
    let status_for = |run: &mut DocumentRun, host: &str| {
        run.setup(&format!("curl -o /dev/null -w '%{{http_code}}' -H 'Host: {host}' $REDRIVE_SERVER/retry-tasks"))
    };
    assert_eq!(status_for(&mut run, "redrive.internal"), "200");
    assert_eq!(status_for(&mut run, "a.redrive.svc.cluster.local"), "200");
    assert_eq!(status_for(&mut run, "elsewhere.internal"), "403");
    run.setup("stop TERM");

    let _server = database::start(&mut run);
    // What is revoked from PUBLIC on a hardened server must be granted by the document.
    run.setup("PGUSER=root psql template1 -c 'REVOKE ALL ON SCHEMA public FROM PUBLIC'");
    run.use_database("postgres");
    let migrate = run.run_until("migrate");
    run.setup("PGUSER=root psql postgres -c 'REVOKE ALL ON DATABASE redrive FROM PUBLIC'");
    let revoke = "ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC";
    run.setup(&format!("PGUSER=redrive_owner PGPASSWORD=secret psql redrive -c '{revoke}'"));
    run.run_block(&migrate);
    let grants = run.run_until("grants");
    run.use_database_as("redrive_owner", database::PASSWORD, "redrive");
    run.run_block(&grants);
    let fewer_rights = run.run_until("fewer rights");
    run.run_block(&fewer_rights);
    run.setup("redrive send -X GET http://127.0.0.1:8620/livez --wait");
    // An upgrade adds a table and a sequence: the default privileges are for both.
    let as_role = |run: &mut DocumentRun, role: &str, sql: &str| {
        run.setup(&format!("PGUSER={role} PGPASSWORD=secret psql redrive -At -c \"{sql}\""))
    };
    as_role(&mut run, "redrive_owner", "CREATE TABLE redrive.added (id bigserial, name text)");
    let added = as_role(&mut run, "redrive", "INSERT INTO redrive.added (name) VALUES ('x') RETURNING id");
    assert_eq!(added, "1");

    let program = run.run_until("a program");
    let password = database::PASSWORD;
    run.setup(&format!("psql postgres -c \"CREATE ROLE shop LOGIN PASSWORD '{password}'\""));
    run.run_block(&program);
    // As the document says for a server where PUBLIC has no rights.
    let revoked = ["CONNECT ON DATABASE redrive", "EXECUTE ON ALL FUNCTIONS IN SCHEMA redrive"];
    for right in revoked {
        as_role(&mut run, "redrive_owner", &format!("GRANT {right} TO shop"));
    }
    as_role(&mut run, "shop", "SELECT redrive.enqueue('http://127.0.0.1:8620/livez', 'x', method => 'PUT')");
    as_role(&mut run, "shop", "SELECT outcome FROM redrive.reserve('pay', 'order-7', sha256('x'))");
    let refused = run.setup("PGUSER=shop PGPASSWORD=secret psql redrive -c 'SELECT FROM redrive.tasks' || true");
    assert!(refused.contains("permission denied for table tasks"), "{refused}");

    run.replace("DNS:db.internal", "DNS:localhost");
    let certificate = run.run_until("a self-signed certificate");
    run.run_block(&certificate);
    let server = database::start_with_certificate(&run.shell.directory, "server.crt", "server.key");
    let options = "sslmode=verify-full&sslrootcert=server.crt";
    let address = format!("postgres://redrive@localhost:{}/postgres?{options}", server.port());
    run.setup(&format!("redrive migrate --store '{address}'"));
    run.run_rest();
}

#[test]
fn the_commands_of_idempotency_lead_to_a_replayed_response() {
    let mut run = DocumentRun::new("docs/idempotency.md");
    run.setup("redrive serve");
    let printed = |run: &mut DocumentRun, name: &str| {
        let block = run.run_until(name);
        run.run_block(&block)
    };
    let reserved = printed(&mut run, "reserve");
    assert!(reserved.contains("\"outcome\":\"reserved\"") && reserved.contains("\"epoch\":1"), "{reserved}");
    let completed = printed(&mut run, "complete");
    assert!(completed.contains("\"state\":\"SUCCEEDED\""), "{completed}");
    let replayed = printed(&mut run, "replay").to_lowercase();
    assert!(replayed.starts_with("http/1.1 200 ok") && replayed.contains("idempotent-replayed: true"), "{replayed}");
    assert!(replayed.contains("\"resourceid\":\"pay_123\""), "{replayed}");
    let other = printed(&mut run, "another request");
    assert!(other.starts_with("HTTP/1.1 422") && !other.contains("pay_123"), "{other}");
    let shown = run.setup("redrive idempotency show create-payment order-7; redrive idempotency list");
    assert!(shown.contains("SUCCEEDED") && shown.contains("order-7"), "{shown}");

    run.setup("stop TERM");
    let _server = database::start(&mut run);
    run.send_to_target();
    let target = Target::listen(run.port("9000"));
    run.setup("createdb redrive; createdb shop");
    run.setup("REDRIVE_STORE=postgres://operator@localhost/redrive redrive serve");
    program_with_orders(&mut run, "redrive");
    let committed = printed(&mut run, "in your transaction");
    assert!(committed.contains("reserved"), "{committed}");
    target.wait_for("order-7");
    let inbox = printed(&mut run, "inbox");
    let outcomes: Vec<&str> = inbox.lines().filter_map(|line| line.split('"').nth(3)).collect();
    assert_eq!(outcomes, ["new", "duplicate"], "{inbox}");
    run.use_database("shop");
    printed(&mut run, "a table of your own");
    let transaction = run.run_until("its transaction");
    let first = run.run_block(&transaction);
    assert!(first.contains("IN_PROGRESS") && !first.contains("SUCCEEDED"), "{first}");
    let second = run.run_block(&transaction);
    assert!(second.contains("SUCCEEDED") && second.contains("201"), "the duplicate replays: {second}");
    let waited = run.setup(&at_the_same_time(&transaction.text));
    assert!(
        waited.contains("SUCCEEDED") && waited.contains("201"),
        "the second gets the first one's response: {waited}"
    );
    run.run_rest();
}

/// Runs a transaction with the key `order-8` twice at the same time, and prints what the second one printed: the first one is held
/// after its reservation until the second one waits for it.
fn at_the_same_time(transaction: &str) -> String {
    let of_other_key = transaction.replace("order-7", "order-8");
    let held = of_other_key.replace("-- 3. Complete", "\\! cat hold\n-- 3. Complete");
    assert_ne!(held, of_other_key, "there is no place to hold it");
    let sessions = |which: &str| {
        let count = format!("SELECT count(*) FROM pg_stat_activity WHERE datname = 'shop' AND {which}");
        format!("until [ \"$(psql shop -Atc \"{count}\")\" = 1 ]; do sleep 0.05; done\n")
    };
    let run =
        |text: &str, name: &str| format!("psql shop > {name}.out <<'END OF SQL' &\n{text}END OF SQL\n{name}=$!\n");
    [
        "mkfifo hold\n",
        &run(&held, "first"),
        &sessions("state = 'idle in transaction'"),
        &run(&of_other_key, "second"),
        &sessions("wait_event_type = 'Lock'"),
        "echo > hold\nwait $first $second\ncat second.out\n",
    ]
    .concat()
}

/// Makes a table of orders with order 7, which the role `shop` may change.
fn orders_in(database: &str) -> String {
    format!(
        "psql {database} -c 'CREATE TABLE orders (id int, status text)' -c 'INSERT INTO orders VALUES (7)' \
         -c 'GRANT SELECT, UPDATE ON orders TO shop'"
    )
}

/// Makes the role `shop` of a program, with an orders table and the one right in Redrive's schema that documents say it needs. SQL
/// blocks are run as that role from here on.
fn program_with_orders(run: &mut DocumentRun, database: &str) {
    let password = database::PASSWORD;
    run.setup(&format!("psql postgres -c \"CREATE ROLE shop LOGIN PASSWORD '{password}'\""));
    run.setup(&orders_in(database));
    run.setup(&format!("psql {database} -c 'GRANT USAGE ON SCHEMA redrive TO shop'"));
    run.use_database_as("shop", password, database);
}

#[test]
fn the_commands_of_guards_show_what_is_printed() {
    let mut run = DocumentRun::new("docs/guards.md");
    // Long enough for the slowest machine.
    run.setup("redrive serve --breaker-open 1h --breaker-longest-open 1h");
    let open = run.run_until("the breaker is open");
    let is_open = "redrive dependencies show http://127.0.0.1:9000 --json | grep -q '\"state\":\"open\"'";
    run.setup(&format!("until {is_open}; do sleep 0.05; done"));
    run.run_block(&open);
    run.run_rest();
}

#[test]
fn the_commands_of_alerts_test_a_sink_and_silence() {
    let mut run = DocumentRun::new("docs/alerts.md");
    let _sink = Target::listen(run.port("9000"));
    run.setup("redrive serve --alert-sinks on-call=slack:http://127.0.0.1:9000/");
    run.run_rest();
}

#[test]
fn the_commands_of_traces_work() {
    let mut run = DocumentRun::new("docs/traces.md");
    let serve = run.run_until("on");
    run.run_block(&serve);
    let target = Target::listen(run.port("9000"));
    run.run_rest();
    target.wait_for("order-7");
}

#[test]
fn the_commands_of_events_show_an_attempt() {
    let mut run = DocumentRun::new("docs/events.md");
    run.setup("redrive serve");
    let curl = run.run_until("curl");
    let printed = run.run_block(&curl);
    assert!(
        printed.contains("event: attempt\ndata: {\"id\":\"") && printed.contains("connection-refused"),
        "{printed}"
    );
    run.run_rest();
}

#[test]
fn the_commands_of_operating_see_a_dependency_die_and_return() {
    let mut run = DocumentRun::new("docs/operating.md");
    // Long enough for the slowest machine.
    run.setup("redrive serve --breaker-open 1h --breaker-longest-open 1h");
    let dead = run.run_until("the dependency is dead");
    run.run_block(&dead);
    let alerts = run.run_until("alerts fire");
    run.setup("until redrive alerts list | grep -q breaker-open; do sleep 0.05; done");
    run.run_block(&alerts);
    let server = run.run_until("the dependency is up again");
    run.run_block(&server);
    let returns = run.run_until("the dependency returns");
    run.run_block(&returns);
    let delivered = run.run_until("all is delivered");
    let count = "redrive tasks list --status SUCCEEDED --all --json | jq '.tasks | length'";
    run.setup(&format!("until [ \"$({count})\" = 20 ]; do sleep 0.05; done"));
    run.run_block(&delivered);
    run.run_rest();
}

#[test]
fn the_commands_of_simulate_show_what_is_printed() {
    DocumentRun::new("docs/simulate.md").run_rest();
}

#[test]
fn the_commands_of_lint_show_what_is_printed() {
    let mut run = DocumentRun::new("docs/lint.md");
    let sarif = run.run_until("sarif");
    run.shell.put("retry/policies.yaml", b"policies:\n  payments:\n    backoff: fixed\n    initialDelayMs: 500\n");
    // Findings are exit code 1, which `pipefail` would show.
    run.setup("set +o pipefail");
    run.run_block(&sarif);
    let kept = run.setup("jq -r '.runs[].results[].ruleId' retry.sarif");
    assert_eq!(kept, "fixed-interval");
    run.run_rest();
}

/// The documents of the tree, by their paths from its root.
fn documents() -> Vec<String> {
    let mut found = vec![];
    for directory in ["", "docs", "docs/decisions"] {
        let entries = std::fs::read_dir(root().join(directory)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        found.extend(
            names
                .filter(|name| name.ends_with(".md"))
                .map(|name| Path::new(directory).join(name).to_str().unwrap().to_owned()),
        );
    }
    found.sort();
    found
}

/// The blocks of a document.
fn read(path: &str) -> Vec<Block> {
    let text = std::fs::read_to_string(root().join(path)).unwrap();
    markdown::blocks(&text).unwrap_or_else(|wrong| panic!("{path}: {wrong}"))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

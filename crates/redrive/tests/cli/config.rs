//! `redrive config`, and what does not start.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::world::{Ended, Program, redrive, redrive_with_few_files};

fn config(directory: &Path, words: &[&str], variables: &[(&str, &str)]) -> Ended {
    let mut command = redrive(directory, &[&["config"], words].concat());
    command.envs(variables.iter().copied());
    Program::start(command).end()
}

fn setting(document: &Value, key: &str) -> (Value, Value) {
    let settings = document["settings"].as_array().unwrap();
    let found = settings.iter().find(|setting| setting["key"] == key).unwrap();
    (found["value"].clone(), found["from"].clone())
}

#[test]
fn without_configuration_everything_is_at_its_default() {
    let directory = tempfile::tempdir().unwrap();
    let document = config(directory.path(), &["--json"], &[]).with(0).json();
    assert_eq!(document["valid"], true);
    for setting in document["settings"].as_array().unwrap() {
        assert_eq!(setting["from"], json!({"kind": "default"}), "{setting}");
    }
    assert_eq!(setting(&document, "listen").0, "127.0.0.1:8620");
    config(directory.path(), &[], &[]).with(0).says(&["listen", "127.0.0.1:8620", "default"]);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "looking changes nothing");
}

#[test]
fn limits_follow_the_limit_of_open_files_and_say_so() {
    let directory = tempfile::tempdir().unwrap();
    let few = |words: &[&str]| {
        Program::start(redrive_with_few_files(directory.path(), 256, &[&["config"], words].concat())).end()
    };
    let document = few(&["--json"]).with(0).json();
    assert_eq!(document["openFiles"], 256);
    assert_eq!(setting(&document, "engine.max_in_flight"), (json!(76), json!({"kind": "open-files"})));
    few(&[]).with(0).says(&["api.max_connections", "96", "the limit of open files", "only 256 files may be open"]);
}

#[test]
fn a_flag_wins_over_a_variable_a_variable_over_the_file_and_the_file_over_the_default() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(
        directory.path().join("my.toml"),
        "listen = \"127.0.0.1:1\"\nstore = \"memory\"\n\n[engine]\nlane_concurrency = 11\nshutdown_grace = \"11s\"\n",
    )
    .unwrap();
    let variables =
        [("REDRIVE_LISTEN", "127.0.0.1:2"), ("REDRIVE_ENGINE_LANE_CONCURRENCY", "22"), ("REDRIVE_STORE", "")];
    let flags = ["--json", "--config", "my.toml", "--listen", "127.0.0.1:3"];
    let document = config(directory.path(), &flags, &variables).with(0).json();
    for (key, value, from) in [
        ("listen", json!("127.0.0.1:3"), json!({"kind": "flag", "flag": "--listen"})),
        (
            "engine.lane_concurrency",
            json!(22),
            json!({"kind": "environment", "variable": "REDRIVE_ENGINE_LANE_CONCURRENCY"}),
        ),
        ("engine.shutdown_grace", json!("11s"), json!({"kind": "file", "path": "my.toml", "line": 6})),
        ("store", json!("memory"), json!({"kind": "file", "path": "my.toml", "line": 2})),
        ("data_dir", json!("./redrive-data"), json!({"kind": "default"})),
    ] {
        assert_eq!(setting(&document, key), (value, from), "{key}");
    }
    let by_variable = config(directory.path(), &["--json"], &[("REDRIVE_CONFIG", "my.toml")]).with(0).json();
    assert_eq!(setting(&by_variable, "listen").0, "127.0.0.1:1");
    let by_accident = config(directory.path(), &["--json"], &[]).with(0).json();
    assert_eq!(setting(&by_accident, "store").0, "sqlite", "no file is read that was not named");
}

#[test]
fn an_invalid_configuration_file_does_not_start_and_is_explained() {
    for (file, variable, expected) in [
        ("listn = 1", ("", ""), "c.toml:1: listn = 1: there is no such setting; did you mean listen?"),
        ("\nlisten = 8620", ("", ""), "c.toml:2: listen = 8620: must be a string, not a number"),
        ("listen = ", ("", ""), "c.toml:1: is not TOML: "),
        (
            "[engine]\nlane_concurrency = 0",
            ("", ""),
            "c.toml:2: engine.lane_concurrency = 0: must be a whole number from 1 to 100000",
        ),
        (
            "[limits]\nmax_body_bytes = 10000000",
            ("REDRIVE_API_MAX_MEMORY_BYTES", "67108864"),
            "limits.max_body_bytes = 10000000: must be at most 8388608, an eighth of api.max_memory_bytes",
        ),
        ("[api]\nmax_connections = 0", ("", ""), "api.max_connections = 0: must be a whole number from 1 to "),
        ("[api]\nwrite_timeout = \"0s\"", ("", ""), "api.write_timeout = \"0s\": must be from 1s to 1h"),
        ("[engine]\nlane_concurrency = \"5\"", ("", ""), "without quotes"),
        ("[engine]\nlease_margin = 5000", ("", ""), "must be a duration with its unit, in quotes: \"5000ms\""),
        ("[engine]\nlease_margin = \"500ms\"", ("", ""), "engine.lease_margin = \"500ms\": must be from 1s to 1h"),
        ("[engine]\nmax_in_flight = 5", ("", ""), "engine.max_in_flight = 5: must be at least lane_concurrency (128)"),
        ("[guards]\nbudget = true", ("", ""), "c.toml:2: guards.budget = true: must be on or off, in quotes"),
        ("[guards]\nbudget_drain = \"fast\"", ("", ""), "must be earned or strict"),
        (
            "[guards]\nbudget_percent = 101",
            ("", ""),
            "guards.budget_percent = 101: must be a whole number from 0 to 100",
        ),
        (
            "[guards]\nbreaker_open = \"2m\"",
            ("", ""),
            "guards.breaker_longest_open = \"1m\": must be at least guards.breaker_open (2m)",
        ),
        (
            "[guards]\nconcurrency_min = 30",
            ("", ""),
            "guards.concurrency_start = 20: must be at least guards.concurrency_min (30)",
        ),
        (
            "[guards]\nconcurrency_min = 200",
            ("", ""),
            "c.toml:2: guards.concurrency_min = 200: must be at most engine.lane_concurrency (128)",
        ),
        (
            "[guards]\nbudget = \"off\"",
            ("REDRIVE_STANDARD", "enforce"),
            "c.toml:2: guards.budget = \"off\": must be on with standard = \"enforce\": services must have a retry budget (R-7)",
        ),
        (
            "[guards]\nbudget_percent = 21",
            ("REDRIVE_STANDARD", "enforce"),
            "guards.budget_percent = 21: must be at most 20 with standard = \"enforce\" (R-7)",
        ),
        (
            "[transport]\ndns_server = [\"10.0.0.53\", \"dns.test\"]",
            ("", ""),
            "c.toml:2: transport.dns_server = [\"10.0.0.53\", \"dns.test\"]: must be IP addresses, each with or without a port",
        ),
    ] {
        assert_refused(file, variable, &[], expected);
    }
}

#[test]
fn invalid_variables_and_flags_do_not_start_and_are_explained() {
    for (variable, flags, expected) in [
        (
            ("", ""),
            &["--max-body-memory", "16777215"][..],
            "--max-body-memory: engine.max_body_bytes = \"16777215\": must be a whole number from 16777216 to ",
        ),
        (
            ("", ""),
            &["--max-api-memory", "67108863"],
            "--max-api-memory: api.max_memory_bytes = \"67108863\": must be a whole number from 67108864 to ",
        ),
        (
            ("REDRIVE_TRANSPORT_DNS_SERVER", "10.0.0.53:x"),
            &[],
            "transport.dns_server = \"10.0.0.53:x\": must be IP addresses",
        ),
        (
            ("", ""),
            &["--dns-server", "10.0.0.53", "--dns-server", "::1:0:x"],
            "--dns-server: transport.dns_server = [\"10.0.0.53\", \"::1:0:x\"]: must be IP addresses",
        ),
        (("REDRIVE_STORE", "mongodb"), &[], "REDRIVE_STORE: store = \"mongodb\": must be sqlite, memory or postgres:"),
        (("REDRIVE_LOG_LEVEL", "loud"), &[], "REDRIVE_LOG_LEVEL: log.level = \"loud\": must be error, warn"),
        (
            ("REDRIVE_CONFIG", "missing.toml"),
            &[],
            "missing.toml: the file that REDRIVE_CONFIG names cannot be read: No such file",
        ),
        (("", ""), &["--listen", "localhost"][..], "--listen: listen = \"localhost\": must be HOST:PORT"),
        (("", ""), &["--worker-threads", "0"], "must be a whole number from 1 to 1024, or auto"),
        (("", ""), &["--data-dir", "a-file"], "--data-dir: data_dir = \"a-file\": must be a directory"),
        (("", ""), &["--extra-ca", "a-file"], "could not use the certificates in a-file"),
        (
            ("", ""),
            &["--extra-ca", "no.pem"],
            "transport.extra_ca = [\"no.pem\"]: could not read the certificates in no.pem: No such file",
        ),
    ] {
        assert_refused("", variable, flags, expected);
    }
}

/// Neither `config` nor `serve` accepts this file, variable and flags; an empty text is none.
fn assert_refused(file: &str, (variable, value): (&str, &str), flags: &[&str], expected: &str) {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a-file"), "x").unwrap();
    fs::write(directory.path().join("c.toml"), file).unwrap();
    let with_file: &[&str] = if file.is_empty() { &[] } else { &["--config", "c.toml"] };
    for command in ["config", "serve"] {
        let mut command = redrive(directory.path(), &[&[command], with_file, flags].concat());
        if !variable.is_empty() {
            command.env(variable, value);
        }
        let ended = Program::start(command).end().with(78).says(&[expected]);
        assert!(!ended.stderr.contains("panicked") && !ended.stderr.contains("RUST_BACKTRACE"), "{ended:?}");
    }
}

#[test]
fn all_problems_are_said_at_once() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("c.toml"), "colour = \"red\"\nlisten = \"x\"\n[engine]\nretention = true\n")
        .unwrap();
    let flags = ["--config", "c.toml", "--store", "paper"];
    let ended = config(directory.path(), &flags, &[("REDRIVE_LOG_FORMAT", "xml")]).with(78);
    ended.says(&[
        "c.toml:1: colour",
        "c.toml:2: listen",
        "c.toml:4: engine.retention",
        "REDRIVE_LOG_FORMAT",
        "--store",
    ]);
    let document = config(directory.path(), &["--json", "--store", "paper"], &[]).with(78).json();
    assert_eq!((&document["valid"], document["problems"].as_array().unwrap().len()), (&json!(false), 1));
}

#[test]
fn an_unknown_variable_is_a_warning_with_the_nearest_name() {
    let directory = tempfile::tempdir().unwrap();
    config(directory.path(), &[], &[("REDRIVE_DATADIR", "x")])
        .with(0)
        .says(&["warning: the environment variable REDRIVE_DATADIR is not a setting; did you mean REDRIVE_DATA_DIR?"]);
}

#[test]
fn the_example_can_be_used_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let example = config(directory.path(), &["--example"], &[]).with(0).stdout;
    fs::write(directory.path().join("redrive.toml"), example).unwrap();
    let document = config(directory.path(), &["--json", "--config", "redrive.toml"], &[]).with(0).json();
    let defaults = config(directory.path(), &["--json"], &[]).with(0).json();
    for each in defaults["settings"].as_array().unwrap() {
        let (value, from) = setting(&document, each["key"].as_str().unwrap());
        assert_eq!((&value, &from["kind"]), (&each["value"], &json!("file")));
    }
}

#[test]
fn operations_and_consumers_have_sections_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("my.toml");
    fs::write(
        &file,
        "[idempotency]\nretention = \"48h\"\n\n[idempotency.operations.create-payment]\nfinancial = true\n\n\
         [idempotency.operations.refund]\nfinancial = true\nretention = \"30d\"\n\n\
         [idempotency.consumers.billing]\nwindow = \"14d\"\n",
    )
    .unwrap();
    let document = config(directory.path(), &["--json", "--config", "my.toml"], &[]).with(0).json();
    assert_eq!(setting(&document, "idempotency.retention").0, "2d");
    let operations = json!(["create-payment=financial", "refund=financial:30d"]);
    assert_eq!(setting(&document, "idempotency.operations").0, operations);
    assert_eq!(setting(&document, "idempotency.consumers").0, json!(["billing=14d"]));
    let words = [("REDRIVE_IDEMPOTENCY_OPERATIONS", "export=2d,create-payment=financial")];
    let document = config(directory.path(), &["--json", "--config", "my.toml"], &words).with(0).json();
    assert_eq!(setting(&document, "idempotency.operations").0, json!(["create-payment=financial", "export=2d"]));

    fs::write(&file, "[idempotency.operations.pay]\nretention = \"1s\"\n").unwrap();
    let wrong = "my.toml:1: idempotency.operations = {…}: pay.retention must be from 1m to 90d";
    config(directory.path(), &["--config", "my.toml"], &[]).with(78).says(&[wrong]);
}

#[test]
fn a_retention_that_breaks_the_standard_does_not_start_where_it_is_enforced() {
    let directory = tempfile::tempdir().unwrap();
    for (flag, value, says) in [
        ("--idempotency-retention", "23h", "idempotency.retention = \"23h\": must be at least 1d"),
        ("--financial-retention", "23h", "idempotency.financial_retention = \"23h\": must be at least 1d"),
        ("--inbox-window", "6d", "idempotency.inbox_window = \"6d\": must be at least 7d"),
        ("--idempotency-operations", "pay=1h", "pay must be at least 1d with standard = \"enforce\" (R-6)"),
        ("--inbox-consumers", "billing=1d", "billing must be at least 7d with standard = \"enforce\" (R-6)"),
    ] {
        let serve = ["serve", "--store", "memory", "--listen", "127.0.0.1:0", "--standard", "enforce", flag, value];
        Program::start(redrive(directory.path(), &serve)).end().with(78).says(&[says]);
        config(directory.path(), &[flag, value], &[]).with(0);
    }
}

//! `redrive servers`, and servers by their names.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::world::{Ended, Program, Reply, Service, Target, redrive};

/// Runs a client command in a directory with this file of servers, and without any other choice of a server.
fn run_with(directory: &Path, file: &str, words: &[&str]) -> Ended {
    fs::create_dir_all(directory.join("redrive")).unwrap();
    let path = directory.join("redrive/servers.toml");
    fs::write(&path, file).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
    run(directory, words)
}

fn run(directory: &Path, words: &[&str]) -> Ended {
    Program::start(redrive(directory, words)).end()
}

#[test]
fn a_server_is_reached_by_its_name_and_by_default() {
    let (directory, service) = (tempfile::tempdir().unwrap(), Service::start());
    let nowhere = "[servers.nowhere]\nurl = 'http://127.0.0.1:1'\n";
    let file = format!("default = 'here'\n[servers.here]\nurl = '{}'\n{nowhere}", service.url);
    let id = service.send(&["http://127.0.0.1:1/", "--delay", "1h"]);
    let list = |words: &[&str]| run_with(directory.path(), &file, &[&["tasks", "list"], words].concat());
    list(&["--server", "here"]).with(0).says(&[&id]);
    list(&[]).with(0).says(&[&id]);
    list(&["--server", "nowhere"]).with(6).says(&["cannot reach the server at http://127.0.0.1:1"]);
    let by_variable = |server: &str| {
        let mut command = redrive(directory.path(), &["tasks", "list"]);
        command.env("REDRIVE_SERVER", server);
        Program::start(command).end()
    };
    by_variable("nowhere").with(6);
    by_variable("").with(0).says(&[&id]);

    run(directory.path(), &["servers"]).with(0).says(&[
        "SERVER",
        &format!("here     {}", service.url),
        &format!("commands without --server go to {}", service.url),
    ]);
    let document = run(directory.path(), &["servers", "--json"]).with(0).json();
    assert_eq!((&document["servers"][0]["name"], &document["servers"][0]["default"]), (&"here".into(), &true.into()));

    // What is printed to be copied names the server by its name.
    let words = ["send", "http://127.0.0.1:1/", "--delay", "1h", "--server", "here"];
    let sent = run(directory.path(), &words).with(0).stdout;
    assert!(sent.lines().any(|line| line.starts_with("watch it: ") && line.ends_with(" --server here")), "{sent}");
    // Also a URL, unless it is that of the default.
    for (url, is_named) in [(service.url.clone(), false), (service.url.replace("127.0.0.1", "localhost"), true)] {
        let words = ["send", "http://127.0.0.1:1/", "--delay", "1h", "--server", &url];
        let sent = run(directory.path(), &words).with(0).stdout;
        assert_eq!(sent.contains(&format!(" --server {url}")), is_named, "{sent}");
    }
}

#[test]
fn the_user_of_a_named_server_is_sent_with_the_password_of_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let proxy = Target::replying(|arrival| {
        let sent = arrival.headers.get("authorization").map_or("nothing", |values| values[0].as_str());
        Reply { status: 403, body: format!("you sent {sent}") }
    });
    fs::create_dir_all(directory.path().join("redrive")).unwrap();
    fs::write(directory.path().join("redrive/secret"), "s@e:cret\n").unwrap();
    let file = |password: &str| format!("[servers.a]\nurl = '{}'\nuser = 'anna'\n{password}\n", proxy.url);
    let list = ["tasks", "list", "--server", "a"];
    for password in ["password_file = 'secret'", "password = 's@e:cret'"] {
        let ended = run_with(directory.path(), &file(password), &list).with(1);
        ended.says(&["you sent Basic YW5uYTpzQGU6Y3JldA=="]);
    }
    let readable = directory.path().join("redrive/servers.toml");
    fs::set_permissions(&readable, Permissions::from_mode(0o644)).unwrap();
    run(directory.path(), &list).with(1).says(&["can be read by other users: chmod 600"]);
    fs::remove_file(directory.path().join("redrive/secret")).unwrap();
    let missing = run_with(directory.path(), &file("password_file = 'secret'"), &list);
    missing.with(78).says(&["the password in", "secret cannot be read"]);
}

#[test]
fn a_name_that_is_none_and_a_file_that_is_wrong_are_said() {
    let directory = tempfile::tempdir().unwrap();
    let list = ["tasks", "list", "--server", "stagin"];
    run(directory.path(), &list).with(78).says(&["there is no server stagin", "servers.toml does not exist"]);
    run(directory.path(), &["servers"]).with(0).says(&["no names", "--example", "go to http://127.0.0.1:8620"]);
    let file = "[servers.staging]\nurl = 'http://127.0.0.1:1'\n";
    run_with(directory.path(), file, &list).with(78).says(&["there is no server stagin", "did you mean staging?"]);
    let words = ["tasks", "list", "--server", "localhost:8620"];
    run(directory.path(), &words).with(2).says(&["must be a URL such as http://127.0.0.1:8620", "servers.toml"]);
    let wrong = run_with(directory.path(), "[servers.a]\nurl = 7\n", &["tasks", "list"]).with(78);
    wrong.says(&["servers.toml:2: url must be a text in quotes"]);
    let mut command = redrive(directory.path(), &["tasks", "list"]);
    command.env("REDRIVE_SERVER", "https://anna:s e c r e t@h");
    let ended = Program::start(command).end().with(2);
    assert!(!ended.stderr.contains("s e c r e t"), "{}", ended.stderr);
    ended.says(&["--server must be a URL"]);
    // The file is not read where a URL is given.
    run(directory.path(), &["tasks", "list", "--server", "http://127.0.0.1:1"]).with(6);
    let example = run(directory.path(), &["servers", "--example"]).with(0).stdout;
    run_with(directory.path(), &example, &["servers"]).with(0).says(&["staging", "production"]);
}

#[test]
fn no_command_takes_the_answer_of_another_server_for_a_success() {
    let directory = tempfile::tempdir().unwrap();
    for body in ["<html>hello</html>", r#"{"hello": "world"}"#] {
        let other = Target::replying(move |_| Reply { status: 200, body: body.into() });
        for words in [
            &["doctor"][..],
            &["tasks", "list"],
            &["tasks", "cancel", "01a1f5c2-0441-7000-85c4-207f6ec45911"],
            &["policies", "list"],
            &["policies", "delete", "webhooks"],
            &["dependencies", "list"],
            &["dependencies", "pause", "billing"],
            &["alerts", "end-silence", "cad7c0ab-7e9d-48c5-bc99-d21fb5fff6a9"],
            &["idempotency", "delete", "create-payment", "order-7", "--etag", "1"],
            &["send", "http://127.0.0.1:1/"],
            &["nodes"],
            &["report"],
        ] {
            let ended = run(directory.path(), &[words, &["--server", &other.url]].concat()).with(1);
            assert!(ended.stderr.contains("not that of a Redrive server"), "{words:?} {body}: {ended:?}");
            assert_eq!(ended.stdout, "", "{words:?}");
        }
    }
}

#[test]
fn a_proxy_that_asks_for_a_user_is_said_to_and_its_page_is_not_taken_for_json() {
    let directory = tempfile::tempdir().unwrap();
    let proxy = Target::replying(|_| Reply { status: 401, body: "<html>who are you?</html>".into() });
    let ended = run(directory.path(), &["tasks", "list", "--json", "--server", &proxy.url]).with(1);
    assert_eq!(ended.stdout, "");
    ended.says(&["401 Unauthorized", "asks for a user and a password"]);
}

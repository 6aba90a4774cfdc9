//! A server behind TLS.

use std::path::Path;

use crate::world::{Business, Program, Service, Target, TlsProxy, redrive};

/// Larger than what is sent within the submission.
const UPLOADED: usize = 2 * 1024 * 1024;

#[test]
fn a_server_whose_certificate_is_trusted_is_used_over_tls() {
    let (service, target) = (Service::start(), Target::answering(&[200]));
    let proxy = TlsProxy::start(service.authority());
    let file = proxy.ca_file();
    let trusting = ["--server", &proxy.url, "--extra-ca", file.to_str().unwrap()];
    let body = "x".repeat(UPLOADED);
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("body"), &body).unwrap();
    let words = [&["send", &target.url, "-d", "@body", "--wait"][..], &trusting].concat();
    Program::start(redrive(directory.path(), &words)).end().with(0).says(&["SUCCEEDED after 1 attempt"]);
    assert_eq!(target.arrival().body, body.as_bytes());
    let listed = Program::start(redrive(Path::new("."), &[&["tasks", "list", "--json"][..], &trusting].concat()));
    assert_eq!(listed.end().with(0).json()["tasks"][0]["status"], "SUCCEEDED");
}

#[test]
fn the_variable_of_the_service_names_files_of_authorities_too() {
    let service = Service::start();
    let proxy = TlsProxy::start(service.authority());
    let mut command = redrive(Path::new("."), &["tasks", "list"]);
    command.env("REDRIVE_SERVER", &proxy.url).env("REDRIVE_TRANSPORT_EXTRA_CA", proxy.ca_file());
    Program::start(command).end().with(0);
    let mut command = redrive(Path::new("."), &["tasks", "list"]);
    command.env("REDRIVE_SERVER", &service.url).env("REDRIVE_TRANSPORT_EXTRA_CA", "");
    Program::start(command).end().with(0);
}

#[test]
fn a_certificate_that_is_not_trusted_ends_with_6_and_says_what_to_do() {
    let service = Service::start();
    let (proxy, other) = (TlsProxy::start(service.authority()), TlsProxy::start(service.authority()));
    let file = other.ca_file();
    for trusted in [&[][..], &["--extra-ca", file.to_str().unwrap()]] {
        let words = [&["tasks", "list", "--server", &proxy.url][..], trusted].concat();
        Program::start(redrive(Path::new("."), &words)).end().with(6).says(&[
            &format!("error: cannot reach the server at {}: ", proxy.url),
            "invalid peer certificate",
            "(trust the authority of its certificate with --extra-ca FILE or REDRIVE_TRANSPORT_EXTRA_CA)",
        ]);
    }
}

#[test]
fn a_certificate_for_another_name_is_not_blamed_on_its_authority() {
    let service = Service::start();
    let proxy = TlsProxy::start(service.authority());
    let (file, url) = (proxy.ca_file(), proxy.url.replace("localhost", "127.0.0.1"));
    let words = ["tasks", "list", "--server", &url, "--extra-ca", file.to_str().unwrap()];
    Program::start(redrive(Path::new("."), &words))
        .end()
        .with(6)
        .says(&["(connect to a name that the certificate has"]);
}

#[test]
fn a_file_of_authorities_that_cannot_be_used_ends_with_78() {
    let words = ["tasks", "list", "--server", "https://localhost:1", "--extra-ca", "no.pem"];
    Program::start(redrive(Path::new("."), &words)).end().with(78).says(&[
        "error: cannot connect to https://localhost:1: could not read the certificates in no.pem: No such file",
    ]);
}

#[test]
fn a_server_that_does_not_speak_tls_ends_with_6_and_says_so() {
    let service = Service::start();
    let proxy = TlsProxy::start(service.authority());
    let secure = service.url.replace("http://127.0.0.1", "https://localhost");
    let file = proxy.ca_file();
    let words = ["tasks", "list", "--server", &secure, "--extra-ca", file.to_str().unwrap()];
    Program::start(redrive(Path::new("."), &words)).end().with(6).says(&["does it speak TLS?"]);
}

#[test]
fn the_outbox_relay_hands_rows_over_by_tls() {
    let (service, target, business) = (Service::start(), Target::answering(&[200, 200]), Business::start());
    let proxy = TlsProxy::start(service.authority());
    business.insert(&target.url, 2);
    let file = proxy.ca_file();
    business.relay_to(&proxy.url, &["--once", "--extra-ca", file.to_str().unwrap()]).end().with(0);
    assert_eq!(business.ids(), Vec::<String>::new());
    assert_eq!(service.run(&["tasks", "list", "--json"]).with(0).json()["tasks"].as_array().unwrap().len(), 2);
}

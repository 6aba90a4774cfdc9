//! Logging in: passwords and TLS.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

mod support;

use std::fs;
use std::net::TcpListener;

use redrive_core::Class;
use redrive_schedule_redis::{Options, Schedule};
use redrive_testbed::Redis;
use redrive_testbed::redis::Options as ServerOptions;
use support::*;

async fn connect(address: &str, root_certificates: Option<Vec<u8>>) -> Result<Schedule, String> {
    let options = Options { root_certificates, ..Options::default() };
    let schedule = Schedule::new(address.parse().unwrap(), options).unwrap();
    schedule.connect().await.map_err(|failure| format!("{failure} {failure:?}"))?;
    Ok(schedule)
}

#[tokio::test]
async fn a_password_lets_in_and_is_not_in_the_error_when_it_does_not() {
    let settings = [("requirepass", "open-sesame")];
    let redis = Redis::start_with(ServerOptions { settings: &settings, ..ServerOptions::default() });
    let host = redis.url().replace("redis://", "");
    let schedule = connect(&format!("redis://:open-sesame@{host}"), None).await.unwrap();
    fill(&schedule).await;
    add(&schedule, [task("a", 1, 1)]).await;
    assert_eq!(take(&schedule, "a", 1, 1).await.tasks, [task("a", 1, 1)]);

    for address in [format!("redis://:open-barley@{host}"), format!("redis://ali:open-barley@{host}"), redis.url()] {
        let error = match connect(&address, None).await {
            Ok(schedule) => schedule.heads(&[(lane("a"), Class::First)]).await.remove(0).unwrap_err().to_string(),
            Err(error) => error,
        };
        assert!(error.contains("NOAUTH") || error.contains("WRONGPASS") || error.contains("authentication"), "{error}");
        assert!(!error.contains("barley"), "{error}");
    }
}

#[tokio::test]
async fn tls_is_used_with_a_server_that_can_be_trusted_and_with_no_other() {
    let files = tempfile::tempdir().unwrap();
    let file = |name: &str| files.path().join(name).to_str().unwrap().to_owned();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let certificate = made.cert.pem();
    fs::write(file("certificate"), &certificate).unwrap();
    fs::write(file("key"), made.signing_key.serialize_pem()).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let (certificate_file, key_file) = (file("certificate"), file("key"));
    let settings = [
        ("tls-port", port.as_str()),
        ("tls-cert-file", certificate_file.as_str()),
        ("tls-key-file", key_file.as_str()),
        ("tls-ca-cert-file", certificate_file.as_str()),
        ("tls-auth-clients", "no"),
    ];
    let _redis = Redis::start_with(ServerOptions { settings: &settings, ..ServerOptions::default() });
    let address = format!("rediss://127.0.0.1:{port}");

    let schedule = connect(&address, Some(certificate.into_bytes())).await.unwrap();
    fill(&schedule).await;
    add(&schedule, [task("a", 1, 1)]).await;
    assert_eq!(take(&schedule, "a", 1, 1).await.tasks, [task("a", 1, 1)]);
    let error = connect(&address, None).await.err().unwrap();
    assert!(error.contains("certificate"), "{error}");
}

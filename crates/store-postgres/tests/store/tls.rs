//! Connections over TLS, to a server whose certificate is signed by a private authority.

use std::io::Write;

use crate::support::node;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use redrive_store::Store;
use redrive_store_postgres::{Options, PostgresStore};
use redrive_testbed::{Postgres, postgres};
use tempfile::NamedTempFile;

/// A server with a certificate for `localhost`, and a file with the authority that signed it.
fn server() -> (Postgres, NamedTempFile) {
    let key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(authority.self_signed(&key).unwrap().pem().as_bytes()).unwrap();
    let server_key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = certificate.signed_by(&server_key, &Issuer::new(authority, key)).unwrap();
    let options = postgres::Options {
        fsync: false,
        settings: &[("ssl", "on"), ("ssl_cert_file", "its.pem"), ("ssl_key_file", "its.key")],
        files: &[("its.pem", &certificate.pem()), ("its.key", &server_key.serialize_pem())],
    };
    (Postgres::start_with(options), file)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authority_of_ones_own_is_trusted_when_it_is_named() {
    let (postgres, authority) = server();
    let database = postgres.fresh_database();
    let url = database.url().replace("127.0.0.1", "localhost");
    let named = format!("{url}?sslmode=verify-full&sslrootcert={}", authority.path().display());
    let extra = vec![authority.path().to_owned()];
    // address, extra files, the error if it is refused
    let cases = [
        (format!("{url}?sslmode=require"), vec![], Some("not signed by a trusted authority; ")),
        (format!("{url}?sslmode=require"), extra.clone(), None),
        (named, vec![], None),
        (format!("{}?sslmode=verify-full", database.url()), extra, Some("not for 127.0.0.1, but for localhost; ")),
        (
            format!("{url}?sslmode=require&sslrootcert=/nowhere.pem"),
            vec![],
            Some("sslrootcert: could not read the certificates in /nowhere.pem"),
        ),
        (format!("{url}?sslmode=disable"), vec![], None),
    ];
    for (url, extra_ca, refusal) in cases {
        let opened = PostgresStore::open(Options { extra_ca, ..Options::new(&url, node("one")) }).await;
        match (opened, refusal) {
            (Ok(store), None) => store.close().await,
            (Ok(_), Some(refusal)) => panic!("{url}: expected {refusal}"),
            (Err(error), Some(refusal)) => assert!(error.to_string().contains(refusal), "{url}: {error}"),
            (Err(error), None) => panic!("{url}: {error}"),
        }
    }
}

//! Connections over TLS, to a server whose certificate is signed by a private authority.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};

use crate::support::{NEVER, node};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use redrive_store::Store;
use redrive_store_postgres::connect::{Address, Terms};
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

/// What a client asks first that wants TLS.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// What a server without TLS reads from one client until that one leaves.
fn all_that_one_client_sends(listener: &TcpListener) -> Vec<u8> {
    // No TLS; then, for a client that goes on, a demand for the password in clear text.
    let answers: [&[u8]; 2] = [b"N", &[b'R', 0, 0, 0, 8, 0, 0, 0, 3]];
    let (mut client, _) = listener.accept().unwrap();
    let mut received = Vec::new();
    let mut read = |client: &mut TcpStream| {
        let mut bytes = [0; 1024];
        // A client that closes with an answer unread resets the connection.
        let length = match client.read(&mut bytes) {
            Err(error) if error.kind() == ErrorKind::ConnectionReset => 0,
            length => length.unwrap(),
        };
        received.extend_from_slice(&bytes[..length]);
        length > 0
    };
    for answer in answers {
        if !read(&mut client) {
            return received;
        }
        client.write_all(answer).unwrap();
    }
    read(&mut client);
    received
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_to_a_server_without_tls_when_the_address_demands_tls_however_that_is_written() {
    let mut authority = NamedTempFile::new().unwrap();
    let certificate = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    authority.write_all(certificate.cert.pem().as_bytes()).unwrap();
    let file = authority.path().display();
    let url = |options: &str| format!("postgres://user:SECRET@127.0.0.1:PORT/db?{options}");
    let pairs = |options: &str| format!("host=127.0.0.1 port=PORT user=user password=SECRET{options}");
    let demanding = [
        url("sslmode=require"),
        url("sslmode=verify-ca"),
        url("sslmode=verify-full"),
        url("%73slmode=require"),
        url("ssl%6Dode=verify-full"),
        url("%73%73%6c%6d%6f%64%65=%72equire"),
        url(&format!("&application_name=a&%73slmode=verify-full&ssl%72ootcert={file}&")),
        url("sslmode=disable&sslmode=require"),
        pairs(" sslmode=require"),
        pairs(" sslmode=verify-full"),
        pairs(" sslmode = require"),
        pairs(" sslmode =verify-full"),
        pairs(" sslmode= require"),
        pairs("\tsslmode=require"),
        pairs("\nsslmode=require\n"),
        pairs("\r\nsslmode\t=\r\nverify-full"),
        pairs("\u{a0}sslmode=require"),
        pairs(" sslmode='require'"),
        pairs(r" sslmode='verify\-full'dbname=db"),
        pairs(r" sslmode=re\quire"),
        pairs(&format!("\tsslrootcert = '{file}'\tsslmode='verify-ca'")),
        pairs(" application_name=x://y sslmode=require"),
        pairs(" application_name='sslmode=disable' sslmode = require"),
    ];
    let not_demanding = [
        url(""),
        url("%73slmode=prefer"),
        pairs(" application_name=sslmode sslmode = prefer"),
        pairs(r" application_name='\' sslmode=require'"),
    ];
    let cases = demanding.map(|address| (address, true)).into_iter();
    for (address, demands) in cases.chain(not_demanding.map(|address| (address, false))) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = address.replace("PORT", &listener.local_addr().unwrap().port().to_string());
        let terms = Terms { name: "test", settings: &[], extra_ca: &[], timeout: NEVER };
        let connection = Address::read(&address, &terms).unwrap();
        let server = tokio::task::spawn_blocking(move || all_that_one_client_sends(&listener));
        let Err(refused) = connection.connect().await else { panic!("{address:?}: connected") };
        let received = server.await.unwrap();
        let shown = String::from_utf8_lossy(&received);
        assert!(received.starts_with(&SSL_REQUEST), "{address:?}: {shown:?}");
        if demands {
            assert_eq!(received.len(), SSL_REQUEST.len(), "{address:?}: {shown:?}");
            let refused = refused.to_string();
            assert!(refused.starts_with("the server does not offer TLS, and sslmode="), "{address:?}: {refused}");
        } else {
            // The server is one that would have got the password.
            assert!(shown.contains("SECRET"), "{address:?}: {shown:?}");
        }
    }
}

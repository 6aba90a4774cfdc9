//! Addresses of PostgreSQL servers that cannot be used: what `serve`, `migrate` and `outbox relay` say, and their exit
//! codes. The servers are real, with certificates of their own.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use redrive_testbed::postgres::Options;
use redrive_testbed::{Postgres, free_port};
use tempfile::TempDir;

use crate::world::{Ended, Program, redrive};

/// Who may connect to which database, and how.
const ENTRIES: &str = "
host    postgres      all all trust
hostssl only_tls      all all trust
hostssl certificates  all all trust clientcert=verify-ca
host    passwords     all all scram-sha-256
";

/// Certificates for servers, and the authority that signs them.
struct Certificates {
    authority: CertifiedIssuer<'static, KeyPair>,
}

/// A server's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Good,
    Expired,
    /// Self-signed, as `openssl req -x509` makes it.
    Authority,
}

impl Certificates {
    fn new() -> Self {
        Certificates { authority: CertifiedIssuer::self_signed(of_authority(), KeyPair::generate().unwrap()).unwrap() }
    }

    /// A server for `localhost` that shows a certificate of this kind.
    fn server(&self, kind: Kind) -> Postgres {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        if kind == Kind::Expired {
            params.not_before = date_time_ymd(2019, 1, 1);
            params.not_after = date_time_ymd(2020, 1, 1);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = match kind {
            Kind::Authority => of_authority().self_signed(&key),
            Kind::Good | Kind::Expired => params.signed_by(&key, &self.authority),
        };
        Postgres::start_with(Options {
            fsync: false,
            settings: &[
                ("ssl", "on"),
                ("ssl_cert_file", "its.pem"),
                ("ssl_key_file", "its.key"),
                ("ssl_ca_file", "ca.pem"),
            ],
            files: &[
                ("its.pem", &certificate.unwrap().pem()),
                ("its.key", &key.serialize_pem()),
                ("ca.pem", &self.authority.pem()),
                ("pg_hba.conf", ENTRIES),
            ],
        })
    }
}

fn of_authority() -> CertificateParams {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

/// A file of a test.
fn put(directory: &TempDir, name: &str, content: &str) -> PathBuf {
    let path = directory.path().join(name);
    std::fs::write(&path, content).unwrap();
    path
}

/// Runs the three commands that connect to a PostgreSQL at `address`, each with the exit code that it ends with.
fn refused(address: &str, service_code: i32, relay_code: i32) -> Vec<Ended> {
    let serve = ["serve", "--listen", "127.0.0.1:0", "--store", address];
    let relay =
        ["outbox", "relay", "--once", "--table", "app.outbox", "--from", address, "--server", "http://127.0.0.1:1"];
    let commands = [(&serve[..], service_code), (&["migrate", "--store", address], service_code), (&relay, relay_code)];
    let directory = tempfile::tempdir().unwrap();
    let ended = commands.map(|(words, code)| Program::start(redrive(directory.path(), words)).end().with(code));
    for ended in &ended {
        let text = &ended.stderr;
        assert_eq!(text.matches("error:").count(), 1, "one error and no errors within it: {text}");
        assert!(!text.contains("s3cret"), "{text}");
    }
    ended.into()
}

/// Configuration that is useless until it is changed: the same message from all three.
fn misconfigured(address: &str, told: &[&str]) {
    for ended in refused(address, 78, 78) {
        ended.says(told);
    }
}

#[test]
fn tls_that_cannot_work_ends_the_start_with_78_and_names_sslmode_and_sslrootcert() {
    let (certificates, directory) = (Certificates::new(), tempfile::tempdir().unwrap());
    let server = certificates.server(Kind::Good);
    let own = put(&directory, "ca.pem", &certificates.authority.pem());
    // Of the same name, as after a renewal.
    let other = put(&directory, "other.pem", &Certificates::new().authority.pem());
    let (own, other) = (own.to_str().unwrap(), other.to_str().unwrap());
    let at = |host: &str, database: &str, options: &str| {
        format!("postgres://redrive:s3cret@{host}:{}/{database}?{options}", server.port())
    };
    let trusted = at("localhost", "postgres", &format!("sslmode=verify-full&sslrootcert={own}"));
    let migrate = ["migrate", "--store", &trusted];
    Program::start(redrive(Path::new("."), &migrate)).end().with(0).says(&["created the schema"]);
    let extra = ["migrate", "--extra-ca", own, "--store", &at("localhost", "postgres", "sslmode=require")];
    Program::start(redrive(Path::new("."), &extra)).end().with(0).says(&["already"]);

    for options in ["", "sslmode=prefer", "sslmode=verify-full"] {
        misconfigured(
            &at("localhost", "postgres", options),
            &[
                "the server's certificate is not signed by a trusted authority; ",
                "with sslrootcert=FILE in the address or with --extra-ca FILE, or connect without TLS with sslmode=disable",
            ],
        );
    }
    misconfigured(
        &at("localhost", "postgres", &format!("sslrootcert={other}")),
        &[&format!("is not signed by an authority in {other} (sslrootcert); name the file of the authority")],
    );
    misconfigured(
        &at("127.0.0.1", "postgres", &format!("sslrootcert={own}")),
        &[
            "the server's certificate is not for 127.0.0.1, but for localhost; connect to a name that the certificate has",
            "sslmode=disable",
        ],
    );
    misconfigured(
        &at("localhost", "only_tls", "sslmode=disable"),
        &[
            "(SQLSTATE 28000); with sslmode=disable the connection is without TLS: if the server demands TLS, set sslmode=verify-full",
        ],
    );
    misconfigured(
        &at("localhost", "certificates", &format!("sslrootcert={own}")),
        &["(SQLSTATE 28000); Redrive has no client certificates (sslcert and sslkey)"],
    );
}

#[test]
fn a_certificate_of_the_wrong_kind_is_told_with_what_to_change_at_the_server() {
    let (certificates, directory) = (Certificates::new(), tempfile::tempdir().unwrap());
    let own = put(&directory, "ca.pem", &certificates.authority.pem());
    let at = |server: &Postgres| {
        format!("postgres://redrive:s3cret@localhost:{}/postgres?sslrootcert={}", server.port(), own.display())
    };
    misconfigured(
        &at(&certificates.server(Kind::Authority)),
        &[
            "the server's certificate is that of an authority (CA:TRUE)",
            "; give the server a certificate with CA:FALSE",
            "sslrootcert=FILE",
            "sslmode=disable",
        ],
    );
    // It is renewed at the server, without a change here: services are started again meanwhile.
    for ended in refused(&at(&certificates.server(Kind::Expired)), 1, 6) {
        ended.says(&["the server's certificate, or one that signed it, has expired; renew it at the server"]);
    }
}

#[test]
fn a_server_without_tls_is_refused_only_where_tls_is_demanded() {
    let database = Postgres::shared().fresh_database();
    for mode in ["require", "verify-ca", "verify-full"] {
        misconfigured(
            &format!("{}?sslmode={mode}", database.url()),
            &[
                &format!(
                    "the server does not offer TLS, and sslmode={mode} demands it; turn TLS on at the server (ssl = on)"
                ),
                "sslmode=prefer",
            ],
        );
    }
    let migrate = ["migrate", "--store", &format!("{}?sslmode=prefer", database.url())];
    Program::start(redrive(Path::new("."), &migrate)).end().with(0).says(&["created the schema"]);
}

#[test]
fn an_address_that_the_server_refuses_ends_with_78_and_one_that_cannot_be_reached_with_1() {
    let server = Certificates::new().server(Kind::Good);
    let at = |user: &str, database: &str| {
        format!("postgres://{user}@localhost:{}/{database}?sslmode=disable", server.port())
    };
    misconfigured(&at("redrive:s3cret", "passwords"), &["(SQLSTATE 28P01); check user and password in the address"]);
    misconfigured(
        &at("redrive", "passwords"),
        &[
            "the server demands a password, and the address has none; put it into the address, percent-encoded; PGPASSWORD and",
        ],
    );
    misconfigured(&at("nobody:s3cret", "postgres"), &["(SQLSTATE 28000)"]);
    let database = Postgres::shared().fresh_database();
    let missing = database.url().replace(database.name(), "no_such_database");
    misconfigured(&missing, &["(SQLSTATE 3D000); create it, or name another database"]);
    let unreachable = format!("postgres://redrive:s3cret@127.0.0.1:{}/redrive", free_port());
    for ended in refused(&unreachable, 1, 6) {
        ended.says(&["could not connect: Connection refused", "; check that PostgreSQL runs, and host and port"]);
    }
}

#[test]
fn an_option_that_cannot_be_used_is_told_before_anything_is_connected() {
    let directory = tempfile::tempdir().unwrap();
    let (empty, text) = (put(&directory, "empty.pem", ""), put(&directory, "text.pem", "not a certificate\n"));
    for (options, told) in [
        ("sslmode=verify_full", "sslmode must be disable, prefer, require, verify-ca or verify-full"),
        ("sslcert=a.pem&sslkey=a.key", "the option sslcert is not supported: Redrive has no client certificates"),
        ("sslcrl=a.pem", "the option sslcrl is not supported: Redrive reads no revocation lists"),
        ("sslrootcert=/nowhere.pem", "sslrootcert: could not read the certificates in /nowhere.pem: No such file"),
        (&format!("sslrootcert={}", empty.display()), "empty.pem: it is empty"),
        (&format!("sslrootcert={}", text.display()), "text.pem: there is no PEM certificate in it"),
    ] {
        misconfigured(&format!("postgres://redrive:s3cret@127.0.0.1:1/redrive?{options}"), &[told]);
    }
    let relay = ["outbox", "relay", "--once", "--table", "app.outbox", "--from", "postgres://relay@127.0.0.1:1/shop"];
    let words = [&relay[..], &["--extra-ca", "/nowhere.pem"]].concat();
    let told = "error: cannot use --from: --extra-ca: could not read the certificates in /nowhere.pem: No such file";
    Program::start(redrive(directory.path(), &words)).end().with(78).says(&[told]);
}

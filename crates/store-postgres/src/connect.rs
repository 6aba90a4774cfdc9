//! Connecting to PostgreSQL: the address, TLS, and the session settings. Also used for PostgreSQL databases other than
//! the store, with the same form of address.

use std::future::poll_fn;
use std::path::PathBuf;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::tls::{MakeTlsConnect, NoTlsStream};
use tokio_postgres::{AsyncMessage, Client, Config, Connection as Driver, NoTls, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::failure::{Cause, Failure, explain};
use crate::trust::{Mode, TakenOptions, TlsOptions};

/// How long sent bytes may stay unacknowledged before the connection counts as lost.
const UNACKNOWLEDGED_FOR: Duration = Duration::from_secs(10);

/// Why a connection could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address is malformed.
    #[error("the address cannot be read{0}; it looks like postgres://user:password@host:5432/database")]
    Address(String),
    /// An option of the address cannot be used.
    #[error("{0}")]
    Option(String),
    /// TLS could not be set up.
    #[error("setting up TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// The file of `sslrootcert` could not be loaded.
    #[error("sslrootcert: {0}")]
    RootCertificates(redrive_dial::AuthorityError),
    /// The files of further certificate authorities could not be loaded.
    #[error("--extra-ca: {0}")]
    Trust(#[from] redrive_dial::AuthorityError),
    /// The server cannot be reached, or it refused the connection.
    #[error("{0}")]
    Server(Failure),
    /// Connecting took longer than the connect timeout.
    #[error("no answer within {0:?}; check that a PostgreSQL answers at this host and port")]
    TimedOut(Duration),
    /// The server is read-only.
    #[error("the server is a replica, or read-only")]
    ReadOnly,
}

impl ConnectError {
    /// Whether trying again is useless until the address, the server's settings or its roles are changed.
    pub fn is_lasting(&self) -> bool {
        match self {
            ConnectError::Server(failure) => failure.is_lasting,
            ConnectError::TimedOut(_) | ConnectError::ReadOnly => false,
            ConnectError::Address(_)
            | ConnectError::Option(_)
            | ConnectError::Tls(_)
            | ConnectError::RootCertificates(_)
            | ConnectError::Trust(_) => true,
        }
    }
}

/// The server to connect to, and how.
#[derive(Clone)]
pub struct Address {
    config: Config,
    tls_options: TlsOptions,
    tls: Option<MakeRustlsConnect>,
    timeout: Duration,
}

/// The settings of new connections.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    /// The application name that the server shows.
    pub name: &'a str,
    /// Session settings, for connections with a session of their own.
    pub settings: &'a [(&'static str, String)],
    /// PEM files of certificate authorities to trust besides the system's.
    pub extra_ca: &'a [PathBuf],
    /// How long connecting may take.
    pub timeout: Duration,
}

type TlsStream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

/// The half of a connection that moves bytes. It must be polled, or nothing is sent or received.
pub enum Driven {
    /// A connection without TLS.
    Plain(Box<Driver<Socket, NoTlsStream>>),
    /// A connection with TLS.
    Tls(Box<Driver<Socket, TlsStream>>),
}

impl Address {
    /// Parses an address.
    pub fn read(url: &str, terms: &Terms<'_>) -> Result<Self, ConnectError> {
        let (taken, address) = TakenOptions::take_from(url)?;
        let mut config: Config = address.parse().map_err(|error| ConnectError::Address(why(&error)))?;
        let tls_options = taken.beside(config.get_ssl_mode());
        config.ssl_mode(tls_options.mode.of_driver());
        if config.get_application_name().is_none() {
            config.application_name(terms.name);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(UNACKNOWLEDGED_FOR);
        }
        config.keepalives_idle(UNACKNOWLEDGED_FOR).keepalives_interval(UNACKNOWLEDGED_FOR / 2).keepalives_retries(3);
        if !terms.settings.is_empty() {
            let said = config.get_options().map(|options| format!("{options} ")).unwrap_or_default();
            let settings = terms.settings.iter().map(|(name, value)| format!("-c {name}={value}"));
            config.options(format!("{said}{}", settings.collect::<Vec<_>>().join(" ")));
        }
        let tls = match tls_options.mode {
            Mode::Disable => None,
            _ => Some(MakeRustlsConnect::new(tls_options.authorities(terms.extra_ca)?.client()?)),
        };
        Ok(Address { config, tls_options, tls, timeout: terms.timeout })
    }

    /// Makes the address for connections that write: of several servers, the one that accepts writes is used.
    pub(crate) fn for_writing(mut self) -> Self {
        if self.config.get_hosts().len() > 1 && self.config.get_target_session_attrs() == TargetSessionAttrs::Any {
            self.config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        self
    }

    /// A new connection to a server that accepts writes. During a failover an address may briefly lead to a replica,
    /// and a connection to it would stay with the replica afterwards.
    pub(crate) async fn connect_for_writing(&self) -> Result<(Client, Driven), ConnectError> {
        let (client, driven) = self.connect().await?;
        match driven.is_read_only() {
            true => Err(ConnectError::ReadOnly),
            false => Ok((client, driven)),
        }
    }

    /// A new connection.
    pub async fn connect(&self) -> Result<(Client, Driven), ConnectError> {
        let connecting = async {
            match &self.tls {
                None => {
                    let (client, driver) = self.config.connect(NoTls).await?;
                    Ok((client, Driven::Plain(Box::new(driver))))
                }
                Some(tls) => {
                    let (client, driver) = self.config.connect(tls.clone()).await?;
                    Ok((client, Driven::Tls(Box::new(driver))))
                }
            }
        };
        match tokio::time::timeout(self.timeout, connecting).await {
            Ok(connected) => connected.map_err(|error: tokio_postgres::Error| {
                ConnectError::Server(explain(&Cause::of(&error), &self.tls_options))
            }),
            Err(_) => Err(ConnectError::TimedOut(self.timeout)),
        }
    }
}

impl Driven {
    /// Whether the server reported at the start of the session that it is read-only. A pooler may not pass that on.
    fn is_read_only(&self) -> bool {
        let says = |name| match self {
            Driven::Plain(driver) => driver.parameter(name) == Some("on"),
            Driven::Tls(driver) => driver.parameter(name) == Some("on"),
        };
        says("in_hot_standby") || says("default_transaction_read_only")
    }

    /// Moves bytes until the server sends an asynchronous message such as a notification; `None` when the connection
    /// has ended.
    pub async fn next(&mut self) -> Option<Result<AsyncMessage, tokio_postgres::Error>> {
        poll_fn(|context| self.poll_message(context)).await
    }

    pub(crate) fn poll_message(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<AsyncMessage, tokio_postgres::Error>>> {
        match self {
            Driven::Plain(driver) => driver.poll_message(context),
            Driven::Tls(driver) => driver.poll_message(context),
        }
    }

    /// Moves bytes until the connection ends.
    pub(crate) async fn run(self) {
        let ended = match self {
            Driven::Plain(driver) => driver.await,
            Driven::Tls(driver) => driver.await,
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection to PostgreSQL ended");
        }
    }
}

/// The driver's message, which names the option but never contains a password.
fn why(error: &tokio_postgres::Error) -> String {
    use std::error::Error as _;
    error.source().map(|source| format!(": {source}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use tokio_postgres::config::SslMode;

    use super::*;

    #[test]
    fn the_mode_and_the_authorities_of_an_address_are_used_however_they_are_written() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("it's ours.pem");
        let certificate = rcgen::generate_simple_self_signed(["b".to_owned()]).unwrap();
        std::fs::write(&file, certificate.cert.pem()).unwrap();
        let path = file.to_str().unwrap();
        let encoded = path.replace('\'', "%27").replace(' ', "%20");
        let quoted = path.replace('\'', r"\'");
        let escaped = quoted.replace(' ', r"\ ");
        // address, the driver's mode, whether the file is what is trusted
        let cases = [
            ("postgres://a@b/c".to_owned(), SslMode::Prefer, false),
            ("postgres://a@b/c?sslmode=disable".to_owned(), SslMode::Disable, false),
            ("postgres://a@b/c?%73slmode=require".to_owned(), SslMode::Require, false),
            ("postgres://a@b/c?%73slmode=verify-ca&port=5433".to_owned(), SslMode::Require, false),
            (format!("postgres://a@b/c?sslmode=verify-full&sslrootcert={encoded}"), SslMode::Require, true),
            (format!("postgres://a@b/c?ssl%72ootcert={encoded}"), SslMode::Prefer, true),
            ("host=b sslmode = require".to_owned(), SslMode::Require, false),
            ("host=b\u{2003}sslmode='verify-full'".to_owned(), SslMode::Require, false),
            ("host=b\nsslmode=disable".to_owned(), SslMode::Disable, false),
            (format!("host=b\tsslrootcert = '{quoted}'"), SslMode::Prefer, true),
            (format!("host=b\r\nsslmode =require\r\nsslrootcert={escaped}"), SslMode::Require, true),
        ];
        let terms = Terms { name: "", settings: &[], extra_ca: &[], timeout: Duration::ZERO };
        for (address, mode, is_file_trusted) in cases {
            let read = Address::read(&address, &terms).unwrap();
            assert_eq!(read.config.get_ssl_mode(), mode, "{address:?}");
            assert_eq!(read.tls.is_none(), mode == SslMode::Disable, "{address:?}");
            assert_eq!(read.tls_options.root_file(), is_file_trusted.then_some(file.as_path()), "{address:?}");
        }
    }
}

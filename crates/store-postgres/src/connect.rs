//! Connecting: what the address says, TLS, and what the session is told.

use std::time::Duration;

use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{MakeTlsConnect, NoTlsStream};
use tokio_postgres::{Client, Config, Connection as Driver, NoTls, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::connection::{KEEPALIVE, SESSION};
use crate::failure::Failure;

/// How long sent bytes may stay unacknowledged before the peer is taken for gone.
const UNACKNOWLEDGED_FOR: Duration = Duration::from_secs(10);

/// Where to connect to, and how.
#[derive(Clone)]
pub(crate) struct Address {
    config: Config,
    tls: Option<MakeRustlsConnect>,
    timeout: Duration,
}

type TlsStream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

/// The half of a connection that moves bytes: somebody must drive it.
pub(crate) enum Driven {
    Plain(Box<Driver<Socket, NoTlsStream>>),
    Tls(Box<Driver<Socket, TlsStream>>),
}

impl Address {
    /// Reads an address. `says_settings` where a session is ours for as long as it lasts.
    pub(crate) fn read(url: &str, name: &str, says_settings: bool, timeout: Duration) -> Result<Self, Failure> {
        let mut config: Config = url.parse().map_err(|error| Failure::Unreachable(cannot_read(&error)))?;
        if config.get_application_name().is_none() {
            config.application_name(name);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(UNACKNOWLEDGED_FOR);
        }
        config.keepalives_idle(UNACKNOWLEDGED_FOR).keepalives_interval(UNACKNOWLEDGED_FOR / 2).keepalives_retries(3);
        if says_settings {
            let said = config.get_options().map(|options| format!("{options} ")).unwrap_or_default();
            let settings = SESSION.iter().chain(&KEEPALIVE).map(|(name, value)| format!("-c {name}={value}"));
            config.options(format!("{said}{}", settings.collect::<Vec<_>>().join(" ")));
        }
        let tls = match config.get_ssl_mode() {
            SslMode::Disable => None,
            _ => Some(MakeRustlsConnect::new(trusting_the_system()?)),
        };
        Ok(Address { config, tls, timeout })
    }

    pub(crate) async fn connect(&self) -> Result<(Client, Driven), Failure> {
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
            Ok(Ok(connected)) => Ok(connected),
            Ok(Err(error)) => Err(Failure::Unreachable(Failure::Postgres(error).to_string())),
            Err(_) => Err(Failure::Unreachable(format!("not within {:?}", self.timeout))),
        }
    }
}

impl Driven {
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

/// The message of the crate, which names the option but never repeats a password.
fn cannot_read(error: &tokio_postgres::Error) -> String {
    use std::error::Error as _;
    let why = error.source().map(|source| format!(": {source}")).unwrap_or_default();
    format!("the address cannot be read{why}; it looks like postgres://user:password@host:5432/database")
}

fn trusting_the_system() -> Result<ClientConfig, Failure> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Failure::Unreachable(format!("setting up TLS: {error}")))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

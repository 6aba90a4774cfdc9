//! Makes connections: to one server, to the primary that sentinels name, to a cluster, and for listening.
//!
//! Every step has its own timeout, so that a host that does not answer delays only its own step and the other hosts are
//! still tried.

use std::time::Duration;

use redis::aio::{MultiplexedConnection, PubSub};
use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo,
    RedisError, TlsCertificates, Value,
};
use tokio::time::timeout;

use crate::address::{Address, Host, Kind, Login};
use crate::redis_call_error::RedisCallError;

/// The timeout for one host to accept a connection, or for a sentinel to answer.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// The timeout for connecting in all, however many hosts are tried.
pub(crate) const CONNECT_BUDGET: Duration = Duration::from_secs(5);
/// How often a cluster client follows a redirection or tries another connection within one call.
const CLUSTER_RETRIES: u32 = 3;
/// The longest wait between two such tries, in milliseconds.
const CLUSTER_RETRY_WAIT: u64 = 50;

/// A connection that many calls share.
#[derive(Clone)]
pub(crate) enum Connection {
    /// A connection to one server. It cannot be used again after it breaks.
    Single(MultiplexedConnection),
    /// A connection to the nodes of a cluster. It reconnects by itself, node by node.
    Cluster(ClusterConnection),
}

impl Connection {
    pub(crate) async fn ask(&mut self, command: &Cmd) -> Result<Value, RedisError> {
        match self {
            Connection::Single(connection) => command.query_async(connection).await,
            Connection::Cluster(connection) => command.query_async(connection).await,
        }
    }
}

/// Makes connections to an address.
#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) address: Address,
    /// Trusted root certificates as PEM; the system's if there are none.
    pub(crate) root_certificates: Option<Vec<u8>>,
}

impl Connector {
    /// A connection for calls.
    pub(crate) async fn connect(&self) -> Result<Connection, RedisCallError> {
        let connecting = async {
            match &self.address.kind {
                Kind::Cluster => self.cluster().await.map(Connection::Cluster),
                Kind::Single { .. } | Kind::Sentinel { .. } => self.primary().await.map(|(_, single)| single),
            }
        };
        within(CONNECT_BUDGET, connecting).await
    }

    /// A connection for receiving published messages.
    pub(crate) async fn listen(&self) -> Result<PubSub, RedisCallError> {
        let listening = async {
            match &self.address.kind {
                // A message that is published on one node of a cluster reaches all nodes.
                Kind::Cluster => self.listen_to_any_node().await,
                Kind::Single { .. } | Kind::Sentinel { .. } => Ok(self.primary().await?.0.get_async_pubsub().await?),
            }
        };
        within(CONNECT_BUDGET, listening).await
    }

    async fn primary(&self) -> Result<(Client, Connection), RedisCallError> {
        let (database, host) = match &self.address.kind {
            Kind::Sentinel { service, database, login } => (*database, self.ask_sentinels(service, login).await?),
            Kind::Single { database } => {
                (*database, self.address.hosts.first().ok_or(RedisCallError::Unconnected)?.clone())
            }
            Kind::Cluster => return Err(RedisCallError::Unconnected),
        };
        let client = self.client(&host, &self.address.login, database)?;
        let mut connection = within(CONNECT_TIMEOUT, open(&client)).await?;
        if matches!(self.address.kind, Kind::Sentinel { .. }) {
            // A sentinel may not yet have noticed that the server is a replica now.
            let role = within(CONNECT_TIMEOUT, async { Ok(connection.ask(&redis::cmd("ROLE")).await?) }).await?;
            let is_primary =
                role.as_sequence().and_then(<[Value]>::first) == Some(&Value::BulkString(b"master".to_vec()));
            if !is_primary {
                return Err(RedisCallError::NoPrimary);
            }
        }
        Ok((client, connection))
    }

    /// The host of the primary, from the first sentinel that answers.
    async fn ask_sentinels(&self, service: &str, login: &Login) -> Result<Host, RedisCallError> {
        let mut failure = RedisCallError::NoPrimary;
        for sentinel in &self.address.hosts {
            let asking = async {
                let mut connection = open(&self.client(sentinel, login, 0)?).await?;
                let mut question = redis::cmd("SENTINEL");
                question.arg("get-master-addr-by-name").arg(service);
                let answer = connection.ask(&question).await?;
                Ok(redis::from_redis_value::<Option<(String, u16)>>(answer).map_err(RedisError::from)?)
            };
            match within(CONNECT_TIMEOUT, asking).await {
                Ok(Some((name, port))) => return Ok(Host { name, port }),
                Ok(None) => failure = RedisCallError::NoPrimary,
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    async fn cluster(&self) -> Result<ClusterConnection, RedisCallError> {
        let nodes = self.address.hosts.iter().map(|host| self.connection_info(host, &self.address.login, 0));
        let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
        let mut builder = ClusterClientBuilder::new(nodes)
            .connection_timeout(CONNECT_TIMEOUT)
            .retries(CLUSTER_RETRIES)
            .max_retry_wait(CLUSTER_RETRY_WAIT);
        if let (true, Some(_)) = (self.address.is_tls, &self.root_certificates) {
            builder = builder.certs(self.certificates());
        }
        Ok(builder.build()?.get_async_connection().await?)
    }

    async fn listen_to_any_node(&self) -> Result<PubSub, RedisCallError> {
        let mut failure = RedisCallError::Unconnected;
        for host in &self.address.hosts {
            let client = self.client(host, &self.address.login, 0)?;
            match within(CONNECT_TIMEOUT, async { Ok(client.get_async_pubsub().await?) }).await {
                Ok(listening) => return Ok(listening),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    fn client(&self, host: &Host, login: &Login, database: i64) -> Result<Client, RedisError> {
        let info = self.connection_info(host, login, database)?;
        match (self.address.is_tls, &self.root_certificates) {
            (true, Some(_)) => Client::build_with_tls(info, self.certificates()),
            _ => Client::open(info),
        }
    }

    fn connection_info(&self, host: &Host, login: &Login, database: i64) -> Result<ConnectionInfo, RedisError> {
        let (host, port) = (host.name.clone(), host.port);
        let addr = match self.address.is_tls {
            true => ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None },
            false => ConnectionAddr::Tcp(host, port),
        };
        let mut settings = RedisConnectionInfo::default().set_db(database);
        if let Some(user) = &login.user {
            settings = settings.set_username(user);
        }
        if let Some(password) = &login.password {
            settings = settings.set_password(password);
        }
        Ok(addr.into_connection_info()?.set_redis_settings(settings))
    }

    fn certificates(&self) -> TlsCertificates {
        TlsCertificates { client_tls: None, root_cert: self.root_certificates.clone() }
    }
}

async fn open(client: &Client) -> Result<Connection, RedisCallError> {
    // Each call has its own response timeout.
    let config = AsyncConnectionConfig::new().set_connection_timeout(Some(CONNECT_TIMEOUT)).set_response_timeout(None);
    Ok(Connection::Single(client.get_multiplexed_async_connection_with_config(&config).await?))
}

async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, RedisCallError>>,
) -> Result<T, RedisCallError> {
    timeout(limit, work).await.unwrap_or(Err(RedisCallError::TimedOut(limit)))
}

//! The address of Redis: parses and checks what the user configured.
//!
//! | address | meaning |
//! | --- | --- |
//! | `redis://[user[:password]@]host[:port][/database]` | one server |
//! | `redis+sentinel://[user[:password]@]host[:port],…/service[/database]` | sentinels that watch the service |
//! | `redis+cluster://[user[:password]@]host[:port],…` | some nodes of a cluster, which name the others |
//!
//! With `rediss` in place of `redis`, all connections use TLS. User and password are percent-encoded and are those of
//! the servers; sentinels that need their own take `?sentinelUser=…&sentinelPassword=…`.
//!
//! Passwords are held here in plain text and are never shown: [`Address`] is displayed without them, and no error
//! quotes its input, because a part of a mistyped password may be where a host was expected.

use std::fmt;
use std::str::FromStr;

use percent_encoding::percent_decode_str;

/// The port of a server without an explicit port.
const PORT: u16 = 6379;
/// The port of a sentinel without an explicit port.
const SENTINEL_PORT: u16 = 26379;
/// The most hosts in one address.
const MOST_HOSTS: usize = 100;

/// The hosts of Redis, and the login.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    pub(crate) kind: Kind,
    pub(crate) hosts: Vec<Host>,
    pub(crate) is_tls: bool,
    pub(crate) login: Login,
}

/// The kind of Redis at the address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One server.
    Single { database: i64 },
    /// Sentinels, which return the host of the service's primary.
    Sentinel { service: String, database: i64, login: Login },
    /// Nodes of a cluster.
    Cluster,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) port: u16,
}

/// A user name and a password.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Login {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
}

/// Why a text is not a valid Redis address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAddress {
    /// The scheme is unknown or missing.
    #[error("must begin with redis://, rediss://, redis+sentinel:// or redis+cluster://")]
    Scheme,
    /// There is no host.
    #[error("must name a host")]
    NoHost,
    /// There are too many hosts.
    #[error("must name at most {MOST_HOSTS} hosts")]
    ManyHosts,
    /// A host is invalid.
    #[error("a host must be a name, an IPv4 address, or an IPv6 address in brackets")]
    Host,
    /// A port is invalid.
    #[error("a port must be a number from 1 to 65535")]
    Port,
    /// There are several hosts for a single server.
    #[error("names several hosts: write redis+sentinel:// or redis+cluster://, whichever they are")]
    SeveralServers,
    /// The name of the service that the sentinels watch is missing.
    #[error("must name the service that the sentinels watch: redis+sentinel://host:port/service")]
    NoService,
    /// The database is not a number.
    #[error("a database must be a number from 0 to 65535")]
    Database,
    /// A database is given for a cluster, which has none.
    #[error("a cluster has no databases: nothing may follow its hosts")]
    ClusterDatabase,
    /// The path has too many parts.
    #[error("has more in its path than a database")]
    Path,
    /// An option is unknown.
    #[error("has an option that does not exist (a sentinel's are sentinelUser and sentinelPassword)")]
    Option,
    /// A name or password is not UTF-8 once decoded.
    #[error("a user or password must be percent-encoded UTF-8")]
    Encoding,
}

impl FromStr for Address {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        let (scheme, rest) = text.split_once("://").ok_or(InvalidAddress::Scheme)?;
        let (is_tls, flavour) = match scheme.strip_prefix("rediss") {
            Some(flavour) => (true, flavour),
            None => (false, scheme.strip_prefix("redis").ok_or(InvalidAddress::Scheme)?),
        };
        let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        // A password may contain an '@' that was not encoded; hosts cannot contain one.
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (Login::parse(login)?, hosts),
            None => (Login::default(), authority),
        };
        let path: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let sentinel = Login::of_sentinels(options)?;
        let is_sentinel = flavour == "+sentinel";
        if !is_sentinel && sentinel != Login::default() {
            return Err(InvalidAddress::Option);
        }
        let hosts = parse_hosts(hosts, if is_sentinel { SENTINEL_PORT } else { PORT })?;
        let kind = match (flavour, path.as_slice()) {
            ("", _) if hosts.len() > 1 => return Err(InvalidAddress::SeveralServers),
            ("", path) => Kind::Single { database: parse_database(path)? },
            ("+sentinel", []) => return Err(InvalidAddress::NoService),
            ("+sentinel", [service, path @ ..]) => {
                Kind::Sentinel { service: decode(service)?, database: parse_database(path)?, login: sentinel }
            }
            ("+cluster", []) => Kind::Cluster,
            ("+cluster", _) => return Err(InvalidAddress::ClusterDatabase),
            _ => return Err(InvalidAddress::Scheme),
        };
        Ok(Address { kind, hosts, is_tls, login })
    }
}

fn parse_hosts(text: &str, default_port: u16) -> Result<Vec<Host>, InvalidAddress> {
    if text.is_empty() {
        return Err(InvalidAddress::NoHost);
    }
    let hosts: Vec<Host> = text.split(',').map(|host| Host::parse(host, default_port)).collect::<Result<_, _>>()?;
    if hosts.len() > MOST_HOSTS { Err(InvalidAddress::ManyHosts) } else { Ok(hosts) }
}

fn parse_database(path: &[&str]) -> Result<i64, InvalidAddress> {
    match path {
        [] => Ok(0),
        [number] => number.parse::<u16>().map(i64::from).map_err(|_| InvalidAddress::Database),
        _ => Err(InvalidAddress::Path),
    }
}

fn decode(text: &str) -> Result<String, InvalidAddress> {
    let decoded = percent_decode_str(text).decode_utf8().map_err(|_| InvalidAddress::Encoding)?;
    Ok(decoded.into_owned())
}

impl Host {
    fn parse(text: &str, default_port: u16) -> Result<Self, InvalidAddress> {
        let (name, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (name, rest) = rest.split_once(']').ok_or(InvalidAddress::Host)?;
                let port = match rest.strip_prefix(':') {
                    Some(port) => Some(port),
                    None if rest.is_empty() => None,
                    None => return Err(InvalidAddress::Port),
                };
                (name, port)
            }
            None => match text.split_once(':') {
                Some((name, port)) => (name, Some(port)),
                None => (text, None),
            },
        };
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '%');
        if name.is_empty() || !name.chars().all(is_allowed) {
            return Err(InvalidAddress::Host);
        }
        let port = match port {
            Some(port) => port.parse().ok().filter(|port| *port != 0).ok_or(InvalidAddress::Port)?,
            None => default_port,
        };
        Ok(Host { name: name.to_owned(), port })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.contains(':') {
            true => write!(f, "[{}]:{}", self.name, self.port),
            false => write!(f, "{}:{}", self.name, self.port),
        }
    }
}

impl Login {
    /// Parses `user:password`, or a password alone after a colon; a user alone logs in without a password.
    fn parse(text: &str) -> Result<Self, InvalidAddress> {
        let (user, password) = text.split_once(':').map_or((text, None), |(user, password)| (user, Some(password)));
        let user = decode(user)?;
        Ok(Login { user: Some(user).filter(|user| !user.is_empty()), password: password.map(decode).transpose()? })
    }

    fn of_sentinels(options: &str) -> Result<Self, InvalidAddress> {
        let mut login = Login::default();
        for option in options.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("sentinelUser", user)) => login.user = Some(decode(user)?),
                Some(("sentinelPassword", password)) => login.password = Some(decode(password)?),
                _ => return Err(InvalidAddress::Option),
            }
        }
        Ok(login)
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let password = self.password.as_ref().map(|_| "***");
        f.debug_struct("Login").field("user", &self.user).field("password", &password).finish()
    }
}

/// The address as it was given, with `***` for each password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_tls { "rediss" } else { "redis" })?;
        f.write_str(match self.kind {
            Kind::Single { .. } => "://",
            Kind::Sentinel { .. } => "+sentinel://",
            Kind::Cluster => "+cluster://",
        })?;
        let Login { user, password } = &self.login;
        if user.is_some() || password.is_some() {
            let password = if password.is_some() { ":***" } else { "" };
            write!(f, "{}{password}@", user.as_deref().unwrap_or_default())?;
        }
        let hosts: Vec<String> = self.hosts.iter().map(Host::to_string).collect();
        f.write_str(&hosts.join(","))?;
        match &self.kind {
            Kind::Single { database: 0 } | Kind::Cluster => Ok(()),
            Kind::Single { database } => write!(f, "/{database}"),
            Kind::Sentinel { service, database: 0, .. } => write!(f, "/{service}"),
            Kind::Sentinel { service, database, .. } => write!(f, "/{service}/{database}"),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_as_it_is_used() {
        for (given, shown) in [
            ("redis://localhost", "redis://localhost:6379"),
            ("redis://10.0.0.1:7000/3", "redis://10.0.0.1:7000/3"),
            ("rediss://cache.example.com", "rediss://cache.example.com:6379"),
            ("redis://[::1]:7000", "redis://[::1]:7000"),
            ("redis://[fe80::1]/", "redis://[fe80::1]:6379"),
            ("redis+sentinel://a,b:1/primary", "redis+sentinel://a:26379,b:1/primary"),
            ("rediss+sentinel://a/primary/2", "rediss+sentinel://a:26379/primary/2"),
            ("redis+cluster://a:7000,b:7001,c", "redis+cluster://a:7000,b:7001,c:6379"),
            ("rediss+cluster://u:p@a", "rediss+cluster://u:***@a:6379"),
        ] {
            assert_eq!(given.parse::<Address>().unwrap().to_string(), shown, "{given}");
        }
    }

    #[test]
    fn what_is_wrong_with_an_address_is_said() {
        use InvalidAddress::*;
        for (given, expected) in [
            ("", Scheme),
            ("localhost:6379", Scheme),
            ("http://localhost", Scheme),
            ("redis+ring://localhost", Scheme),
            ("redisss://localhost", Scheme),
            ("redis://", NoHost),
            ("redis:///1", NoHost),
            ("redis://user:secret@", NoHost),
            ("redis://a,b", SeveralServers),
            ("redis://a:0", Port),
            ("redis://a:65536", Port),
            ("redis://a:", Port),
            ("redis://::1", Host),
            ("redis://[::1", Host),
            ("redis://[::1]6379", Port),
            ("redis://a b", Host),
            ("redis+cluster://a,,b", Host),
            ("redis://a/one", Database),
            ("redis://a/-1", Database),
            ("redis://a/1/2", Path),
            ("redis+sentinel://a", NoService),
            ("redis+sentinel://a/primary/x", Database),
            ("redis+cluster://a/0", ClusterDatabase),
            ("redis://a?sentinelPassword=x", Option),
            ("redis+sentinel://a/primary?timeout=1", Option),
            ("redis://user:%ff@a", Encoding),
        ] {
            assert_eq!(given.parse::<Address>(), Err(expected), "{given}");
        }
        let many = format!("redis+cluster://{}", vec!["a"; MOST_HOSTS + 1].join(","));
        assert_eq!(many.parse::<Address>(), Err(ManyHosts));
    }

    #[test]
    fn a_login_is_decoded_and_kept() {
        for (given, user, password) in [
            ("redis://a", None, None),
            ("redis://:secret@a", None, Some("secret")),
            ("redis://me@a", Some("me"), None),
            ("redis://me:p%40ss%2Fword@a", Some("me"), Some("p@ss/word")),
            ("redis://me:p@ss@a", Some("me"), Some("p@ss")),
        ] {
            let login = given.parse::<Address>().unwrap().login;
            assert_eq!((login.user.as_deref(), login.password.as_deref()), (user, password), "{given}");
        }
        let given = "redis+sentinel://a/primary?sentinelUser=watch&sentinelPassword=s%3Dx";
        let Kind::Sentinel { login, .. } = given.parse::<Address>().unwrap().kind else { panic!("not a sentinel") };
        assert_eq!((login.user.as_deref(), login.password.as_deref()), (Some("watch"), Some("s=x")));
    }

    #[test]
    fn no_password_is_ever_shown() {
        let given = "redis+sentinel://me:SECRET@a/primary?sentinelUser=you&sentinelPassword=SECRET";
        let address: Address = given.parse().unwrap();
        for shown in [format!("{address}"), format!("{address:?}"), format!("{:?}", address.kind)] {
            assert!(!shown.contains("SECRET"), "{shown}");
        }
        for given in ["redis://me:SECRET/x@a", "redis://SECRET@a:SECRET", "redis://a/SECRET", "SECRET"] {
            let error = given.parse::<Address>().unwrap_err();
            assert!(!format!("{error} {error:?}").contains("SECRET"), "{given}");
        }
    }
}

//! The bad dependencies: each has an origin of its own. All of them share one thread with little work, so that the
//! service is measured and not its targets.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

use anyhow::{Context, Result};
use tokio::net::TcpSocket;

use super::kind::Kind;
use crate::http::Server;

/// Origins per loopback address, so that no address runs out of ports.
const PER_ADDRESS: usize = 50;
/// The zone whose names are never resolved.
const ZONE: &str = "hung.test";

/// Bad dependencies of one kind; dropping this ends them.
pub struct Dependencies {
    origins: Vec<String>,
    /// The service's name server, if it needs one of its own.
    dns_server: Option<SocketAddr>,
    /// Keeps the ports open.
    _held: Held,
}

/// The resources of a kind.
enum Held {
    /// Listeners that answer, each in its way.
    Listeners { _server: Server },
    /// Ports that are bound and on which nothing listens.
    Ports { _sockets: Vec<TcpSocket> },
    /// A name server that reads nothing. Its buffer fills up, and the system drops the rest.
    NameServer { _socket: UdpSocket },
}

impl Dependencies {
    /// Starts `count` dependencies of this kind.
    pub fn start(kind: Kind, count: usize) -> Result<Self> {
        let addresses: Vec<Ipv4Addr> = (0..count).map(address).collect();
        match kind {
            Kind::Slow | Kind::Silent | Kind::Reset | Kind::Trickle => {
                let server = Server::start_on("bad dependencies", &addresses, Arc::new(kind))?;
                let origins = server.addresses().iter().map(|address| format!("http://{address}")).collect();
                Ok(Dependencies { origins, dns_server: None, _held: Held::Listeners { _server: server } })
            }
            Kind::Refuse => {
                let sockets = addresses.into_iter().map(take_port).collect::<Result<Vec<_>>>()?;
                let origins = sockets.iter().map(|socket| Ok(format!("http://{}", socket.local_addr()?)));
                let origins = origins.collect::<Result<_>>()?;
                Ok(Dependencies { origins, dns_server: None, _held: Held::Ports { _sockets: sockets } })
            }
            Kind::Dns => {
                let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).context("binding a name server")?;
                let dns_server = Some(socket.local_addr()?);
                let origins = (0..count).map(|number| format!("http://dependency-{number}.{ZONE}")).collect();
                Ok(Dependencies { origins, dns_server, _held: Held::NameServer { _socket: socket } })
            }
        }
    }

    /// Their origins, one each.
    pub fn origins(&self) -> &[String] {
        &self.origins
    }

    /// The arguments of `redrive serve` with which it resolves them.
    pub fn serve_arguments(&self) -> Vec<String> {
        self.dns_server.map(|address| vec!["--dns-server".to_owned(), address.to_string()]).unwrap_or_default()
    }
}

/// The loopback address of dependency `number`; not that of the healthy target.
fn address(number: usize) -> Ipv4Addr {
    let [_, _, third, fourth] = ((256 + number / PER_ADDRESS) as u32).to_be_bytes();
    Ipv4Addr::new(127, 0, third, fourth)
}

fn take_port(address: Ipv4Addr) -> Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((address, 0).into()).context("taking a port")?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::{ErrorKind, Read, Write};
    use std::net::TcpStream;

    use super::*;

    fn connect(origin: &str) -> std::io::Result<TcpStream> {
        TcpStream::connect(origin.strip_prefix("http://").unwrap())
    }

    #[test]
    fn every_dependency_has_an_origin_of_its_own_on_loopback() {
        for kind in Kind::ALL {
            let dependencies = Dependencies::start(kind, 120).unwrap();
            let origins: BTreeSet<&String> = dependencies.origins().iter().collect();
            assert_eq!(origins.len(), 120, "{kind:?}");
            let is_loopback = |origin: &&String| origin.starts_with("http://127.0.") || origin.ends_with(ZONE);
            assert!(origins.iter().all(is_loopback), "{kind:?}: {origins:?}");
        }
    }

    #[test]
    fn only_the_dns_kind_needs_a_name_server() {
        for kind in Kind::ALL {
            let arguments = Dependencies::start(kind, 1).unwrap().serve_arguments();
            assert_eq!(arguments.first().is_some_and(|first| first == "--dns-server"), kind == Kind::Dns, "{kind:?}");
        }
    }

    #[test]
    fn a_refusing_dependency_refuses_and_a_resetting_one_resets_after_the_request() {
        let refuse = Dependencies::start(Kind::Refuse, 1).unwrap();
        assert_eq!(connect(&refuse.origins()[0]).unwrap_err().kind(), ErrorKind::ConnectionRefused);
        let reset = Dependencies::start(Kind::Reset, 1).unwrap();
        let mut stream = connect(&reset.origins()[0]).unwrap();
        stream.write_all(b"POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\nab").unwrap();
        assert_eq!(stream.read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    }

    #[test]
    fn a_trickling_dependency_begins_a_long_answer() {
        let trickle = Dependencies::start(Kind::Trickle, 2).unwrap();
        let mut stream = connect(&trickle.origins()[1]).unwrap();
        stream.write_all(b"POST / HTTP/1.1\r\ncontent-length: 0\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n..") {
            let mut byte = [0; 1];
            stream.read_exact(&mut byte).unwrap();
            answer.push(byte[0]);
        }
        assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"));
    }
}

//! Shortages on this machine that prevent a connection: the dependency is not at fault.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use rustix::io::Errno;

/// A resource that this machine has run out of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shortage {
    /// The process may have no further file descriptor.
    ProcessFiles,
    /// The machine has no further file descriptor.
    SystemFiles,
    /// There is no memory for a socket.
    Memory,
    /// There is no local port.
    Ports,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Shortage::ProcessFiles => "this process has no file descriptor left (ulimit -n, LimitNOFILE=)",
            Shortage::SystemFiles => "this machine has no file descriptor left (sysctl fs.file-max)",
            Shortage::Memory => "this machine has no memory left for a socket",
            Shortage::Ports => "this machine has no local port left (sysctl net.ipv4.ip_local_port_range)",
        })
    }
}

/// The shortage that `error` means, if it is one.
pub(crate) fn of(error: &io::Error) -> Option<Shortage> {
    match Errno::from_io_error(error)? {
        Errno::MFILE => Some(Shortage::ProcessFiles),
        Errno::NFILE => Some(Shortage::SystemFiles),
        Errno::NOBUFS | Errno::NOMEM => Some(Shortage::Memory),
        Errno::ADDRNOTAVAIL => Some(Shortage::Ports),
        _ => None,
    }
}

/// The shortage that this `error` of connecting to `address` means, if it is one. A machine without an address of that
/// family fails with the same error as one without a free port; waiting does not help then.
pub(crate) fn connecting(address: SocketAddr, error: &io::Error) -> Option<Shortage> {
    of(error).filter(|&shortage| shortage != Shortage::Ports || has_source_address(address))
}

/// Whether the machine has an address to reach this one from. Asks the system's routing table; nothing is sent.
fn has_source_address(address: SocketAddr) -> bool {
    let any = match address {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    match UdpSocket::bind(any).and_then(|socket| socket.connect(address)) {
        Ok(()) => true,
        // Another resource is short, so this cannot be found out.
        Err(error) => of(&error).is_some_and(|shortage| shortage != Shortage::Ports),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_machine_lacks_is_told_from_what_the_peer_does() {
        for (errno, shortage) in [
            (Errno::MFILE, Some(Shortage::ProcessFiles)),
            (Errno::NFILE, Some(Shortage::SystemFiles)),
            (Errno::NOBUFS, Some(Shortage::Memory)),
            (Errno::NOMEM, Some(Shortage::Memory)),
            (Errno::ADDRNOTAVAIL, Some(Shortage::Ports)),
            (Errno::CONNREFUSED, None),
            (Errno::NETUNREACH, None),
            (Errno::TIMEDOUT, None),
        ] {
            let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
            assert_eq!(connecting(here, &errno.into()), shortage, "{errno:?}");
        }
    }

    #[test]
    fn an_address_that_no_local_address_can_reach_is_not_a_shortage_of_ports() {
        // The system refuses this one to a socket that has not asked for it.
        let nowhere = SocketAddr::from((Ipv4Addr::BROADCAST, 9));
        assert_eq!(connecting(nowhere, &Errno::ADDRNOTAVAIL.into()), None);
    }
}

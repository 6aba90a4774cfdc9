//! The name of this machine, and the address under which others reach it.

use std::net::SocketAddr;

/// The machine's own name, without characters that are none of a host's name.
pub fn name() -> String {
    let system = rustix::system::uname();
    let name = system.nodename().to_string_lossy();
    name.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-')).collect()
}

/// Where others find what listens on `address`: on every address of the machine means nothing to them, so the machine
/// is named then.
pub fn reachable(address: SocketAddr) -> String {
    shown(address, &name())
}

fn shown(address: SocketAddr, host: &str) -> String {
    match address.ip().is_unspecified() && !host.is_empty() {
        true => format!("{host}:{}", address.port()),
        false => address.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_is_shown_as_the_machine_and_one_as_itself() {
        for (address, host, expected) in [
            ("0.0.0.0:8620", "worker-1", "worker-1:8620"),
            ("[::]:8620", "worker-1", "worker-1:8620"),
            ("10.0.0.5:8620", "worker-1", "10.0.0.5:8620"),
            ("[::1]:8620", "worker-1", "[::1]:8620"),
            ("0.0.0.0:8620", "", "0.0.0.0:8620"),
        ] {
            assert_eq!(shown(address.parse().unwrap(), host), expected, "{address}");
        }
    }
}

//! The text that the service prints when it is ready.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use redrive_blobs::Location;

use crate::config::{Config, StoreKind};

/// Where the service listens, where it stores tasks and bodies, and commands to try.
pub(super) fn greeting(program: &str, config: &Config, bodies: Option<&Location>, address: SocketAddr) -> String {
    let url = url(address);
    let kept = match &config.store {
        StoreKind::Sqlite => format!("tasks are stored in {}", config.data_dir.display()),
        StoreKind::Postgres(address) => match &config.schedule {
            Some(schedule) => format!("tasks are stored in {address}, with the schedule in {schedule}"),
            None => format!("tasks are stored in {address}"),
        },
        StoreKind::Memory => "tasks are kept in memory: they are lost when the process ends".into(),
    };
    let bodies = match bodies {
        Some(location) => format!("large bodies are stored in {location}"),
        None => "large bodies are stored in their tasks, and uploads are refused: name a place with --blobs".into(),
    };
    let server = if url == "http://127.0.0.1:8620" { String::new() } else { format!(" --server {url}") };
    format!(
        "\
redrive {version} listens on {url}
{kept}
{bodies}

Try it from another terminal:
  {program} send -X GET {url}/livez --wait{server}
  curl -i {url}/retry-tasks -H 'Content-Type: application/json' -H 'Prefer: wait=10' \\
    -d '{{\"targetUrl\": \"{url}/livez\", \"method\": \"GET\"}}'
",
        version = env!("CARGO_PKG_VERSION"),
    )
}

/// The URL at which a client on this machine reaches the API.
pub(super) fn url(address: SocketAddr) -> String {
    format!("http://{}", reachable(address))
}

/// A warning if others than this machine can reach the service.
pub(super) fn exposure(address: SocketAddr) -> Option<String> {
    (!address.ip().is_loopback()).then(|| {
        format!(
            "warning: {address} can be reached from other machines, and there is no authentication yet: \
             anyone who can reach it can read tasks and send requests from here"
        )
    })
}

/// An address that a client on this machine can use: "every interface" is none.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        other => other,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_thing_to_try_names_an_address_that_works() {
        let config = Config::default();
        let text = greeting("redrive", &config, None, "0.0.0.0:9000".parse().unwrap());
        assert!(text.contains("listens on http://127.0.0.1:9000\n"), "{text}");
        assert!(text.contains("--wait --server http://127.0.0.1:9000\n"), "{text}");
        let text = greeting("redrive", &config, None, "127.0.0.1:8620".parse().unwrap());
        assert!(!text.contains("--server"), "{text}");
    }

    #[test]
    fn it_says_where_large_bodies_are_kept() {
        for (location, expected) in [
            (Some("s3://bodies/redrive?region=eu-1"), "large bodies are stored in s3://bodies/redrive\n"),
            (Some("memory:"), "large bodies are stored in memory\n"),
            (None, "large bodies are stored in their tasks"),
        ] {
            let location = location.map(|text| Location::parse(text).unwrap());
            let address = "127.0.0.1:8620".parse().unwrap();
            let text = greeting("redrive", &Config::default(), location.as_ref(), address);
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn only_other_machines_are_warned_of() {
        assert!(exposure("0.0.0.0:1".parse().unwrap()).is_some());
        assert!(exposure("192.168.1.1:1".parse().unwrap()).is_some());
        assert!(exposure("127.0.0.1:1".parse().unwrap()).is_none());
        assert!(exposure("[::1]:1".parse().unwrap()).is_none());
    }
}

//! A network namespace that has a loopback interface and nothing else: no packet leaves this machine.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The command that runs a program in a namespace of its own; `None` if that is not permitted here.
pub(super) fn command() -> Option<Command> {
    // An administrator needs no user namespace; for others it may be permitted.
    [&["--net", "--"][..], &["--map-root-user", "--net", "--"]].into_iter().find_map(|options| {
        let unshare = || {
            let mut command = Command::new("unshare");
            command.args(options);
            command
        };
        let mut probe = unshare();
        probe.args(["ip", "link", "set", "lo", "up"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        probe.status().is_ok_and(|status| status.success()).then(unshare)
    })
}

/// Brings the loopback interface up, and checks that there is no other one and no route out.
pub(super) fn enter() -> Result<()> {
    let status = Command::new("ip").args(["link", "set", "lo", "up"]).status().context("starting ip")?;
    if !status.success() {
        bail!("the loopback interface could not be brought up: {status}");
    }
    // From /proc/self, for this process's namespace: /sys shows the namespace in which it was mounted.
    let interfaces = std::fs::read_to_string("/proc/self/net/dev").context("reading the network interfaces")?;
    let routes = std::fs::read_to_string("/proc/self/net/route").context("reading the routes")?;
    match way_out(&interfaces, &routes) {
        Some(way) => bail!("this is not a namespace without a way out: there is {way}"),
        None => Ok(()),
    }
}

/// An interface that is not loopback, or a route through one.
fn way_out<'t>(interfaces: &'t str, routes: &'t str) -> Option<&'t str> {
    let interfaces = interfaces.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim());
    let routes = routes.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    interfaces.chain(routes).find(|name| *name != "lo")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_has_loopback_and_nothing_else() {
        let header = "Inter-|   Receive\n face |bytes\n";
        let routes = "Iface\tDestination\n";
        assert_eq!(way_out(&format!("{header}    lo:  0 0\n"), routes), None);
        assert_eq!(way_out(&format!("{header}    lo:  0 0\n  eth0:  0 0\n"), routes), Some("eth0"));
        assert_eq!(way_out(header, &format!("{routes}tun0\t00000000\n")), Some("tun0"));
    }
}

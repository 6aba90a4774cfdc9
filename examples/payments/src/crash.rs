//! The worst moments: where the process kills or stops itself if the environment says so.

use std::process::Command;

/// At the moment that `CRASH_AT` names, ends the process at once, as `kill -9` would. At the moment that `STOP_AT` names, stops
/// it until it gets SIGCONT, like a machine that is suspended.
pub(crate) fn here(moment: &str) {
    let is = |variable| std::env::var(variable).is_ok_and(|wanted| wanted == moment);
    if is("CRASH_AT") {
        std::process::abort();
    }
    if is("STOP_AT") {
        let stopped = Command::new("kill").args(["-STOP", &std::process::id().to_string()]).status();
        if let Err(error) = stopped {
            eprintln!("stopping at {moment}: {error}");
        }
    }
}

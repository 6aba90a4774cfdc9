//! Liveness of background loops and threads: reports one that ends before it was told to.

use std::future::Future;

use tokio::sync::watch;

/// The background parts of a process, and the first of them that died. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Liveness {
    died: watch::Sender<Option<&'static str>>,
}

/// A guard that a part holds while it works. The part counts as dead if a panic unwinds through the guard.
#[derive(Debug)]
pub struct LivenessGuard {
    liveness: Liveness,
    name: &'static str,
    has_ended: bool,
}

impl Default for Liveness {
    fn default() -> Self {
        Liveness { died: watch::Sender::new(None) }
    }
}

impl Liveness {
    /// Registers a part that starts to work.
    pub fn part(&self, name: &'static str) -> LivenessGuard {
        LivenessGuard { liveness: self.clone(), name, has_ended: false }
    }

    /// Runs a part that must not end by itself: it works until it is dropped.
    pub async fn watch(self, name: &'static str, work: impl Future<Output = ()>) {
        let alive = self.part(name);
        work.await;
        alive.ended(false);
    }

    /// The part that died first, if one has.
    pub fn dead(&self) -> Option<&'static str> {
        *self.died.borrow()
    }

    /// Completes with the name of the first part that has died.
    pub async fn died(&self) -> &'static str {
        let mut died = self.died.subscribe();
        loop {
            if let Some(name) = *died.borrow_and_update() {
                return name;
            }
            if died.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

impl LivenessGuard {
    /// Ends the part; `as_told` is whether it was told to.
    pub fn ended(mut self, as_told: bool) {
        self.has_ended = true;
        if !as_told {
            self.dies("it ended and was not to");
        }
    }

    fn dies(&self, why: &str) {
        tracing::error!(name = self.name, why, "a part of the service has died; the process has to be started again");
        self.liveness.died.send_modify(|died| *died = died.or(Some(self.name)));
    }
}

impl Drop for LivenessGuard {
    fn drop(&mut self) {
        // A runtime that shuts down and an aborted task drop this guard without a panic.
        if !self.has_ended && std::thread::panicking() {
            self.dies("it panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_and_an_unexpected_end_are_deaths_and_nothing_else_is() {
        let liveness = Liveness::default();
        liveness.part("told to end").ended(true);
        drop(liveness.part("dropped"));
        let aborted = tokio::spawn(liveness.clone().watch("aborted", std::future::pending()));
        aborted.abort();
        assert!(aborted.await.unwrap_err().is_cancelled());
        assert_eq!(liveness.dead(), None);

        let part = liveness.part("panicking");
        std::thread::spawn(move || {
            let _part = part;
            panic!("on purpose");
        })
        .join()
        .unwrap_err();
        assert_eq!((liveness.died().await, liveness.dead()), ("panicking", Some("panicking")));

        let liveness = Liveness::default();
        tokio::spawn(liveness.clone().watch("ending", async {}));
        assert_eq!(liveness.died().await, "ending");
    }
}

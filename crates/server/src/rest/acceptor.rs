//! Accepts connections. After a failed accept it pauses, then tries again.

use std::future::Future;
use std::io::{Error, ErrorKind};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

/// The pause after the first failure in a row. Each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The pause after a failure when connections were closed: closing them takes a moment.
const CLOSING: Duration = Duration::from_millis(1);

/// A listener.
pub(super) trait Listen: Send + Sync {
    /// The next connection. Dropping the future loses no connection.
    fn accept(&self) -> impl Future<Output = Result<TcpStream, Error>> + Send;
}

impl Listen for TcpListener {
    async fn accept(&self) -> Result<TcpStream, Error> {
        TcpListener::accept(self).await.map(|(stream, _)| stream)
    }
}

/// Accepts connections.
pub(super) struct Acceptor<L> {
    listener: L,
    /// How many accepts have failed in a row.
    pub(super) failures: u32,
    resume_at: Option<Instant>,
}

impl<L: Listen> Acceptor<L> {
    pub(super) fn new(listener: L) -> Self {
        Acceptor { listener, failures: 0, resume_at: None }
    }

    /// Other connections were closed since the failure: the next accept may come soon.
    pub(super) fn resume_soon(&mut self) {
        self.resume_at = self.resume_at.map(|resume_at| resume_at.min(Instant::now() + CLOSING));
    }

    /// The next connection, or the error if the machine cannot accept it (too many open files, no memory). After a
    /// failure the next call pauses first. Dropping the future loses no connection.
    #[expect(clippy::disallowed_methods, reason = "connections live on the machine's clock")]
    pub(super) async fn next(&mut self) -> Result<TcpStream, Error> {
        if let Some(resume_at) = self.resume_at {
            tokio::time::sleep_until(resume_at).await;
            self.resume_at = None;
        }
        loop {
            match self.listener.accept().await {
                Ok(stream) => {
                    self.failures = 0;
                    return Ok(stream);
                }
                // The caller closed the connection already.
                Err(error) if is_about_one_connection(&error) => {
                    tracing::debug!(%error, "a connection ended before it was accepted");
                    tokio::task::yield_now().await;
                }
                Err(error) => {
                    self.failures = self.failures.saturating_add(1);
                    self.resume_at = Some(Instant::now() + pause(self.failures));
                    return Err(error);
                }
            }
        }
    }
}

/// The pause after so many failures in a row.
fn pause(failures: u32) -> Duration {
    let doubled = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    FIRST_PAUSE.saturating_mul(doubled).min(LONGEST_PAUSE)
}

fn is_about_one_connection(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionAborted
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionRefused
            | ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Fails so many times with EMFILE, then accepts.
    struct Failing(AtomicU32, TcpListener);

    impl Listen for Failing {
        async fn accept(&self) -> Result<TcpStream, Error> {
            let left = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            match left {
                Ok(_) => Err(Error::from_raw_os_error(24)),
                Err(_) => Listen::accept(&self.1).await,
            }
        }
    }

    #[test]
    fn pauses_grow_to_a_second() {
        for (failures, millis) in [(1, 5), (2, 10), (8, 640), (9, 1_000), (32, 1_000), (33, 1_000), (u32::MAX, 1_000)] {
            assert_eq!(pause(failures).as_millis(), millis, "{failures}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_pause_is_short_when_connections_were_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut accepting = Acceptor::new(Failing(AtomicU32::new(100), listener));
        for _ in 0..10 {
            accepting.next().await.unwrap_err();
        }
        let began = Instant::now();
        accepting.resume_soon();
        accepting.next().await.unwrap_err();
        assert_eq!(began.elapsed(), CLOSING);
        accepting.next().await.unwrap_err();
        assert_eq!(began.elapsed(), CLOSING + LONGEST_PAUSE, "nothing was closed");
    }

    #[tokio::test(start_paused = true)]
    async fn a_thousand_failures_are_survived_and_forgotten() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut accepting = Acceptor::new(Failing(AtomicU32::new(1_000), listener));
        let began = Instant::now();
        for failures in 1..=1_000 {
            assert_eq!(accepting.next().await.unwrap_err().raw_os_error(), Some(24));
            assert_eq!(accepting.failures, failures);
        }
        // 8 growing pauses, then a second each.
        assert_eq!(began.elapsed(), Duration::from_millis(5 * 255 + 991 * 1_000));
        let _caller = std::net::TcpStream::connect(address).unwrap();
        accepting.next().await.unwrap();
        assert_eq!(accepting.failures, 0);
    }
}

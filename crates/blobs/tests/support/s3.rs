//! An S3-compatible server on a port of this machine, over a directory: `s3s-fs`, not a mock.
//!
//! Nothing here knows what is under test: another crate's tests may use it by
//! `#[path = "../../../blobs/tests/support/s3.rs"] mod s3;`.

#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a server that cannot work fails the test")]

#[path = "s3_faults.rs"]
mod faults;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread::JoinHandle;

pub use faults::Fault;
use faults::Faults;
use hyper_util::rt::{TokioExecutor, TokioIo};
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// Who may use it.
pub const ACCESS_KEY_ID: &str = "test-key";
/// The secret that goes with it.
pub const SECRET_ACCESS_KEY: &str = "test-secret";
const BUCKET: &str = "bodies";

/// A server that runs until it is dropped.
pub struct S3 {
    directory: TempDir,
    address: SocketAddr,
    faults: Faults,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl S3 {
    /// Starts one, with an empty bucket.
    pub fn start() -> S3 {
        let directory = TempDir::new().unwrap();
        std::fs::create_dir(directory.path().join(BUCKET)).unwrap();
        let mut server =
            S3 { directory, address: ([127, 0, 0, 1], 0).into(), faults: Faults::default(), running: None };
        server.resume();
        server
    }

    /// Where it is, as the setting `blobs` says it.
    pub fn url(&self) -> String {
        format!("s3://{BUCKET}/redrive?endpoint=http://{}", self.address)
    }

    /// From now on, a request of this method for this path gets what `choose` says, or the server's own answer. It is
    /// asked before each request is carried out.
    pub fn fail(&self, choose: impl Fn(&str, &str) -> Option<Fault> + Send + 'static) {
        self.faults.set(choose);
    }

    /// From now on, all is well again.
    pub fn heal(&self) {
        self.faults.set(|_, _| None);
    }

    /// Ends it as a crash would: every connection breaks.
    pub fn kill(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            drop(stop);
            thread.join().unwrap();
        }
    }

    /// Starts it again, where it was.
    pub fn resume(&mut self) {
        let fs = s3s_fs::FileSystem::new(self.directory.path()).unwrap();
        let mut builder = S3ServiceBuilder::new(fs);
        builder.set_auth(SimpleAuth::from_single(ACCESS_KEY_ID, SECRET_ACCESS_KEY));
        let service = builder.build();
        let listener = std::net::TcpListener::bind(self.address).unwrap();
        listener.set_nonblocking(true).unwrap();
        self.address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let faults = self.faults.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(serve(listener, service, faults, stopped));
        });
        self.running = Some((stop, thread));
    }

    /// The files of all objects.
    pub fn files(&self) -> Vec<PathBuf> {
        files_below(self.directory.path().join(BUCKET))
    }

    /// Where the bucket's objects are.
    pub fn root(&self) -> PathBuf {
        self.directory.path().join(BUCKET).join("redrive")
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        self.kill();
    }
}

async fn serve(
    listener: std::net::TcpListener,
    service: S3Service,
    faults: Faults,
    mut stopped: oneshot::Receiver<()>,
) {
    let listener = TcpListener::from_std(listener).unwrap();
    // Dropping the set breaks the connections.
    let mut connections = JoinSet::new();
    loop {
        let stream = tokio::select! {
            biased;
            _ = &mut stopped => return,
            accepted = listener.accept() => accepted.unwrap().0,
        };
        let service = faults.clone().before(service.clone());
        connections.spawn(async move {
            let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
            // A caller that hangs up is no concern of the server's.
            builder.serve_connection(TokioIo::new(stream), service).await.ok();
        });
    }
}

/// Every file below a directory.
pub fn files_below(directory: PathBuf) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut directories = vec![directory];
    while let Some(directory) = directories.pop() {
        let Ok(entries) = std::fs::read_dir(directory) else { continue };
        for entry in entries.map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => directories.push(entry.path()),
                false => files.push(entry.path()),
            }
        }
    }
    files.sort();
    files
}

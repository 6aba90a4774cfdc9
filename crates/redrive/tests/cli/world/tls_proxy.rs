//! A proxy that speaks TLS in front of a service, as an operator would put one there.

use std::net::TcpListener;
use std::path::PathBuf;
use std::thread;

use tempfile::TempDir;
use tokio::io::copy_bidirectional;

use super::tls::{Authority, Quality};

/// A TLS proxy. Its thread ends with the test's process.
pub(crate) struct TlsProxy {
    /// Where it listens.
    pub(crate) url: String,
    authority: Authority,
    directory: TempDir,
}

impl TlsProxy {
    /// A proxy in front of the server at `authority` (HOST:PORT), with a certificate for `localhost`.
    pub(crate) fn start(server: &str) -> TlsProxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        let (authority, server) = (Authority::new(), server.to_owned());
        let acceptor = authority.acceptor(Quality::Good, &["http/1.1"]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        thread::spawn(move || {
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                while let Ok((stream, _)) = listener.accept().await {
                    let (acceptor, server) = (acceptor.clone(), server.clone());
                    tokio::spawn(async move {
                        // A client that does not trust the certificate closes the connection.
                        let Ok(mut secure) = acceptor.accept(stream).await else { return };
                        let mut plain = tokio::net::TcpStream::connect(server).await.unwrap();
                        copy_bidirectional(&mut secure, &mut plain).await.ok();
                    });
                }
            });
        });
        TlsProxy { url, authority, directory: tempfile::tempdir().unwrap() }
    }

    /// A PEM file of the authority that signed its certificate.
    pub(crate) fn ca_file(&self) -> PathBuf {
        let file = self.directory.path().join("ca.pem");
        std::fs::write(&file, self.authority.pem()).unwrap();
        file
    }
}

//! The transport of the engine.

use std::sync::Arc;

use redrive_engine::bodies::Bodies;
use redrive_engine::transport::{Outbound, Sending, Transport};

use crate::attempt;
use crate::connect::Connector;
use crate::error::Error;
use crate::options::Options;
use crate::pool::Pool;

/// Sends over HTTP/1.1 and HTTP/2, with TLS. Dropping it closes the connections that are not in use; the others close
/// when their sends end.
///
/// Sends must be polled on a tokio runtime with its timers and I/O enabled.
pub struct HttpTransport {
    pool: Arc<Pool>,
    bodies: Option<Arc<dyn Bodies>>,
}

impl HttpTransport {
    /// A transport that works as `options` say. Reads the system's root certificates and the files that are named.
    pub fn new(options: Options) -> Result<Self, Error> {
        let connector = Connector::new(&options)?;
        Ok(HttpTransport { pool: Arc::new(Pool::new(options, connector)), bodies: None })
    }

    /// This transport with blob storage for large bodies.
    #[must_use]
    pub fn with_bodies(mut self, bodies: Arc<dyn Bodies>) -> Self {
        self.bodies = Some(bodies);
        self
    }
}

impl Transport for HttpTransport {
    fn send(&self, outbound: Outbound) -> Sending {
        Box::pin(attempt::run(self.pool.clone(), self.bodies.clone(), outbound))
    }
}

impl Drop for HttpTransport {
    fn drop(&mut self) {
        self.pool.close();
    }
}

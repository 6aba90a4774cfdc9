//! Opens connections: resolves a name, connects by TCP and does the TLS handshake.
//!
//! Everything in Redrive that makes connections of its own does it through [`Dialer`], so that one setting for DNS
//! servers or trusted certificates holds everywhere. Clients of others that make their own connections (PostgreSQL,
//! Redis) take the trusted certificates from [`Authorities`].
//!
//! | file | its job |
//! | --- | --- |
//! | `options` | the settings |
//! | `endpoint` | the host and port to connect to, and whether with TLS |
//! | `dialer` | [`Dialer`]: the steps to a connection, within one timeout |
//! | `resolve` | names to addresses |
//! | `authorities`, `tls` | trusted certificates, and the TLS settings made of them |
//! | `stream` | an open connection, with or without TLS |
//! | `shortage` | file descriptors, ports and memory that this machine lacks |
//! | `error` | why a connection could not be opened |
//!
//! Not here: HTTP, pools of connections, retries, and any way to turn certificate checks off.

#![forbid(unsafe_code)]

mod authorities;
mod dialer;
mod endpoint;
mod error;
mod options;
mod resolve;
mod shortage;
mod stream;
mod tls;

pub use authorities::{Authorities, AuthorityError};
pub use dialer::{Dialer, Step};
pub use endpoint::{Endpoint, InvalidHost};
pub use error::{DialError, DialErrorKind, SetupError};
pub use options::{Options, Roots};
pub use stream::Stream;

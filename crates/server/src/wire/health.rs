//! How the service is.

use schemars::JsonSchema;
use serde::Serialize;

/// How the service is.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Health {
    /// `ok`.
    pub status: &'static str,
}

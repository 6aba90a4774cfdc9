//! The answer to an upload.

use redrive_core::BodyRef;
use schemars::JsonSchema;
use serde::Serialize;

/// A stored body, for submissions to refer to.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StoredBody {
    /// The reference to use as `bodyRef`: `sha256:` and the hash of the bytes.
    pub body_ref: String,
    /// Its size in bytes.
    pub bytes: u64,
}

impl From<&BodyRef> for StoredBody {
    fn from(body: &BodyRef) -> Self {
        StoredBody { body_ref: body.hash.to_string(), bytes: body.length }
    }
}

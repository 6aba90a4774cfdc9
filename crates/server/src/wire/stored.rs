//! What an upload is answered with.

use redrive_core::BodyRef;
use schemars::JsonSchema;
use serde::Serialize;

/// A stored body, for a submission to refer to.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StoredBody {
    /// What to give as `bodyRef`: `sha256:` and the hash of its bytes.
    pub body_ref: String,
    /// How many bytes it has.
    pub bytes: u64,
}

impl From<&BodyRef> for StoredBody {
    fn from(body: &BodyRef) -> Self {
        StoredBody { body_ref: body.hash.to_string(), bytes: body.length }
    }
}

//! The body of a request, as the command line says it: a text, a file, standard input.

use std::fs::File;
use std::io::Read;

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;

use crate::client::Upload;

/// The most bytes of a body that go into the document. What is more is uploaded first, as it is.
const UPLOAD_ABOVE: u64 = 1024 * 1024;

/// What `data` stands for.
pub(super) enum Data {
    /// Bytes for the document.
    Bytes(Vec<u8>),
    /// More than a document should have.
    Large(Upload),
}

/// What `data` stands for; a large file is only opened.
pub(super) fn data(data: &str) -> anyhow::Result<Data> {
    if let Some(name) = data.strip_prefix('@').filter(|name| *name != "-") {
        let file = File::open(name).with_context(|| format!("cannot read {name}"))?;
        let metadata = file.metadata().with_context(|| format!("cannot read {name}"))?;
        if metadata.is_file() && metadata.len() > UPLOAD_ABOVE {
            return Ok(Data::Large(Upload::File(file, metadata.len())));
        }
    }
    let bytes = bytes(data)?;
    let is_large = bytes.len() as u64 > UPLOAD_ABOVE;
    Ok(if is_large { Data::Large(Upload::Bytes(bytes)) } else { Data::Bytes(bytes) })
}

/// The bytes that `data` stands for.
fn bytes(data: &str) -> anyhow::Result<Vec<u8>> {
    match data.strip_prefix('@') {
        Some("-") => standard_input(),
        Some(file) => std::fs::read(file).with_context(|| format!("cannot read {file}")),
        None if data == "-" => standard_input(),
        None => Ok(data.as_bytes().to_vec()),
    }
}

/// The JSON that `data` stands for, as it was written.
pub(super) fn json(data: &str) -> anyhow::Result<Box<RawValue>> {
    serde_json::from_slice(&bytes(data)?).context("--json-body is not JSON")
}

/// Bytes that are no text.
pub(super) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

fn standard_input() -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes).context("cannot read standard input")?;
    Ok(bytes)
}

//! The body of a request, as the command line says it: a text, a file, standard input.

use std::io::Read;

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;

/// The bytes that `data` stands for.
pub(super) fn bytes(data: &str) -> anyhow::Result<Vec<u8>> {
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

//! The request hash, its test vectors and its references in other languages agree (docs/examples/request-hash).

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

use std::path::PathBuf;
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use redrive_core::idempotency::RequestHash;
use redrive_core::idempotency::request_hash::{Comparison, HashedRequest};
use serde_json::Value;

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/request-hash")
}

fn vectors() -> Vec<Value> {
    serde_json::from_slice(&std::fs::read(directory().join("vectors.json")).unwrap()).unwrap()
}

/// The hashes that a reference prints.
fn printed_by(program: &str, reference: &str) -> Vec<String> {
    let output = Command::new(program).args([reference, "vectors.json"]).current_dir(directory()).output();
    let output = output.unwrap_or_else(|error| panic!("running {program}, which this test needs: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn the_test_vectors_have_the_hashes_of_this_crate() {
    for vector in vectors() {
        let text = |name: &str| vector[name].as_str().unwrap();
        let body = STANDARD.decode(text("bodyBase64")).unwrap();
        let request = HashedRequest {
            method: text("method"),
            path: text("path"),
            content_type: text("contentType"),
            body: &body,
            comparison: if text("comparison") == "json" { Comparison::Json } else { Comparison::Bytes },
        };
        assert_eq!(RequestHash::of(&request).to_string(), text("hash"), "{}", text("about"));
    }
}

#[test]
fn the_references_in_python_and_javascript_print_the_hashes_of_the_vectors() {
    let expected: Vec<String> = vectors().iter().map(|vector| vector["hash"].as_str().unwrap().to_owned()).collect();
    assert!(expected.len() > 20);
    assert_eq!(printed_by("python3", "request_hash.py"), expected);
    assert_eq!(printed_by("node", "request_hash.js"), expected);
}

//! Opens a bucket of a service with the S3 API.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::{ObjectStore, RetryConfig};
use redrive_dial::Dialer;

use crate::connector::Connector;
use crate::failure::OpenError;
use crate::location::{Bucket, Credentials};

/// How often a call to S3 is tried again, and for how long: the engine retries what needs longer.
const RETRIES: usize = 3;
const RETRY_TIMEOUT: Duration = Duration::from_secs(20);

/// The client of a bucket.
pub(crate) fn open(
    bucket: &Bucket,
    credentials: &Credentials,
    extra_ca: &[PathBuf],
) -> Result<impl ObjectStore + use<>, OpenError> {
    let retry = RetryConfig { max_retries: RETRIES, retry_timeout: RETRY_TIMEOUT, ..RetryConfig::default() };
    let options = redrive_dial::Options { extra_ca: extra_ca.to_vec(), ..redrive_dial::Options::default() };
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(&bucket.name)
        .with_region(&bucket.region)
        .with_http_connector(Connector { dialer: Arc::new(Dialer::new(&options)?) })
        .with_retry(retry);
    if let Some(endpoint) = &bucket.endpoint {
        builder = builder.with_endpoint(endpoint).with_allow_http(endpoint.starts_with("http:"));
    }
    if let Some(id) = &credentials.access_key_id {
        builder = builder.with_access_key_id(id);
    }
    if let Some(secret) = &credentials.secret_access_key {
        builder = builder.with_secret_access_key(secret);
    }
    if let Some(token) = &credentials.session_token {
        builder = builder.with_token(token);
    }
    Ok(builder.build()?)
}

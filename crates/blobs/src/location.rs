//! The setting of where bodies are stored.

use std::fmt;
use std::path::{Path, PathBuf};

use url::Url;

/// Where bodies are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// In a directory of this machine.
    Directory(PathBuf),
    /// In a bucket of a service with the S3 API.
    S3(Bucket),
    /// In memory: lost when the process ends.
    Memory,
}

/// A bucket and a prefix in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    /// The bucket's name.
    pub(crate) name: String,
    /// The prefix of all object names.
    pub(crate) prefix: String,
    /// The URL of the service; none for Amazon S3.
    pub(crate) endpoint: Option<String>,
    /// The region.
    pub(crate) region: String,
}

/// The region if none is named; most services other than Amazon S3 accept any.
const DEFAULT_REGION: &str = "us-east-1";

/// The credentials for S3. Without them, those of the machine are used (an instance's role).
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The key's id.
    pub access_key_id: Option<String>,
    /// The key.
    pub secret_access_key: Option<String>,
    /// The token of a temporary key.
    pub session_token: Option<String>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("are_given", &self.secret_access_key.is_some()).finish()
    }
}

/// A text that is not a location.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be file:///DIRECTORY, memory: or s3://BUCKET/PREFIX?endpoint=URL&region=NAME; {0}")]
pub struct InvalidLocation(String);

impl Location {
    /// Reads a location from its text.
    pub fn parse(text: &str) -> Result<Self, InvalidLocation> {
        let url = Url::parse(text).map_err(|error| InvalidLocation(format!("this is not a URL: {error}")))?;
        match url.scheme() {
            "file" => {
                let path = url.to_file_path().map_err(|()| InvalidLocation("this is not an absolute path".into()))?;
                Ok(Location::Directory(path))
            }
            "memory" => Ok(Location::Memory),
            "s3" => bucket(&url).map(Location::S3),
            other => Err(InvalidLocation(format!("the scheme is {other}:"))),
        }
    }

    /// The directory `path`.
    pub fn directory(path: &Path) -> Self {
        Location::Directory(path.to_owned())
    }
}

/// For people. There is no key in it.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Directory(path) => write!(f, "{}", path.display()),
            Location::Memory => f.write_str("memory"),
            Location::S3(Bucket { name, prefix, endpoint, .. }) => {
                write!(f, "s3://{name}")?;
                if !prefix.is_empty() {
                    write!(f, "/{prefix}")?;
                }
                endpoint.as_ref().map_or(Ok(()), |endpoint| write!(f, " at {endpoint}"))
            }
        }
    }
}

fn bucket(url: &Url) -> Result<Bucket, InvalidLocation> {
    let name = url
        .host_str()
        .filter(|name| !name.is_empty())
        .ok_or_else(|| InvalidLocation("the bucket is missing".into()))?;
    refuse_keys(url)?;
    let prefix = url.path().trim_matches('/').to_owned();
    let mut bucket = Bucket { name: name.to_owned(), prefix, endpoint: None, region: DEFAULT_REGION.into() };
    for (name, value) in url.query_pairs() {
        match &*name {
            "endpoint" => {
                let endpoint = Url::parse(&value).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
                let Some(endpoint) = endpoint else {
                    return Err(InvalidLocation(format!("the endpoint {value:?} is not an http or https URL")));
                };
                refuse_keys(&endpoint)?;
                bucket.endpoint = Some(value.trim_end_matches('/').to_owned());
            }
            "region" => bucket.region = value.into_owned(),
            other => return Err(InvalidLocation(format!("{other:?} is not a parameter"))),
        }
    }
    Ok(bucket)
}

/// Keys in a URL are refused: they would not be used, and the URL is shown to people.
fn refuse_keys(url: &Url) -> Result<(), InvalidLocation> {
    if !url.username().is_empty() || url.password().is_some() {
        return Err(InvalidLocation("put keys into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY".into()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_directory_a_bucket_or_memory() {
        let bucket = |prefix: &str, endpoint: Option<&str>, region: &str| {
            let (endpoint, name) = (endpoint.map(str::to_owned), "bodies".to_owned());
            Location::S3(Bucket { name, prefix: prefix.into(), endpoint, region: region.into() })
        };
        for (text, expected) in [
            ("file:///var/lib/redrive/blobs", Location::Directory("/var/lib/redrive/blobs".into())),
            ("memory:", Location::Memory),
            ("s3://bodies", bucket("", None, "us-east-1")),
            ("s3://bodies/redrive/prod/?region=eu-1", bucket("redrive/prod", None, "eu-1")),
            ("s3://bodies?endpoint=http://127.0.0.1:9000/", bucket("", Some("http://127.0.0.1:9000"), "us-east-1")),
        ] {
            assert_eq!(Location::parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_place_says_what_is_wrong() {
        for (text, wrong) in [
            ("/var/lib", "this is not a URL"),
            ("http://x/", "the scheme is http:"),
            ("s3:///prefix", "the bucket is missing"),
            ("s3://key:secret@bodies", "AWS_ACCESS_KEY_ID"),
            ("s3://bodies?endpoint=localhost:9000", "is not an http or https URL"),
            ("s3://bodies?endpoint=http://key:secret@localhost:9000", "AWS_ACCESS_KEY_ID"),
            ("s3://bodies?zone=1", "\"zone\" is not a parameter"),
        ] {
            let error = Location::parse(text).unwrap_err().to_string();
            assert!(error.contains(wrong), "{text}: {error}");
        }
    }

    #[test]
    fn a_place_is_shown_so_that_people_find_it() {
        for (text, shown) in [
            ("file:///var/lib/redrive/blobs", "/var/lib/redrive/blobs"),
            ("memory:", "memory"),
            ("s3://bodies", "s3://bodies"),
            ("s3://bodies/redrive/prod/?region=eu-1", "s3://bodies/redrive/prod"),
            ("s3://bodies/p?endpoint=http://127.0.0.1:9000/", "s3://bodies/p at http://127.0.0.1:9000"),
        ] {
            assert_eq!(Location::parse(text).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn a_key_is_never_shown() {
        let credentials = Credentials { secret_access_key: Some("hidden".into()), ..Credentials::default() };
        assert_eq!(format!("{credentials:?}"), "Credentials { are_given: true }");
    }
}

//! Where bodies are kept, as the setting says it.

use std::fmt;
use std::path::{Path, PathBuf};

use url::Url;

/// Where bodies are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// In a directory of this machine.
    Directory(PathBuf),
    /// In a bucket of something that speaks S3.
    S3(Bucket),
    /// In this process's memory: gone when it ends.
    Memory,
}

/// A place in a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    /// The bucket's name.
    pub(crate) name: String,
    /// What the names of all objects begin with.
    pub(crate) prefix: String,
    /// Where the service is, unless it is Amazon's.
    pub(crate) endpoint: Option<String>,
    /// The region.
    pub(crate) region: String,
}

/// The region that is asked for if none is named; what is not Amazon's mostly takes any.
const DEFAULT_REGION: &str = "us-east-1";

/// Who asks. Without them, what the machine itself was given is used (an instance's role).
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

/// A text that names no place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be file:///DIRECTORY, memory: or s3://BUCKET/PREFIX?endpoint=URL&region=NAME; {0}")]
pub struct InvalidLocation(String);

impl Location {
    /// The place that this text names.
    pub fn parse(text: &str) -> Result<Self, InvalidLocation> {
        let url = Url::parse(text).map_err(|error| InvalidLocation(format!("this is not a URL: {error}")))?;
        match url.scheme() {
            "file" => {
                let path = url.to_file_path().map_err(|()| InvalidLocation("this names no directory".into()))?;
                Ok(Location::Directory(path))
            }
            "memory" => Ok(Location::Memory),
            "s3" => bucket(&url).map(Location::S3),
            other => Err(InvalidLocation(format!("this begins with {other}:"))),
        }
    }

    /// The directory `path`, as such a text.
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
    let name =
        url.host_str().filter(|name| !name.is_empty()).ok_or_else(|| InvalidLocation("a bucket is missing".into()))?;
    refuse_keys(url)?;
    let prefix = url.path().trim_matches('/').to_owned();
    let mut bucket = Bucket { name: name.to_owned(), prefix, endpoint: None, region: DEFAULT_REGION.into() };
    for (name, value) in url.query_pairs() {
        match &*name {
            "endpoint" => {
                let endpoint = Url::parse(&value).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
                let Some(endpoint) = endpoint else {
                    return Err(InvalidLocation(format!("the endpoint {value:?} is no http or https URL")));
                };
                refuse_keys(&endpoint)?;
                bucket.endpoint = Some(value.trim_end_matches('/').to_owned());
            }
            "region" => bucket.region = value.into_owned(),
            other => return Err(InvalidLocation(format!("{other:?} means nothing here"))),
        }
    }
    Ok(bucket)
}

/// What has keys in it could not be shown, and nobody would use them.
fn refuse_keys(url: &Url) -> Result<(), InvalidLocation> {
    if !url.username().is_empty() || url.password().is_some() {
        return Err(InvalidLocation("keys belong into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY".into()));
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
            ("http://x/", "this begins with http:"),
            ("s3:///prefix", "a bucket is missing"),
            ("s3://key:secret@bodies", "AWS_ACCESS_KEY_ID"),
            ("s3://bodies?endpoint=localhost:9000", "is no http or https URL"),
            ("s3://bodies?endpoint=http://key:secret@localhost:9000", "AWS_ACCESS_KEY_ID"),
            ("s3://bodies?zone=1", "\"zone\" means nothing here"),
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

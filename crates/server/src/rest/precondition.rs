//! `If-Match` and `If-None-Match` (RFC 9110, section 13) for policies, whose `ETag` is their version.

use http::HeaderMap;
use http::header::{HeaderName, IF_MATCH, IF_NONE_MATCH};

use super::header_list;
use super::problem::Refusal;
use crate::operations::Precondition;

/// The `ETag` of a version.
pub(crate) fn etag(version: u32) -> String {
    format!("\"{version}\"")
}

/// The precondition in the headers of a request.
pub(crate) fn of(headers: &HeaderMap) -> Result<Precondition, Refusal> {
    let if_match = list(headers, IF_MATCH)?;
    let if_none_match = list(headers, IF_NONE_MATCH)?;
    match (if_match, if_none_match) {
        (None, None) => Ok(Precondition::Nothing),
        (Some(tags), None) if tags == ["*"] => Ok(Precondition::Exists),
        (Some(tags), None) => Ok(Precondition::VersionIn(versions(&tags)?)),
        (None, Some(tags)) if tags == ["*"] => Ok(Precondition::Absent),
        (None, Some(_)) => {
            Err(Refusal::parameter("If-None-Match", "must be *, which means that the policy must not exist yet"))
        }
        (Some(_), Some(_)) => Err(Refusal::parameter("If-None-Match", "must not be combined with If-Match")),
    }
}

fn list(headers: &HeaderMap, name: HeaderName) -> Result<Option<Vec<&str>>, Refusal> {
    let mut tags = Vec::new();
    for value in headers.get_all(&name) {
        let value = value.to_str().map_err(|_| Refusal::parameter(display(&name), "must be visible ASCII"))?;
        tags.extend(header_list::items(value));
    }
    Ok(headers.contains_key(name).then_some(tags))
}

/// The versions that the tags stand for. Weak tags and tags that are not versions match nothing and are left out.
fn versions(tags: &[&str]) -> Result<Vec<u32>, Refusal> {
    const EXPECTED: &str = "must be * or a list of ETags such as \"3\"";
    if tags.is_empty() {
        return Err(Refusal::parameter("If-Match", EXPECTED));
    }
    let mut versions = Vec::with_capacity(tags.len());
    for tag in tags {
        let opaque = tag.strip_prefix("W/").unwrap_or(tag);
        if opaque.len() < 2 || !opaque.starts_with('"') || !opaque.ends_with('"') {
            return Err(Refusal::parameter("If-Match", EXPECTED));
        }
        let version = opaque[1..opaque.len() - 1].parse::<u32>();
        versions.extend(version.ok().filter(|_| opaque.len() == tag.len()));
    }
    Ok(versions)
}

fn display(name: &HeaderName) -> &'static str {
    if *name == IF_MATCH { "If-Match" } else { "If-None-Match" }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn preconditions_speak_of_versions() {
        let absent: &[(HeaderName, &str)] = &[];
        for (given, expected) in [
            (absent, Some(Precondition::Nothing)),
            (&[(IF_MATCH, "\"3\"")], Some(Precondition::VersionIn(vec![3]))),
            (&[(IF_MATCH, "\"3\", \"4\"")], Some(Precondition::VersionIn(vec![3, 4]))),
            (&[(IF_MATCH, "W/\"3\"")], Some(Precondition::VersionIn(vec![]))),
            (&[(IF_MATCH, "\"abc\"")], Some(Precondition::VersionIn(vec![]))),
            (&[(IF_MATCH, "*")], Some(Precondition::Exists)),
            (&[(IF_MATCH, "3")], None),
            (&[(IF_MATCH, "\"")], None),
            (&[(IF_MATCH, "")], None),
            (&[(IF_MATCH, " , ")], None),
            (&[(IF_MATCH, "*, \"3\"")], None),
            (&[(IF_NONE_MATCH, "*")], Some(Precondition::Absent)),
            (&[(IF_NONE_MATCH, "\"3\"")], None),
            (&[(IF_MATCH, "*"), (IF_NONE_MATCH, "*")], None),
        ] {
            let headers: HeaderMap =
                given.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect();
            assert_eq!(of(&headers).ok(), expected, "{given:?}");
        }
    }
}

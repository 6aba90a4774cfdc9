//! The `ETag` of an idempotency record, and `If-Match` (RFC 9110, section 13) with it.

use http::HeaderMap;
use http::header::IF_MATCH;
use redrive_core::Timestamp;
use redrive_core::idempotency::{Epoch, Record, State};
use redrive_store::SeenRecord;

use super::header_list;
use super::problem::Refusal;
use crate::operations::RecordPrecondition;

const EXPECTED: &str =
    "must be *, or a list of ETags of the record such as \"1-SUCCEEDED-1731600000000-1731600000000\"";

/// The `ETag` of a record: another one whenever the record has changed. The end of the lease is in it because a renewal may
/// come in the millisecond of the change before it.
pub(crate) fn of(record: &Record) -> String {
    let SeenRecord { epoch, state, updated_at, lease_until } = SeenRecord::of(record);
    format!("\"{epoch}-{}-{}-{}\"", state.name(), updated_at.as_millis(), lease_until.as_millis())
}

/// The precondition in the headers of a request, which must have one.
pub(crate) fn required(headers: &HeaderMap) -> Result<RecordPrecondition, Refusal> {
    let mut tags = Vec::new();
    for value in headers.get_all(IF_MATCH) {
        let value = value.to_str().map_err(|_| Refusal::parameter("If-Match", "must be visible ASCII"))?;
        tags.extend(header_list::items(value));
    }
    if !headers.contains_key(IF_MATCH) {
        return Err(Refusal::PreconditionRequired);
    }
    if tags == ["*"] {
        return Ok(RecordPrecondition::Exists);
    }
    let is_tag = |tag: &&str| {
        let opaque = tag.strip_prefix("W/").unwrap_or(tag);
        opaque.len() >= 2 && opaque.starts_with('"') && opaque.ends_with('"')
    };
    if tags.is_empty() || !tags.iter().all(is_tag) {
        return Err(Refusal::parameter("If-Match", EXPECTED));
    }
    // Weak tags, and tags that are not of a record, match nothing and are left out.
    Ok(RecordPrecondition::SeenIn(tags.into_iter().filter_map(seen).collect()))
}

/// The record that a strong tag names.
fn seen(tag: &str) -> Option<SeenRecord> {
    let mut parts = tag.strip_prefix('"')?.strip_suffix('"')?.split('-');
    let (epoch, state, updated_at, lease_until) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let time = |text: &str| text.parse().ok().map(Timestamp::from_millis);
    Some(SeenRecord {
        epoch: Epoch(epoch.parse().ok()?),
        state: State::from_name(state)?,
        updated_at: time(updated_at)?,
        lease_until: time(lease_until)?,
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_tag_names_the_record_that_was_seen() {
        let [updated_at, lease_until] = [77, 99].map(Timestamp::from_millis);
        let one = SeenRecord { epoch: Epoch(3), state: State::InProgress, updated_at, lease_until };
        let two = SeenRecord { state: State::FailedFinal, ..one };
        for (given, expected) in [
            (Some("\"3-IN_PROGRESS-77-99\""), Some(RecordPrecondition::SeenIn(vec![one]))),
            (
                Some("\"3-IN_PROGRESS-77-99\", \"3-FAILED_FINAL-77-99\""),
                Some(RecordPrecondition::SeenIn(vec![one, two])),
            ),
            (Some("W/\"3-IN_PROGRESS-77-99\""), Some(RecordPrecondition::SeenIn(vec![]))),
            (Some("\"3-IN_PROGRESS-77\""), Some(RecordPrecondition::SeenIn(vec![]))),
            (Some("\"3\""), Some(RecordPrecondition::SeenIn(vec![]))),
            (Some("\"3-GONE-77-99\""), Some(RecordPrecondition::SeenIn(vec![]))),
            (Some("*"), Some(RecordPrecondition::Exists)),
            (Some("3-IN_PROGRESS-77-99"), None),
            (Some("*, \"3-IN_PROGRESS-77-99\""), None),
            (Some(""), None),
            (None, None),
        ] {
            let headers: HeaderMap = given.iter().map(|value| (IF_MATCH, HeaderValue::from_static(value))).collect();
            assert_eq!(required(&headers).ok(), expected, "{given:?}");
        }
    }
}

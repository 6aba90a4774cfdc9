//! `Prefer: wait=N` (RFC 7240): how long to wait until a task has ended.

use std::time::Duration;

use http::HeaderMap;
use http::header::HeaderName;

use super::header_list;

pub(crate) const PREFER: HeaderName = HeaderName::from_static("prefer");
pub(crate) const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// How long to wait, at most `longest`; `None` if the caller does not ask for it. Malformed or unknown preferences
/// are ignored, as the RFC demands. Of several waits the first one counts.
pub(crate) fn wait(headers: &HeaderMap, longest: Duration) -> Option<Duration> {
    let mut lists = headers.get_all(PREFER).iter().filter_map(|value| value.to_str().ok());
    lists.find_map(|list| header_list::items(list).into_iter().find_map(wait_item)).map(|wait| wait.min(longest))
}

fn wait_item(item: &str) -> Option<Duration> {
    let (name, value) = item.split(';').next()?.split_once('=')?;
    if !name.trim().eq_ignore_ascii_case("wait") {
        return None;
    }
    let value = value.trim();
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    // A number that is too large is a long wait, not a malformed one.
    is_number.then(|| Duration::from_secs(value.parse().unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_wait_is_found_among_other_preferences_and_nonsense_is_ignored() {
        for (lines, expected) in [
            (&["wait=5"][..], Some(5)),
            (&["wait=0"], Some(0)),
            (&["respond-async, WAIT = 7"], Some(7)),
            (&["handling=lenient; x=1", "wait=3; foo"], Some(3)),
            (&["wait=2, wait=9"], Some(2)),
            (&["wait=31"], Some(30)),
            (&["wait=99999999999999999999999"], Some(30)),
            (&["wait"], None),
            (&["wait=soon"], None),
            (&["wait=-1"], None),
            (&["wait=1.5"], None),
            (&["wait="], None),
            (&["note=\"a, wait=5\""], None),
            (&["wait=x, wait=4"], Some(4)),
            (&[], None),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(PREFER, HeaderValue::from_static(line));
            }
            let wait = wait(&headers, Duration::from_secs(30));
            assert_eq!(wait.map(|wait| wait.as_secs()), expected, "{lines:?}");
        }
    }
}

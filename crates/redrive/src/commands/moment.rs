//! A moment as an argument.

use redrive_server::wire::Moment;

/// Reads an RFC 3339 time, or epoch milliseconds; as epoch milliseconds.
pub(crate) fn parse_moment(text: &str) -> Result<u64, String> {
    text.parse().map(|moment: Moment| moment.0.as_millis()).map_err(|error| error.to_string())
}

//! The arguments of the command line, before clap reads them.

use std::ffi::OsString;

use redrive_core::duration::parse_duration;

/// An option whose duration may be left out. Clap would take whatever follows it for its value, the URL too, so it asks for
/// `--wait=30s`; people write `--wait 30s`.
const WITH_OPTIONAL_DURATION: &str = "--wait";

/// Options whose value may look like another option.
const WITH_ANY_VALUE: [&str; 3] = ["-d", "--data", "--json-body"];

/// The arguments in which a duration that follows `--wait` belongs to it: `--wait 30s` becomes `--wait=30s`.
pub(crate) fn with_durations_joined(given: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = Vec::new();
    let mut are_options_over = false;
    for argument in given {
        let is_duration = argument.to_str().is_some_and(is_meant_as_duration);
        if is_duration && !are_options_over && ends_with_bare_option(&arguments) {
            if let Some(option) = arguments.last_mut() {
                option.push("=");
                option.push(&argument);
            }
        } else {
            are_options_over |= argument == "--";
            arguments.push(argument);
        }
    }
    arguments
}

/// Whether this is a duration, or a number that lacks the unit of one: clap then says what is wrong with it. No URL of a
/// target begins with a digit and has no slash.
fn is_meant_as_duration(text: &str) -> bool {
    let is_number = text.starts_with(|first: char| first.is_ascii_digit()) && !text.contains(['/', ':']);
    is_number || parse_duration(text).is_ok()
}

/// Whether the last of these is the option itself, and not the value of another one.
fn ends_with_bare_option(arguments: &[OsString]) -> bool {
    match arguments {
        [.., before, last] => last == WITH_OPTIONAL_DURATION && !WITH_ANY_VALUE.iter().any(|option| before == *option),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_duration_after_wait_is_joined_to_it() {
        for (given, expected) in [
            ("redrive send --wait 30s http://a", "redrive send --wait=30s http://a"),
            ("redrive send --wait http://a", "redrive send --wait http://a"),
            ("redrive send http://a --wait", "redrive send http://a --wait"),
            ("redrive send --wait=5s 30s", "redrive send --wait=5s 30s"),
            ("redrive send --wait 30 http://a", "redrive send --wait=30 http://a"),
            ("redrive send --wait 1.5s http://a", "redrive send --wait=1.5s http://a"),
            ("redrive send --wait 127.0.0.1:9000/hook", "redrive send --wait 127.0.0.1:9000/hook"),
            ("redrive send --delay 30s --wait", "redrive send --delay 30s --wait"),
            ("redrive send http://a -d --wait 30s", "redrive send http://a -d --wait 30s"),
            ("redrive send -- --wait 30s", "redrive send -- --wait 30s"),
        ] {
            let joined = with_durations_joined(given.split(' ').map(OsString::from));
            assert_eq!(joined, expected.split(' ').map(OsString::from).collect::<Vec<_>>());
        }
    }
}

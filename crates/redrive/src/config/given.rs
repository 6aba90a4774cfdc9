//! A value of a setting as it was given, before it is validated.
//!
//! Each reader returns the value or a sentence that says what would be right.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use super::{duration_text, parse_duration};

/// A value as it was given.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Given {
    /// Text of a flag or a variable: it may mean a number.
    Plain(String),
    /// A string of the file: it is never a number.
    Quoted(String),
    /// A whole number of the file.
    Whole(i64),
    /// A list: an array of the file, or a flag that was repeated.
    Many(Vec<String>),
    /// True or false, of the file.
    Truth(bool),
    /// A section of the file: names and values in their order.
    Section(Vec<(String, Given)>),
    /// Anything else of the file, with its TOML type and as it was written.
    Other {
        /// The TOML type.
        kind: &'static str,
        /// The text of it.
        written: String,
    },
}

/// The TOML type of a number with a fraction.
pub(super) const FRACTION: &str = "a fraction";

/// What was expected instead, as a sentence.
pub(super) type Expected = String;

impl Given {
    pub(super) fn text(&self) -> Result<&str, Expected> {
        match self {
            Given::Plain(text) | Given::Quoted(text) => Ok(text),
            _ => Err(format!("must be a string, not {}", self.kind())),
        }
    }

    pub(super) fn count(&self, allowed: RangeInclusive<usize>) -> Result<usize, Expected> {
        let wanted = || format!("must be a whole number from {} to {}", allowed.start(), allowed.end());
        let number = match self {
            Given::Whole(number) => usize::try_from(*number).ok(),
            Given::Plain(text) => text.trim().parse().ok(),
            Given::Quoted(_) => return Err(format!("{}, without quotes", wanted())),
            _ => return Err(format!("{}, not {}", wanted(), self.kind())),
        };
        number.filter(|number| allowed.contains(number)).ok_or_else(wanted)
    }

    /// The same for a number of 32 bits.
    pub(super) fn number(&self, allowed: RangeInclusive<u32>) -> Result<u32, Expected> {
        let count = self.count(*allowed.start() as usize..=*allowed.end() as usize)?;
        u32::try_from(count).map_err(|_| format!("must be at most {}", allowed.end()))
    }

    /// A number that is not negative, with or without a fraction.
    pub(super) fn fraction(&self) -> Result<f64, Expected> {
        let number = match self {
            Given::Whole(number) => Some(*number as f64),
            Given::Plain(text) => text.trim().parse().ok(),
            Given::Other { kind: FRACTION, written } => written.replace('_', "").parse().ok(),
            _ => None,
        };
        let is_valid = |number: &f64| number.is_finite() && *number >= 0.0;
        number.filter(is_valid).ok_or_else(|| "must be a number of at least 0".into())
    }

    pub(super) fn duration(&self, allowed: RangeInclusive<Duration>) -> Result<Duration, Expected> {
        let duration = match self {
            Given::Plain(text) | Given::Quoted(text) => parse_duration(text)?,
            Given::Whole(number) => {
                return Err(format!("must be a duration with its unit, in quotes: \"{number}ms\", \"{number}s\""));
            }
            _ => return Err(format!("must be a duration such as \"30s\", not {}", self.kind())),
        };
        if allowed.contains(&duration) {
            return Ok(duration);
        }
        Err(format!("must be from {} to {}", duration_text(*allowed.start()), duration_text(*allowed.end())))
    }

    pub(super) fn one_of<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, Expected> {
        let wanted = || {
            let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
            format!("must be {}", names.join(" or "))
        };
        let text = self.text().map_err(|_| format!("{}, in quotes", wanted()))?;
        let found = choices.iter().find(|(name, _)| *name == text).map(|(_, choice)| *choice);
        found.ok_or_else(wanted)
    }

    pub(super) fn path(&self) -> Result<PathBuf, Expected> {
        match self.text()? {
            "" => Err("must be a path, not empty".into()),
            text => Ok(PathBuf::from(text)),
        }
    }

    /// A list of paths; a variable has them separated as in PATH.
    pub(super) fn paths(&self) -> Result<Vec<PathBuf>, Expected> {
        match self {
            Given::Many(paths) => Ok(paths.iter().map(PathBuf::from).collect()),
            Given::Quoted(path) => Ok(vec![PathBuf::from(path)]),
            Given::Plain(text) => Ok(std::env::split_paths(text).filter(|path| !path.as_os_str().is_empty()).collect()),
            _ => Err(format!("must be a list of files such as [\"ca.pem\"], not {}", self.kind())),
        }
    }

    /// A list of addresses, each with a port or for `default_port`; a flag or variable has them separated by commas.
    pub(super) fn addresses(&self, default_port: u16) -> Result<Vec<SocketAddr>, Expected> {
        let texts: Vec<&str> = match self {
            Given::Many(texts) => texts.iter().flat_map(|text| text.split(',')).collect(),
            Given::Quoted(text) | Given::Plain(text) => text.split(',').collect(),
            _ => return Err(format!("must be a list of addresses such as [\"10.0.0.53\"], not {}", self.kind())),
        };
        let read = |text: &str| {
            let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
            let address = match bare.parse::<IpAddr>() {
                Ok(address) => Some(SocketAddr::new(address, default_port)),
                Err(_) => text.parse().ok(),
            };
            address.filter(|address| address.port() > 0)
        };
        let wanted = "must be IP addresses, each with or without a port: 10.0.0.53, 10.0.0.53:5353, [fd00::53]:53";
        texts.iter().map(|text| text.trim()).map(|text| read(text).ok_or_else(|| wanted.to_owned())).collect()
    }

    /// A list of words, each read by `read`; a flag or variable has them separated by commas.
    pub(super) fn words<T>(&self, read: impl Fn(&str) -> Result<T, Expected>) -> Result<Vec<T>, Expected> {
        let words: Vec<&str> = match self {
            Given::Many(texts) => texts.iter().flat_map(|text| text.split(',')).collect(),
            Given::Quoted(text) | Given::Plain(text) => text.split(',').collect(),
            _ => return Err(format!("must be a list of strings such as [\"a\", \"b\"], not {}", self.kind())),
        };
        words.into_iter().map(|word| read(word.trim())).collect()
    }

    /// True or false; in the file without quotes.
    pub(super) fn truth(&self) -> Result<bool, Expected> {
        match self {
            Given::Truth(truth) => Ok(*truth),
            _ => Err(format!("must be true or false, not {}", self.kind())),
        }
    }

    /// HOST:PORT, the host in brackets if it is an IPv6 address.
    pub(super) fn listen_address(&self) -> Result<String, Expected> {
        let wanted = "must be HOST:PORT, such as 127.0.0.1:8620, [::1]:8620 or localhost:0";
        let text = self.text()?.trim();
        let (host, port) = text.rsplit_once(':').ok_or(wanted)?;
        port.parse::<u16>().map_err(|_| wanted)?;
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host_is_right = match bracketed {
            Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
            None if host.starts_with(|c: char| c.is_ascii_digit()) => host.parse::<std::net::Ipv4Addr>().is_ok(),
            None => !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')),
        };
        if host_is_right { Ok(text.to_owned()) } else { Err(wanted.into()) }
    }

    fn kind(&self) -> &'static str {
        match self {
            Given::Plain(_) | Given::Quoted(_) => "a string",
            Given::Whole(_) => "a number",
            Given::Many(_) => "a list",
            Given::Truth(_) => "true or false",
            Given::Section(_) => "a section",
            Given::Other { kind, .. } => kind,
        }
    }
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Given::Plain(text) | Given::Quoted(text) => write!(f, "{text:?}"),
            Given::Whole(number) => write!(f, "{number}"),
            Given::Many(texts) => write!(f, "{texts:?}"),
            Given::Truth(truth) => write!(f, "{truth}"),
            Given::Section(_) => f.write_str("{…}"),
            Given::Other { written, .. } => f.write_str(written),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Given {
        Given::Plain(text.into())
    }

    #[test]
    fn a_listen_address_is_a_host_and_a_port() {
        for right in ["127.0.0.1:8620", "localhost:0", "[::1]:80", "my-host.example:65535", "0.0.0.0:1"] {
            assert_eq!(plain(right).listen_address().as_deref(), Ok(right));
        }
        for wrong in [
            "",
            "8620",
            ":8620",
            "localhost",
            "localhost:http",
            "127.0.0.1:65536",
            "1.2.3:80",
            "::1:80",
            "[x]:80",
            "a b:1",
        ] {
            assert!(plain(wrong).listen_address().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn addresses_have_a_port_or_get_one() {
        let many = |texts: &[&str]| Given::Many(texts.iter().map(ToString::to_string).collect());
        for (given, addresses) in [
            (plain("10.0.0.53"), vec!["10.0.0.53:53"]),
            (plain("10.0.0.53:5353, ::1"), vec!["10.0.0.53:5353", "[::1]:53"]),
            (Given::Quoted("[fd00::53]".into()), vec!["[fd00::53]:53"]),
            (many(&["[fd00::53]:1", "10.0.0.1,10.0.0.2"]), vec!["[fd00::53]:1", "10.0.0.1:53", "10.0.0.2:53"]),
            (many(&[]), vec![]),
        ] {
            let addresses: Vec<SocketAddr> = addresses.iter().map(|address| address.parse().unwrap()).collect();
            assert_eq!(given.addresses(53), Ok(addresses), "{given}");
        }
        for wrong in
            ["", "dns.test", "10.0.0.53:", "10.0.0.53:0", "10.0.0.53:65536", "10.0.0.53,", "[10.0.0.53", "::1:x"]
        {
            assert!(plain(wrong).addresses(53).is_err(), "{wrong:?}");
        }
        assert!(Given::Whole(53).addresses(53).is_err());
    }

    #[test]
    fn words_are_a_list_or_separated_by_commas() {
        let read = |word: &str| if word.is_empty() { Err("must not be empty".to_owned()) } else { Ok(word.to_owned()) };
        for (given, words) in [
            (plain("a, b"), vec!["a", "b"]),
            (Given::Quoted("a".into()), vec!["a"]),
            (Given::Many(vec!["a".into(), "b,c".into()]), vec!["a", "b", "c"]),
            (Given::Many(vec![]), vec![]),
        ] {
            assert_eq!(given.words(read), Ok(words.into_iter().map(str::to_owned).collect()), "{given}");
        }
        assert!(plain("a,,b").words(read).is_err());
        assert!(Given::Whole(5).words(read).is_err());
    }

    #[test]
    fn a_number_in_quotes_is_not_a_number() {
        assert_eq!(plain("5").count(1..=9), Ok(5));
        assert_eq!(Given::Whole(5).count(1..=9), Ok(5));
        for wrong in [plain("0"), plain("10"), plain("x"), Given::Whole(-1), Given::Quoted("5".into())] {
            assert!(wrong.count(1..=9).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_duration_needs_its_unit_and_its_range() {
        let range = Duration::from_secs(1)..=Duration::from_secs(60);
        assert_eq!(plain("5s").duration(range.clone()), Ok(Duration::from_secs(5)));
        let without_unit = Given::Whole(5).duration(range.clone()).unwrap_err();
        assert!(without_unit.contains("\"5s\""), "{without_unit}");
        assert_eq!(plain("500ms").duration(range), Err("must be from 1s to 1m".into()));
    }
}

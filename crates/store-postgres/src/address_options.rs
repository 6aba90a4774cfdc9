//! The options of an address, found as the driver and PostgreSQL's own programs find them. An option that is overlooked
//! here would be lost or mean something else, so what is not understood is refused.
//!
//! An address is a URL, whose options may be percent-encoded, or a list of `name=value` pairs, with whitespace of any
//! kind between them and around `=`, values in single quotes, and backslashes before characters that stand for
//! themselves.

use crate::connect::ConnectError;

/// The beginnings of a URL. Any other address is a list of pairs.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// An address and its options.
#[derive(Debug)]
pub(crate) struct AddressOptions<'a> {
    /// A URL up to its options.
    place: Option<&'a str>,
    pub(crate) options: Vec<AddressOption<'a>>,
}

/// An option as the address has it.
#[derive(Debug)]
pub(crate) struct AddressOption<'a> {
    /// The decoded name.
    pub(crate) name: String,
    encoded_value: &'a str,
    text: &'a str,
    is_in_url: bool,
}

impl<'a> AddressOptions<'a> {
    /// Finds the options of an address.
    pub(crate) fn of(address: &'a str) -> Result<Self, ConnectError> {
        if !SCHEMES.iter().any(|scheme| address.starts_with(scheme)) {
            return Ok(AddressOptions { place: None, options: pairs(address)? });
        }
        // Behind the first question mark after the password.
        let logged_in = address.find('@').unwrap_or_default();
        let Some(at) = address[logged_in..].find('?') else {
            return Ok(AddressOptions { place: Some(address), options: Vec::new() });
        };
        let (place, options) = address.split_at(logged_in + at);
        let options = options[1..].split('&').filter(|option| !option.is_empty());
        Ok(AddressOptions { place: Some(place), options: options.map(url_option).collect::<Result<_, _>>()? })
    }

    /// The address with these options and no others.
    pub(crate) fn with(&self, options: &[&AddressOption<'_>]) -> String {
        let options: Vec<_> = options.iter().map(|option| option.text).collect();
        match self.place {
            Some(place) if options.is_empty() => place.to_owned(),
            Some(place) => format!("{place}?{}", options.join("&")),
            None => options.join(" "),
        }
    }
}

impl AddressOption<'_> {
    /// The decoded value.
    pub(crate) fn value(&self) -> Result<String, ConnectError> {
        if !self.is_in_url {
            return Ok(unescaped(self.encoded_value));
        }
        percent_decoded(self.encoded_value)
            .ok_or_else(|| ConnectError::Option(format!("{} must be percent-encoded", self.name)))
    }
}

fn url_option(text: &str) -> Result<AddressOption<'_>, ConnectError> {
    let (name, encoded_value) = text.split_once('=').ok_or_else(no_value)?;
    let name = checked_name(percent_decoded(name))?;
    Ok(AddressOption { name, encoded_value, text, is_in_url: true })
}

fn pairs(address: &str) -> Result<Vec<AddressOption<'_>>, ConnectError> {
    let mut found = Vec::new();
    let mut rest = address.trim_start();
    while !rest.is_empty() {
        let (name, behind) = rest.split_at(rest.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(rest.len()));
        let name = checked_name(Some(name.to_owned()))?;
        let behind = behind.trim_start().strip_prefix('=').ok_or_else(no_value)?.trim_start();
        let (encoded_value, behind) = behind.split_at(length_of_value(behind)?);
        let text = &rest[..rest.len() - behind.len()];
        found.push(AddressOption { name, encoded_value, text, is_in_url: false });
        rest = behind.trim_start();
    }
    Ok(found)
}

/// The length in bytes of the value that a text begins with, including its quotes.
fn length_of_value(text: &str) -> Result<usize, ConnectError> {
    let is_quoted = text.starts_with('\'');
    let mut letters = text.char_indices().skip(usize::from(is_quoted));
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => drop(letters.next()),
            '\'' if is_quoted => return Ok(at + 1),
            letter if letter.is_whitespace() && !is_quoted => return Ok(at),
            _ => {}
        }
    }
    match (is_quoted, text.len()) {
        (true, _) => Err(ConnectError::Address(": a quoted value does not end".to_owned())),
        (false, 0) => Err(no_value()),
        (false, length) => Ok(length),
    }
}

fn unescaped(value: &str) -> String {
    let inner = value.strip_prefix('\'').map_or(value, |value| value.strip_suffix('\'').unwrap_or(value));
    let mut letters = inner.chars();
    let mut text = String::with_capacity(inner.len());
    while let Some(letter) = letters.next() {
        text.extend(if letter == '\\' { letters.next() } else { Some(letter) });
    }
    text
}

/// Errors do not show a name with other characters: it may be a part of a password that should have been encoded.
fn checked_name(name: Option<String>) -> Result<String, ConnectError> {
    let is_possible = |name: &String| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
    };
    name.filter(is_possible).ok_or_else(|| {
        ConnectError::Address(": the name of an option may have only letters, digits, - and _".to_owned())
    })
}

fn no_value() -> ConnectError {
    ConnectError::Address(": an option has no value".to_owned())
}

/// `None` if the encoding is wrong.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
        let (high, low) = (digit()?, digit()?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

//! A text, borrowed from the document if possible.

use std::borrow::Cow;
use std::ops::Deref;

use serde::Deserialize;

/// A text, borrowed unless it had escapes. (A plain `Option<Cow<str>>` would always be copied by serde.)
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Text(Cow::Borrowed(text))
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Text(Cow::Owned(text))
    }
}

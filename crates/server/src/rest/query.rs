//! Query parameters.

use std::fmt::Display;
use std::str::FromStr;

use super::problem::Refusal;
use super::route::{ParameterLocation, Route};
use crate::percent;
use crate::wire::Cursor;

/// The query parameters of a request, all of them declared by the route.
#[derive(Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads the parameters of a request; a parameter that the route does not declare is refused.
    pub(crate) fn parse(query: Option<&str>, route: &Route) -> Result<Self, Refusal> {
        let mut parameters = Vec::new();
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decoded = percent::decode(name, true).zip(percent::decode(value, true));
            let (name, value) = decoded.ok_or_else(|| Refusal::parameter(name, "is not valid percent-encoding"))?;
            if !route.parameters.iter().any(|known| known.location == ParameterLocation::Query && known.name == name) {
                return Err(Refusal::parameter(name, "is not a parameter of this path"));
            }
            parameters.push((name, value));
        }
        Ok(Query(parameters))
    }

    /// Every value of a parameter that may be repeated. Empty values are ignored.
    pub(crate) fn all<'q>(&'q self, name: &'q str) -> impl Iterator<Item = &'q str> {
        self.0.iter().filter(move |(given, value)| given == name && !value.is_empty()).map(|(_, value)| value.as_str())
    }

    /// The value of a parameter that may be given once and must not be empty.
    pub(crate) fn one<'q>(&'q self, name: &'q str) -> Result<Option<&'q str>, Refusal> {
        let mut values = self.0.iter().filter(|(given, _)| given == name).map(|(_, value)| value.as_str());
        match (values.next(), values.next()) {
            (_, Some(_)) => Err(Refusal::parameter(name, "must be given only once")),
            (Some(""), None) => Err(Refusal::parameter(name, "must not be empty: leave it out, or give it a value")),
            (first, None) => Ok(first),
        }
    }

    /// The value of a parameter, parsed.
    pub(crate) fn parsed<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>, Refusal> {
        self.read(name, |text| text.parse().map_err(|error: T::Err| error.to_string()))
    }

    /// The value of a parameter, parsed by `read`.
    pub(crate) fn read<T>(
        &self,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Refusal> {
        let text = self.one(name)?;
        text.map(|text| read(text).map_err(|message| Refusal::parameter(name, message))).transpose()
    }

    /// The `limit` of a page, from 1 to `most`.
    pub(crate) fn limit(&self, most: usize) -> Result<Option<usize>, Refusal> {
        self.read("limit", |text| match text.parse() {
            Ok(limit) if (1..=most).contains(&limit) => Ok(limit),
            _ => Err(format!("must be a number from 1 to {most}")),
        })
    }

    /// The `cursor` of a page.
    pub(crate) fn cursor<C: Cursor>(&self) -> Result<Option<C>, Refusal> {
        self.read("cursor", |text| {
            C::from_cursor(text).ok_or_else(|| "must be the nextCursor of the page before".to_owned())
        })
    }
}

//! Checks of every request before it is handled: that it is for this server, that no page of another site made it, and
//! that the framing of its body is supported.
//!
//! There is no authentication yet, so these headers are the only protection from web pages in a visitor's browser.
//! Browsers set them reliably. Other programs can send anything, but web pages cannot use them.

use http::header::{HOST, ORIGIN, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderMap, HeaderValue};

use super::header_list;
use super::host_name::{Host, HostNames};
use super::problem::Refusal;
use super::route::{Effect, Route};

/// Probes may use any host name for these. They reveal nothing of tasks and change nothing.
const PROBES: [&str; 2] = ["/livez", "/readyz"];

/// Scrapers find targets by address, and may use any IP address for this. Metrics have names of dependencies, so a page
/// that made its own name resolve to this server must not read them: rebinding needs a name.
const METRICS: &str = "/metrics";

/// The most characters of a header's value that a problem repeats.
const SHOWN_CHARS: usize = 100;

/// Whether this path is answered under any host name.
pub(crate) fn is_probe(path: &str) -> bool {
    PROBES.contains(&path)
}

/// Checks the framing, the host and the origin of a request.
pub(crate) fn check(names: &HostNames, parts: &Parts) -> Result<(), Refusal> {
    check_framing(&parts.headers)?;
    if is_probe(parts.uri.path()) {
        return Ok(());
    }
    let host = check_host(names, parts, parts.uri.path() == METRICS)?;
    for origin in parts.headers.get_all(ORIGIN) {
        let from = origin.to_str().ok().and_then(origin_host);
        if !from.is_some_and(|from| names.are_of(&from) || from.is_same(&host)) {
            return Err(Refusal::ForeignOrigin(shown(origin.as_bytes())));
        }
    }
    Ok(())
}

/// Refuses writes by pages of other sites, by `Sec-Fetch-Site`, which current browsers send with every request.
pub(crate) fn check_site(parts: &Parts, route: &Route) -> Result<(), Refusal> {
    let site = parts.headers.get("sec-fetch-site");
    let is_cross_site = site.is_some_and(|site| site == "cross-site" || site == "same-site");
    if is_cross_site && route.effect == Effect::Writes { Err(Refusal::CrossSite) } else { Ok(()) }
}

/// The host that the request is for, if the server answers to it or it is any IP address and those are taken. HTTP/2 has it in the URI; where it is there and in `Host`, both must be right.
fn check_host<'p>(names: &HostNames, parts: &'p Parts, takes_addresses: bool) -> Result<Host<'p>, Refusal> {
    let mut given = parts.headers.get_all(HOST).iter();
    let header = given.next().map(HeaderValue::as_bytes);
    if given.next().is_some() {
        return Err(Refusal::parameter("Host", "must be given only once"));
    }
    let authority = parts.uri.authority().map(|authority| authority.as_str().as_bytes());
    let mut found = None;
    for value in authority.into_iter().chain(header) {
        let host = std::str::from_utf8(value).ok().and_then(Host::parse);
        let is_own = |host: &Host<'_>| names.answer_to(host) || takes_addresses && matches!(host, Host::Address(_));
        let Some(host) = host.filter(is_own) else {
            return Err(Refusal::UnknownHost(shown(value)));
        };
        found.get_or_insert(host);
    }
    found.ok_or_else(|| Refusal::parameter("Host", "must be given: it names the server that the request is for"))
}

/// The host of `scheme://host[:port]`. `null` has none.
fn origin_host(origin: &str) -> Option<Host<'_>> {
    let (scheme, authority) = origin.split_once("://")?;
    Host::parse(authority).filter(|_| scheme == "http" || scheme == "https")
}

/// Refuses transfer codings such as gzip: the compressed bytes would be stored as the body.
fn check_framing(headers: &HeaderMap) -> Result<(), Refusal> {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter().flat_map(|value| match value.to_str() {
        Ok(list) => header_list::items(list),
        Err(_) => vec![""],
    });
    let is_plain = match (codings.next(), codings.next()) {
        (None, _) => true,
        (Some(only), None) => only.eq_ignore_ascii_case("chunked"),
        _ => false,
    };
    if is_plain { Ok(()) } else { Err(Refusal::parameter("Transfer-Encoding", "must be chunked and nothing else")) }
}

/// A header's value, shortened for a problem.
fn shown(value: &[u8]) -> String {
    String::from_utf8_lossy(value).chars().take(SHOWN_CHARS).collect()
}

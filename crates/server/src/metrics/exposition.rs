//! Writing metrics as text: OpenMetrics, or the older text format of Prometheus (0.0.4).

use std::fmt;

use http::HeaderMap;
use http::header::ACCEPT;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

use super::catalogue::{self, Kind};
use super::counts::Snapshot;
use super::readings::Readings;
use super::series::Scrape;

/// A text format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Prometheus,
    OpenMetrics,
}

impl Format {
    /// The format that a scraper prefers. Without a preference it is the older one, which every tool reads.
    pub(crate) fn preferred(headers: &HeaderMap) -> Self {
        let accept = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let ranges: Vec<(&str, f64)> = accept.flat_map(|value| value.split(',')).map(media_range).collect();
        let quality = |types: &[&str]| {
            let of_type = ranges.iter().filter(|(media, _)| types.iter().any(|name| media.eq_ignore_ascii_case(name)));
            of_type.map(|(_, quality)| *quality).fold(0.0, f64::max)
        };
        let (open, text) = (quality(&["application/openmetrics-text"]), quality(&["text/plain", "text/*", "*/*"]));
        if open > 0.0 && open >= text { Format::OpenMetrics } else { Format::Prometheus }
    }

    pub(crate) const fn content_type(self) -> &'static str {
        match self {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// The type of a media range, and its quality.
fn media_range(range: &str) -> (&str, f64) {
    let mut parts = range.split(';').map(str::trim);
    let media = parts.next().unwrap_or_default();
    let quality =
        parts.find_map(|parameter| parameter.strip_prefix("q=")).map_or(Some(1.0), |value| value.parse().ok());
    (media, quality.unwrap_or(0.0))
}

/// The metrics in this format.
pub(crate) fn write(format: Format, snapshot: Snapshot, readings: Readings) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Scrape { snapshot, readings }));
    let mut open = String::with_capacity(64 * 1024);
    text::encode(&mut open, &registry)?;
    Ok(match format {
        Format::OpenMetrics => open,
        Format::Prometheus => to_prometheus(&open),
    })
}

/// OpenMetrics names the family of a counter without `_total` and has an end mark. Everything else that is written here
/// is the same in both formats.
fn to_prometheus(open: &str) -> String {
    let mut text = String::with_capacity(open.len());
    for line in open.lines().filter(|line| *line != "# EOF") {
        let counter = ["# HELP ", "# TYPE "].into_iter().find_map(|mark| {
            let (family, rest) = line.strip_prefix(mark)?.split_once(' ')?;
            let metric = catalogue::all().find(|metric| metric.kind == Kind::Counter && metric.family() == family)?;
            Some((mark, metric.name, rest))
        });
        match counter {
            Some((mark, name, rest)) => text.extend([mark, name, " ", rest, "\n"]),
            None => text.extend([line, "\n"]),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scraper_gets_the_format_that_it_prefers() {
        use Format::{OpenMetrics, Prometheus};
        for (accept, expected) in [
            (None, Prometheus),
            (Some("*/*"), Prometheus),
            (Some("text/plain"), Prometheus),
            (Some("application/openmetrics-text"), OpenMetrics),
            (Some("application/openmetrics-text; version=1.0.0"), OpenMetrics),
            (
                Some("application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"),
                OpenMetrics,
            ),
            (Some("application/openmetrics-text;q=0.3,text/plain;version=0.0.4;q=0.6"), Prometheus),
            (Some("application/openmetrics-text;q=0,text/html"), Prometheus),
            (Some("application/openmetrics-text;q=x"), Prometheus),
        ] {
            let accept = accept.map(|accept| (ACCEPT, accept.parse().unwrap()));
            assert_eq!(Format::preferred(&accept.into_iter().collect()), expected);
        }
    }

    #[test]
    fn counters_have_their_whole_name_in_the_older_format() {
        let open = "# HELP retry_attempts Attempts.\n# TYPE retry_attempts counter\nretry_attempts_total{a=\"# HELP retry_attempts x\"} 1\n\
                    # HELP redrive_store_up Up.\n# TYPE redrive_store_up gauge\nredrive_store_up 1\n# EOF\n";
        let expected = "# HELP retry_attempts_total Attempts.\n# TYPE retry_attempts_total counter\n\
                        retry_attempts_total{a=\"# HELP retry_attempts x\"} 1\n\
                        # HELP redrive_store_up Up.\n# TYPE redrive_store_up gauge\nredrive_store_up 1\n";
        assert_eq!(to_prometheus(open), expected);
    }
}

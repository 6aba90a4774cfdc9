//! Traces, by the standard variables of OpenTelemetry: there are no settings of our own for what every program is told by
//! the same variables. Those that are not listed here are left alone.

use std::ffi::OsStr;
use std::ops::RangeInclusive;
use std::time::Duration;

use hyper::header::{HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use redrive_core::trace::{Propagators, Ratio, Sampler, Undecided};
use redrive_engine::TraceOptions;
use redrive_traces::{Batches, Headers, InvalidReceiver, Receiver, Settings};

use super::{Environment, Origin, Problem};

const DISABLED: &str = "OTEL_SDK_DISABLED";
const EXPORTER: &str = "OTEL_TRACES_EXPORTER";
const PROPAGATORS: &str = "OTEL_PROPAGATORS";
const SAMPLER: &str = "OTEL_TRACES_SAMPLER";
const SAMPLER_ARG: &str = "OTEL_TRACES_SAMPLER_ARG";
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
/// Of each pair, the one for traces wins.
const PROTOCOL: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
const HEADERS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"];
const TIMEOUT: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"];
const DELAY: &str = "OTEL_BSP_SCHEDULE_DELAY";
const QUEUE: &str = "OTEL_BSP_MAX_QUEUE_SIZE";
const BATCH: &str = "OTEL_BSP_MAX_EXPORT_BATCH_SIZE";
const BATCH_TIMEOUT: &str = "OTEL_BSP_EXPORT_TIMEOUT";
const SERVICE: &str = "OTEL_SERVICE_NAME";
const RESOURCE: &str = "OTEL_RESOURCE_ATTRIBUTES";

/// The receiver if only the exporter is named.
const DEFAULT_ENDPOINT: &str = "http://localhost:4318";
/// The longest times, in milliseconds.
const MILLIS: RangeInclusive<u64> = 1..=600_000;
/// The most spans that may wait.
const WAITING: RangeInclusive<u64> = 1..=1_000_000;
/// The most spans in one request, which is encoded at once and has about 730 bytes for each.
const AT_ONCE: RangeInclusive<u64> = 1..=10_000;
/// Header fields that say how a request is framed and carried, which only the export knows.
const FRAMING: [&str; 9] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "te",
    "transfer-encoding",
    "upgrade",
];
/// The attribute of a resource that names the service.
const SERVICE_NAME: &str = "service.name";

/// What the variables say.
#[derive(Debug)]
pub(super) struct Traces {
    /// How spans are exported; `None` if they are not.
    pub(super) export: Option<Settings>,
    /// What dependencies are told.
    pub(super) options: TraceOptions,
    /// What turned the export on or off.
    pub(super) origin: Origin,
    pub(super) problems: Vec<Problem>,
}

/// What was wrong with a value; it does not contain a secret.
type Wrong = String;

/// Reads the variables. While spans are not exported, only those that turn them on, and the propagators, are looked at.
pub(super) fn read(environment: &Environment) -> Traces {
    let mut variables = Variables { environment, problems: Vec::new() };
    let propagators = variables.read(PROPAGATORS, propagators).unwrap_or_default();
    let (is_on, origin) = variables.is_on();
    let mut options = TraceOptions { propagators, ..TraceOptions::default() };
    let export = match is_on {
        true => {
            options.sampler = variables.sampler();
            variables.export()
        }
        false => None,
    };
    Traces { export, options, origin, problems: variables.problems }
}

/// The name that a sampler has in the variable.
pub(super) fn sampler_name(sampler: &Sampler) -> String {
    let parent = if sampler.follows_parent { "parentbased_" } else { "" };
    match sampler.otherwise {
        Undecided::Always => format!("{parent}always_on"),
        Undecided::Never => format!("{parent}always_off"),
        Undecided::Ratio(ratio) => format!("{parent}traceidratio {}", ratio.as_f64()),
    }
}

/// Reads variables, and collects what is wrong with them.
struct Variables<'e> {
    environment: &'e Environment,
    problems: Vec<Problem>,
}

impl Variables<'_> {
    /// Whether spans are exported, and which variable says so.
    fn is_on(&mut self) -> (bool, Origin) {
        let by = |name: &str| Origin::Variable(name.to_owned());
        if self.read(DISABLED, truth) == Some(true) {
            return (false, by(DISABLED));
        }
        let exporter = self.read(EXPORTER, |text| match &*text.to_ascii_lowercase() {
            "otlp" => Ok(true),
            "none" => Ok(false),
            _ => Err(format!("must be otlp or none, not {text:?}")),
        });
        match exporter {
            Some(false) => (false, by(EXPORTER)),
            // The endpoint says more about where the spans go.
            on => match [TRACES_ENDPOINT, ENDPOINT].into_iter().find(|name| self.environment.otel(name).is_some()) {
                Some(endpoint) => (true, by(endpoint)),
                None if on.is_some() => (true, by(EXPORTER)),
                None => (false, Origin::Default),
            },
        }
    }

    fn sampler(&mut self) -> Sampler {
        let Some(name) = self.read(SAMPLER, |text| Ok(text.to_owned())) else { return Sampler::DEFAULT };
        let lower = name.to_ascii_lowercase();
        let (follows_parent, root) = match lower.strip_prefix("parentbased_") {
            Some(root) => (true, root),
            None => (false, lower.as_str()),
        };
        let otherwise = match root {
            "always_on" => Undecided::Always,
            "always_off" => Undecided::Never,
            "traceidratio" => self.read(SAMPLER_ARG, ratio).map_or(Undecided::Always, Undecided::Ratio),
            _ => {
                let allowed = "always_on, always_off, traceidratio, parentbased_always_on, parentbased_always_off or \
                    parentbased_traceidratio";
                self.problem(SAMPLER, format!("must be {allowed}, not {name:?}"));
                return Sampler::DEFAULT;
            }
        };
        Sampler { follows_parent, otherwise }
    }

    fn export(&mut self) -> Option<Settings> {
        self.first(&PROTOCOL, protocol);
        let receiver = match self.read(TRACES_ENDPOINT, |url| told(Receiver::at(url))) {
            Some(receiver) => Some(receiver),
            None if self.environment.otel(TRACES_ENDPOINT).is_some() => None,
            None => match self.environment.otel(ENDPOINT) {
                Some(_) => self.read(ENDPOINT, |url| told(Receiver::below(url))),
                None => Receiver::below(DEFAULT_ENDPOINT).ok(),
            },
        };
        let headers = self.first(&HEADERS, headers).unwrap_or_default();
        let timeout = self.first(&TIMEOUT, millis).unwrap_or(Settings::TIMEOUT);
        let (batches, resource) = (self.batches(), self.resource());
        let first_wait = Settings::FIRST_WAIT;
        Some(Settings { receiver: receiver?, headers, timeout, first_wait, batches, resource })
    }

    fn batches(&mut self) -> Batches {
        let default = Batches::default();
        let count = |text: &str, allowed| {
            whole(text, allowed).and_then(|count| usize::try_from(count).map_err(|error| error.to_string()))
        };
        let most_waiting = self.read(QUEUE, |text| count(text, WAITING)).unwrap_or(default.most_waiting);
        let given = self.read(BATCH, |text| count(text, AT_ONCE));
        if let Some(given) = given.filter(|given| *given > most_waiting) {
            self.problem(BATCH, format!("must be at most {QUEUE} ({most_waiting}), not {given}"));
        }
        Batches {
            delay: self.read(DELAY, millis).unwrap_or(default.delay),
            most_waiting,
            most_at_once: given.unwrap_or(default.most_at_once).min(most_waiting),
            timeout: self.read(BATCH_TIMEOUT, millis).unwrap_or(default.timeout),
        }
    }

    /// What describes this process; the name of the service has its own variable, which wins.
    fn resource(&mut self) -> Vec<(String, String)> {
        let mut attributes: Vec<(String, String)> = Vec::new();
        for (name, value) in self.read(RESOURCE, pairs).unwrap_or_default() {
            // OTLP allows each name once; the last one wins.
            attributes.retain(|(known, _)| *known != name);
            attributes.push((name, value));
        }
        let named = self.read(SERVICE, |text| Ok(text.to_owned()));
        // A service without a name is shown as unknown by receivers.
        attributes.retain(|(name, value)| name != SERVICE_NAME || named.is_none() && !value.is_empty());
        if !attributes.iter().any(|(name, _)| name == SERVICE_NAME) {
            attributes.insert(0, (SERVICE_NAME.to_owned(), named.unwrap_or_else(|| "redrive".to_owned())));
        }
        attributes
    }

    /// The first of these variables that is set.
    fn first<T>(&mut self, names: &[&'static str], read: impl FnOnce(&str) -> Result<T, Wrong>) -> Option<T> {
        let name = names.iter().find(|name| self.environment.otel(name).is_some())?;
        self.read(name, read)
    }

    /// The value of a variable that is set and right.
    fn read<T>(&mut self, name: &'static str, read: impl FnOnce(&str) -> Result<T, Wrong>) -> Option<T> {
        let text = self.environment.otel(name).map(OsStr::to_str)?;
        let value = text.ok_or_else(|| "must be UTF-8".to_owned()).and_then(|text| read(text.trim()));
        value.map_err(|wrong| self.problem(name, wrong)).ok()
    }

    fn problem(&mut self, name: &'static str, wrong: Wrong) {
        self.problems.push(Problem { origin: Origin::Variable(name.to_owned()), about: None, wrong });
    }
}

fn told(receiver: Result<Receiver, InvalidReceiver>) -> Result<Receiver, Wrong> {
    receiver.map_err(|wrong| wrong.to_string())
}

fn truth(text: &str) -> Result<bool, Wrong> {
    match text.to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(format!("must be true or false, not {text:?}")),
    }
}

fn propagators(text: &str) -> Result<Propagators, Wrong> {
    let mut propagators = Propagators { trace_context: false, baggage: false };
    let lower = text.to_ascii_lowercase();
    let names: Vec<&str> = lower.split(',').map(str::trim).collect();
    for name in &names {
        match *name {
            "tracecontext" => propagators.trace_context = true,
            "baggage" => propagators.baggage = true,
            "none" if names.len() == 1 => {}
            _ => return Err(format!("must be none, or a list of tracecontext and baggage, not {text:?}")),
        }
    }
    Ok(propagators)
}

fn protocol(text: &str) -> Result<(), Wrong> {
    match &*text.to_ascii_lowercase() {
        "http/protobuf" => Ok(()),
        "grpc" => {
            Err("must be http/protobuf, not \"grpc\": receivers listen for it on another port, usually 4318 instead \
            of 4317"
                .into())
        }
        _ => Err(format!("must be http/protobuf, not {text:?}")),
    }
}

fn ratio(text: &str) -> Result<Ratio, Wrong> {
    let ratio = text.parse().ok().and_then(Ratio::try_new);
    ratio.ok_or_else(|| format!("must be a number from 0 to 1, not {text:?}"))
}

fn whole(text: &str, allowed: RangeInclusive<u64>) -> Result<u64, Wrong> {
    let number = text.parse().ok().filter(|number| allowed.contains(number));
    number.ok_or_else(|| format!("must be a whole number from {} to {}, not {text:?}", allowed.start(), allowed.end()))
}

fn millis(text: &str) -> Result<Duration, Wrong> {
    let millis = whole(text, MILLIS).map(Duration::from_millis);
    millis.map_err(|wrong| format!("{wrong} (milliseconds)"))
}

/// `name=value,name=value`, percent-encoded.
fn pairs(text: &str) -> Result<Vec<(String, String)>, Wrong> {
    let wanted = || "must be NAME=VALUE,NAME=VALUE, percent-encoded".to_owned();
    let decoded = |text: &str| percent_decode_str(text.trim()).decode_utf8().map(String::from).map_err(|_| wanted());
    let pairs = text.split(',').filter(|pair| !pair.trim().is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').ok_or_else(wanted)?;
        let name = decoded(name)?;
        if name.is_empty() { Err(wanted()) } else { Ok((name, decoded(value)?)) }
    });
    pairs.collect()
}

/// Header fields; the message never contains a value.
fn headers(text: &str) -> Result<Headers, Wrong> {
    let mut headers = Headers::default();
    for (name, value) in pairs(text)? {
        let name: HeaderName = name.parse().map_err(|_| "must have valid names of headers".to_owned())?;
        if FRAMING.contains(&name.as_str()) {
            return Err(format!("must not contain {name}: the export sets it itself"));
        }
        let mut value = HeaderValue::from_str(&value)
            .map_err(|_| format!("has a value for {name} that cannot be sent in a header"))?;
        value.set_sensitive(true);
        headers.0.append(name, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ON: (&str, &str) = (ENDPOINT, "http://127.0.0.1:4318");

    fn read_from(variables: &[(&str, &str)]) -> Traces {
        read(&variables.iter().copied().collect())
    }

    fn settings(variables: &[(&str, &str)]) -> Settings {
        let traces = read_from(&[&[ON], variables].concat());
        assert_eq!(traces.problems, [], "{variables:?}");
        traces.export.unwrap()
    }

    #[test]
    fn spans_are_exported_only_if_an_endpoint_or_the_exporter_is_named() {
        // The variables, where to, and what said so.
        for (variables, receiver, said_by) in [
            (&[][..], None, None),
            (&[(SAMPLER, "nonsense"), (PROTOCOL[1], "grpc"), (QUEUE, "x")], None, None),
            (&[ON], Some("http://127.0.0.1:4318/v1/traces"), Some(ENDPOINT)),
            (&[(TRACES_ENDPOINT, "http://a.test/in"), ON], Some("http://a.test/in"), Some(TRACES_ENDPOINT)),
            (&[(EXPORTER, "otlp")], Some("http://localhost:4318/v1/traces"), Some(EXPORTER)),
            (&[(EXPORTER, "otlp"), ON], Some("http://127.0.0.1:4318/v1/traces"), Some(ENDPOINT)),
            (&[(EXPORTER, "none"), ON], None, Some(EXPORTER)),
            (&[(EXPORTER, "None"), ON], None, Some(EXPORTER)),
            (&[(EXPORTER, "OTLP")], Some("http://localhost:4318/v1/traces"), Some(EXPORTER)),
            (&[(PROTOCOL[0], "HTTP/Protobuf"), ON], Some("http://127.0.0.1:4318/v1/traces"), Some(ENDPOINT)),
            (&[(DISABLED, "TRUE"), (EXPORTER, "otlp"), ON], None, Some(DISABLED)),
            (&[(DISABLED, "false"), ON], Some("http://127.0.0.1:4318/v1/traces"), Some(ENDPOINT)),
            (&[(ENDPOINT, "")], None, None),
        ] {
            let traces = read_from(variables);
            assert_eq!(traces.problems, [], "{variables:?}");
            assert_eq!(traces.export.map(|export| export.receiver.to_string()).as_deref(), receiver, "{variables:?}");
            let expected = said_by.map_or(Origin::Default, |name| Origin::Variable(name.to_owned()));
            assert_eq!(traces.origin, expected, "{variables:?}");
            let is_off = receiver.is_none();
            assert_eq!(traces.options.sampler == Sampler::OFF, is_off, "{variables:?}");
        }
    }

    #[test]
    fn the_samplers_and_propagators_are_those_of_opentelemetry() {
        for (name, argument, shown) in [
            ("", "", "parentbased_always_on"),
            ("always_on", "", "always_on"),
            ("always_off", "0.5", "always_off"),
            ("traceidratio", "0.25", "traceidratio 0.25"),
            ("traceidratio", "0.1", "traceidratio 0.1"),
            ("traceidratio", "0.01", "traceidratio 0.01"),
            ("traceidratio", "1", "traceidratio 1"),
            ("ParentBased_TraceIdRatio", "1e-3", "parentbased_traceidratio 0.001"),
            ("traceidratio", "", "always_on"),
            ("parentbased_traceidratio", "0", "parentbased_traceidratio 0"),
            ("parentbased_always_off", "", "parentbased_always_off"),
        ] {
            let traces = read_from(&[ON, (SAMPLER, name), (SAMPLER_ARG, argument)]);
            assert_eq!(traces.problems, [], "{name}");
            assert_eq!(sampler_name(&traces.options.sampler), shown, "{name}");
        }
        for (given, trace_context, baggage) in [
            ("", true, true),
            ("tracecontext", true, false),
            ("baggage, tracecontext", true, true),
            ("TraceContext,BAGGAGE", true, true),
            ("baggage", false, true),
            ("none", false, false),
        ] {
            let traces = read_from(&[(PROPAGATORS, given)]);
            assert_eq!(traces.options.propagators, Propagators { trace_context, baggage }, "{given}");
        }
    }

    #[test]
    fn what_is_for_traces_wins_and_the_rest_has_the_defaults_of_opentelemetry() {
        let default = settings(&[]);
        assert_eq!((default.timeout, default.batches), (Duration::from_secs(10), Batches::default()));
        assert_eq!(default.resource, [("service.name".to_owned(), "redrive".to_owned())]);
        let given = settings(&[
            (HEADERS[0], "x-one=a%20b,x-two=2"),
            (HEADERS[1], "x-three=3"),
            (TIMEOUT[0], "2500"),
            (TIMEOUT[1], "1"),
            (DELAY, "100"),
            (QUEUE, "300"),
            (BATCH_TIMEOUT, "4000"),
            (RESOURCE, "service.name=other,deployment.environment.name=a%2Cb"),
            (SERVICE, "shop"),
        ]);
        let headers: Vec<_> = given.headers.0.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        assert_eq!(headers, [("x-one", &b"a b"[..]), ("x-two", b"2")]);
        let batches = Batches {
            delay: Duration::from_millis(100),
            most_waiting: 300,
            most_at_once: 300,
            timeout: Duration::from_secs(4),
        };
        assert_eq!((given.timeout, given.batches), (Duration::from_millis(2_500), batches));
        let text = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(given.resource, [text("service.name", "shop"), text("deployment.environment.name", "a,b")]);
        for (attributes, expected) in [
            ("service.name=other", vec![text("service.name", "other")]),
            ("service.name=,a=b", vec![text("service.name", "redrive"), text("a", "b")]),
            ("a=b,service.name=x,a=c", vec![text("service.name", "x"), text("a", "c")]),
            ("a=b=c", vec![text("service.name", "redrive"), text("a", "b=c")]),
        ] {
            assert_eq!(settings(&[(RESOURCE, attributes)]).resource, expected, "{attributes}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_the_variable_and_without_its_secret() {
        for (variable, value, expected) in [
            (DISABLED, "1", "OTEL_SDK_DISABLED: must be true or false, not \"1\""),
            (EXPORTER, "console", "OTEL_TRACES_EXPORTER: must be otlp or none, not \"console\""),
            (PROPAGATORS, "b3", "OTEL_PROPAGATORS: must be none, or a list of tracecontext and baggage, not \"b3\""),
            (PROPAGATORS, "none,baggage", "OTEL_PROPAGATORS: must be none, or a list of tracecontext and baggage"),
            (SAMPLER, "jaeger_remote", "OTEL_TRACES_SAMPLER: must be always_on, always_off, traceidratio, "),
            (PROTOCOL[1], "grpc", "OTEL_EXPORTER_OTLP_PROTOCOL: must be http/protobuf, not \"grpc\": receivers listen"),
            (PROTOCOL[0], "http/json", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: must be http/protobuf, not \"http/json\""),
            (TRACES_ENDPOINT, "s3cret", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: must be an absolute URL"),
            (ENDPOINT, "http://me:s3cret@a.test", "OTEL_EXPORTER_OTLP_ENDPOINT: must not contain a user and password"),
            (ENDPOINT, "http://a.test:99999", "OTEL_EXPORTER_OTLP_ENDPOINT: must be an absolute URL"),
            (HEADERS[1], "s3cret", "OTEL_EXPORTER_OTLP_HEADERS: must be NAME=VALUE,NAME=VALUE, percent-encoded"),
            (HEADERS[0], "x=s3cret%0A", "OTEL_EXPORTER_OTLP_TRACES_HEADERS: has a value for x that cannot be sent"),
            (HEADERS[0], "a b=s3cret", "OTEL_EXPORTER_OTLP_TRACES_HEADERS: must have valid names of headers"),
            (HEADERS[0], "Content-Length=5", "OTEL_EXPORTER_OTLP_TRACES_HEADERS: must not contain content-length: the"),
            (HEADERS[1], "host=s3cret", "OTEL_EXPORTER_OTLP_HEADERS: must not contain host: the export sets it itself"),
            (TIMEOUT[1], "10s", "OTEL_EXPORTER_OTLP_TIMEOUT: must be a whole number from 1 to 600000, not \"10s\""),
            (DELAY, "0", "OTEL_BSP_SCHEDULE_DELAY: must be a whole number from 1 to 600000, not \"0\" (milliseconds)"),
            (QUEUE, "-1", "OTEL_BSP_MAX_QUEUE_SIZE: must be a whole number from 1 to 1000000"),
            (BATCH, "10001", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE: must be a whole number from 1 to 10000, not \"10001\""),
            (BATCH, "3000", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE: must be at most OTEL_BSP_MAX_QUEUE_SIZE (2048), not 3000"),
            (RESOURCE, "a", "OTEL_RESOURCE_ATTRIBUTES: must be NAME=VALUE"),
        ] {
            let mut variables = vec![(variable, value)];
            if variable != ENDPOINT {
                variables.push(ON);
            }
            let problems: Vec<String> = read_from(&variables).problems.iter().map(ToString::to_string).collect();
            assert_eq!(problems.len(), 1, "{variable}={value}: {problems:?}");
            assert!(problems[0].starts_with(expected), "{}", problems[0]);
            assert!(!problems[0].contains("s3cret"), "{}", problems[0]);
        }
        for wrong in ["2", "-0.1", "1.0000001", "NaN", "inf", "0x1", "half"] {
            let ratio = read_from(&[ON, (SAMPLER, "traceidratio"), (SAMPLER_ARG, wrong)]).problems;
            let expected = format!("OTEL_TRACES_SAMPLER_ARG: must be a number from 0 to 1, not {wrong:?}");
            assert_eq!(ratio[0].to_string(), expected);
        }
    }
}

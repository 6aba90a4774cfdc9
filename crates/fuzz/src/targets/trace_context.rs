//! The trace of a caller: header fields, one on each line, as `name: value`.

use fastrand::Rng;
use redrive_core::TraceParent;
use redrive_core::trace::{CallerContext, MAX_BAGGAGE, MAX_TRACE_STATE};

use crate::target::Target;

pub(crate) const TARGET: Target = Target {
    name: "trace-context",
    what: "the traceparent, tracestate and baggage of a caller",
    run,
    samples,
    words: &[
        "traceparent: ",
        "TraceParent: ",
        "tracestate: ",
        "baggage: ",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "cc-",
        "ff-",
        "-01-more",
        "00000000000000000000000000000000",
        "rojo=00f067aa0ba902b7",
        "t61rcwkgmzz@vendor=1",
        ",",
        "=",
        ";",
        "\t",
        "\n",
        "é",
    ],
    generate,
    max_bytes: 16 * 1024,
};

fn samples() -> Vec<Vec<u8>> {
    let parent = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    [
        parent.to_owned(),
        format!("{parent}\ntracestate: rojo=00f067aa0ba902b7,congo=t61rcWkgMzE\nbaggage: user=7;p=1,shop=a"),
        format!("{parent}\n{parent}\ntracestate: a=1"),
        format!("traceparent: 01-{}-extra\ntracestate: a=1\ntracestate: b=2", &parent[16..]),
    ]
    .map(String::into_bytes)
    .to_vec()
}

/// A valid parent, and more members of a state than are kept.
fn generate(random: &mut Rng) -> Vec<u8> {
    let parent =
        format!("{:02x}-{:032x}-{:016x}-{:02x}", random.u8(..255), random.u128(1..), random.u64(1..), random.u8(..));
    let member = |random: &mut Rng, n: usize| format!("k{n}={}", "x".repeat(random.usize(1..200)));
    let members: Vec<String> = (0..random.usize(..40)).map(|n| member(random, n)).collect();
    let baggage = "b=1,".repeat(random.usize(..2_200));
    format!("traceparent: {parent}\ntracestate: {}\nbaggage: {baggage}", members.join(",")).into_bytes()
}

fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let fields: Vec<(&str, &str)> = text.lines().filter_map(|line| line.split_once(": ")).collect();
    let context = CallerContext::of(fields.iter().copied());
    if let Some(parent) = context.parent {
        let written = parent.to_string();
        assert_eq!(written.parse::<TraceParent>(), Ok(parent), "what is written is read back");
        let count = fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("traceparent")).count();
        assert_eq!(count, 1, "several fields count as none");
    } else {
        assert_eq!(context.state, None, "a state belongs to a parent");
    }
    assert!(context.state.as_ref().is_none_or(|state| state.len() <= MAX_TRACE_STATE));
    assert!(context.baggage.as_ref().is_none_or(|baggage| baggage.len() <= MAX_BAGGAGE));
    for (_, value) in context.handed_on() {
        assert!(http::HeaderValue::from_str(value).is_ok(), "{value:?} can be sent");
    }
    let written = context.parent.map(|parent| parent.to_string());
    let parent = written.iter().map(|parent| ("traceparent", parent.as_str()));
    let again: Vec<(&str, &str)> = parent.chain(context.handed_on()).collect();
    assert_eq!(CallerContext::of(again.iter().copied()), context, "what is handed on is taken unchanged");
}

//! What a caller's header fields say about its trace.

use std::collections::BTreeSet;

use super::parent::TraceParent;

const TRACE_PARENT: &str = "traceparent";
const TRACE_STATE: &str = "tracestate";
const BAGGAGE: &str = "baggage";

/// The most characters of a `tracestate` that are kept: as many as the W3C rules ask for at least.
pub const MAX_TRACE_STATE: usize = 512;

/// The most members of a `tracestate`.
const MAX_MEMBERS: usize = 32;

/// Members that are longer than this are the first ones to be left out of a `tracestate` that is too long.
const LONG_MEMBER: usize = 128;

/// The most bytes of `baggage`. Longer baggage is left out as a whole.
pub const MAX_BAGGAGE: usize = 8_192;

/// The trace of a caller, and what it hands on with it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallerContext {
    /// The caller's trace and span.
    pub parent: Option<TraceParent>,
    /// What vendors of tracing systems hand on with the trace; only with a `parent`.
    pub state: Option<String>,
    /// What applications hand on with a request.
    pub baggage: Option<String>,
}

/// Which parts of a trace's context are taken from callers and sent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Propagators {
    /// `traceparent` and `tracestate`.
    pub trace_context: bool,
    /// `baggage`.
    pub baggage: bool,
}

impl Default for Propagators {
    fn default() -> Self {
        Propagators { trace_context: true, baggage: true }
    }
}

/// Whether a header field belongs to the context of a trace.
pub fn is_trace_field(name: &str) -> bool {
    [TRACE_PARENT, TRACE_STATE, BAGGAGE].iter().any(|field| name.eq_ignore_ascii_case(field))
}

impl CallerContext {
    /// What these header fields say. Several fields `traceparent` count as none. What is invalid is left out, never an
    /// error: a trace must not be a reason to refuse work.
    pub fn of<'a>(fields: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Self {
        let values = |name: &'static str| {
            let named = fields.clone().filter(move |(field, _)| field.eq_ignore_ascii_case(name));
            named.map(|(_, value)| trimmed(value))
        };
        let mut parents = values(TRACE_PARENT);
        let parent = match (parents.next(), parents.next()) {
            (Some(only), None) => only.parse().ok(),
            _ => None,
        };
        let state = parent.and_then(|_: TraceParent| trace_state(values(TRACE_STATE)));
        CallerContext { parent, state, baggage: baggage(values(BAGGAGE)) }
    }
}

impl CallerContext {
    /// The parts that these propagators take.
    #[must_use]
    pub fn taken_by(self, propagators: Propagators) -> Self {
        let CallerContext { parent, state, baggage } = self;
        CallerContext {
            parent: parent.filter(|_| propagators.trace_context),
            state: state.filter(|_| propagators.trace_context),
            baggage: baggage.filter(|_| propagators.baggage),
        }
    }

    /// The header fields that are handed on unchanged: `tracestate` and `baggage`.
    pub fn handed_on(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let state = self.state.as_deref().map(|state| (TRACE_STATE, state));
        state.into_iter().chain(self.baggage.as_deref().map(|baggage| (BAGGAGE, baggage)))
    }
}

/// A value without the white space around it, which is no part of it in HTTP.
fn trimmed(value: &str) -> &str {
    value.trim_matches([' ', '\t'])
}

/// The members of all fields, in their order; `None` if one of them is invalid or there is none.
fn trace_state<'a>(fields: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut members: Vec<&str> = Vec::new();
    let mut keys = BTreeSet::new();
    // Members may be empty.
    for member in fields.flat_map(|field| field.split(',')).map(trimmed).filter(|member| !member.is_empty()) {
        let (key, value) = member.split_once('=')?;
        if members.len() == MAX_MEMBERS || !is_key(key) || !is_value(value) || !keys.insert(key) {
            return None;
        }
        members.push(member);
    }
    shorten(&mut members);
    (!members.is_empty()).then(|| members.join(","))
}

/// Leaves members out until the rest fits: the long ones first, then the last ones, which are the oldest.
fn shorten(members: &mut Vec<&str>) {
    let length = |members: &[&str]| members.iter().map(|member| member.len() + 1).sum::<usize>().saturating_sub(1);
    while length(members) > MAX_TRACE_STATE {
        let last_long = members.iter().rposition(|member| member.len() > LONG_MEMBER);
        members.remove(last_long.unwrap_or(members.len() - 1));
    }
}

/// The rule of Level 2, which allows more than that of Level 1: a digit at the start, and `@` anywhere behind it.
fn is_key(key: &str) -> bool {
    let begins_right = key.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit());
    let is_allowed = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-' | b'*' | b'/' | b'@')
    };
    begins_right && key.len() <= 256 && key.bytes().all(is_allowed)
}

fn is_value(value: &str) -> bool {
    (1..=256).contains(&value.len()) && value.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'=')
}

/// All fields as one; `None` if there is none, or if they are too long or cannot be sent.
fn baggage<'a>(fields: impl Iterator<Item = &'a str>) -> Option<String> {
    let fields: Vec<&str> = fields.filter(|field| !field.is_empty()).collect();
    let joined = fields.join(",");
    let can_be_sent = joined.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
    (!joined.is_empty() && joined.len() <= MAX_BAGGAGE && can_be_sent).then_some(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: (&str, &str) = ("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");

    fn of(fields: &[(&str, &str)]) -> CallerContext {
        CallerContext::of(fields.iter().copied())
    }

    #[test]
    fn several_traceparents_count_as_none_and_white_space_does_not_count() {
        let parent = PARENT.1.parse().ok();
        assert_eq!(of(&[PARENT]).parent, parent);
        assert_eq!(of(&[("TRACEPARENT", &format!(" {}\t", PARENT.1))]).parent, parent);
        assert_eq!(of(&[PARENT, PARENT]).parent, None);
        assert_eq!(of(&[PARENT, ("traceparent", "x")]).parent, None);
        assert_eq!(of(&[("traceparent", "x"), PARENT]).parent, None);
        assert_eq!(of(&[("x-traceparent", PARENT.1)]).parent, None);
        assert_eq!(of(&[]), CallerContext::default());
    }

    #[test]
    fn what_is_not_propagated_is_not_taken() {
        let all = of(&[PARENT, ("tracestate", "a=1"), ("baggage", "b=2")]);
        assert_eq!(all.handed_on().collect::<Vec<_>>(), [("tracestate", "a=1"), ("baggage", "b=2")]);
        let taken = |trace_context, baggage| all.clone().taken_by(Propagators { trace_context, baggage });
        assert_eq!(taken(true, true), all);
        assert_eq!(taken(true, false), CallerContext { baggage: None, ..all.clone() });
        assert_eq!(taken(false, true), CallerContext { baggage: all.baggage.clone(), ..CallerContext::default() });
        assert_eq!(taken(false, false), CallerContext::default());
    }

    #[test]
    fn a_tracestate_is_joined_in_order_and_dropped_if_it_is_invalid() {
        let many = |count: usize| (0..count).map(|n| format!("k{n}=1")).collect::<Vec<_>>().join(",");
        for (values, expected) in [
            (&["a=1"][..], Some("a=1")),
            (&["a=1,b=2", "c=3"], Some("a=1,b=2,c=3")),
            (&[" a=1 ,\tb=2", "", ",,c=3,"], Some("a=1,b=2,c=3")),
            (&["fw529a3039@dt=FfAAABB;x y", "1/*-_=!"], Some("fw529a3039@dt=FfAAABB;x y,1/*-_=!")),
            (&["a"], None),
            (&["a="], None),
            (&["=1"], None),
            (&["_a=1"], None),
            (&["@a=1"], None),
            (&["-=1"], None),
            (&["a@=1,0@b=2"], Some("a@=1,0@b=2")),
            (&["A=1"], None),
            (&["a b=1"], None),
            (&["a=1=2"], None),
            (&["a=\u{e9}"], None),
            (&["a=1,a=2"], None),
            (&["a=1", "b"], None),
            (&["", ","], None),
        ] {
            let fields: Vec<_> =
                [PARENT].into_iter().chain(values.iter().map(|value| ("TraceState", *value))).collect();
            assert_eq!(of(&fields).state.as_deref(), expected, "{values:?}");
        }
        assert_eq!(of(&[PARENT, ("tracestate", &many(32))]).state, Some(many(32)));
        assert_eq!(of(&[PARENT, ("tracestate", &many(33))]).state, None);
        let state = |key: usize, value: usize| {
            let member = format!("{}={}", "k".repeat(key), "v".repeat(value));
            of(&[PARENT, ("tracestate", &member)]).state.is_some()
        };
        assert_eq!([state(255, 256), state(256, 255), state(257, 1), state(1, 257)], [true, true, false, false]);
        assert_eq!(of(&[("tracestate", "a=1")]).state, None, "it belongs to a traceparent");
        assert_eq!(of(&[("traceparent", "x"), ("tracestate", "a=1")]).state, None);
    }

    #[test]
    fn a_tracestate_that_is_too_long_loses_its_long_members_and_then_its_last() {
        let long = format!("long={}", "x".repeat(200));
        let short = |n: usize| format!("k{n}={}", "x".repeat(97));
        let state = |members: &[String]| of(&[PARENT, ("tracestate", &members.join(","))]).state.unwrap();
        let kept = state(&[short(1), long.clone(), short(2), short(3), short(4)]);
        assert_eq!(kept, [short(1), short(2), short(3), short(4)].join(","));
        let kept = state(&[short(1), short(2), short(3), short(4), short(5), short(6)]);
        assert_eq!(kept, [short(1), short(2), short(3), short(4), short(5)].join(","));
        assert!(kept.len() <= MAX_TRACE_STATE);
        assert_eq!(state(&[long.clone(), short(1)]), [long, short(1)].join(","));
        let exactly = |key: &str, length: usize| format!("{key}={}", "x".repeat(length - 2));
        assert_eq!(state(&[exactly("a", 256), exactly("b", 255)]).len(), MAX_TRACE_STATE);
        assert_eq!(state(&[exactly("a", 256), exactly("b", 256)]), exactly("a", 256), "one character too long");
    }

    #[test]
    fn baggage_is_handed_on_up_to_8192_bytes_with_or_without_a_trace() {
        let exactly = |length: usize| format!("k={}", "x".repeat(length - 2));
        for (values, expected) in [
            (&["user=7;p=1"][..], Some("user=7;p=1")),
            (&["a=1", "b=2"], Some("a=1,b=2")),
            (&[""], None),
            (&["a=\u{e9}"], None),
            (&["a=\n"], None),
        ] {
            let fields: Vec<_> = values.iter().map(|value| ("Baggage", *value)).collect();
            assert_eq!(of(&fields).baggage.as_deref(), expected, "{values:?}");
        }
        assert_eq!(of(&[("baggage", &exactly(MAX_BAGGAGE))]).baggage, Some(exactly(MAX_BAGGAGE)));
        assert_eq!(of(&[("baggage", &exactly(MAX_BAGGAGE + 1))]).baggage, None);
    }
}

//! Which trace a task continues.
//!
//! The header fields in the document win over those of the request that brought it: they are what is to be sent. If the
//! document names any part of a trace's context, the request's is not used at all, because parts of two contexts do not
//! belong together.

use std::sync::Arc;

use redrive_core::trace::{CallerContext, Propagators, is_trace_field};
use redrive_core::{Request, TraceParent};

/// The trace that a task continues, and what it hands on with it.
#[derive(Debug, Default)]
pub(crate) struct TaskTrace {
    pub(crate) parent: Option<TraceParent>,
    /// Header fields that the request brought and the document has not. They are stored with the task. They are not part of
    /// what it is compared with when it is submitted again: every submission has another trace.
    adopted: Vec<(String, String)>,
}

/// The trace of a task with the header fields `document`, which came with a request of the trace `beside`.
pub(crate) fn of(document: &[(String, String)], beside: &CallerContext, propagators: Propagators) -> TaskTrace {
    if document.iter().any(|(name, _)| is_trace_field(name)) {
        let fields = document.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        return TaskTrace { parent: CallerContext::of(fields).taken_by(propagators).parent, adopted: Vec::new() };
    }
    let taken = beside.clone().taken_by(propagators);
    let adopted = taken.handed_on().map(|(name, value)| (name.to_owned(), value.to_owned()));
    TaskTrace { adopted: adopted.collect(), parent: taken.parent }
}

impl TaskTrace {
    /// The request to store: as it was given, and with what was adopted.
    pub(crate) fn complete(self, given: &Arc<Request>) -> Arc<Request> {
        if self.adopted.is_empty() {
            return given.clone();
        }
        let mut request = Request::clone(given);
        request.headers.extend(self.adopted);
        Arc::new(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const OTHER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

    fn traced(document: &[(&str, &str)], beside: &[(&str, &str)]) -> (Option<String>, Vec<(String, String)>) {
        traced_by(Propagators::default(), document, beside)
    }

    fn traced_by(
        propagators: Propagators,
        document: &[(&str, &str)],
        beside: &[(&str, &str)],
    ) -> (Option<String>, Vec<(String, String)>) {
        let document: Vec<_> = document.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let beside = CallerContext::of(beside.iter().copied());
        let TaskTrace { parent, adopted } = of(&document, &beside, propagators);
        (parent.map(|parent| parent.to_string()), adopted)
    }

    #[test]
    fn the_document_wins_over_the_request_that_brought_it() {
        let beside = [("traceparent", ONE), ("tracestate", "a=1"), ("baggage", "b=2")];
        let adopted = [("tracestate", "a=1"), ("baggage", "b=2")];
        // The document's fields, the trace, and what is adopted.
        for (document, parent, adopted) in [
            (&[][..], Some(ONE), &adopted[..]),
            (&[("accept", "*/*")], Some(ONE), &adopted),
            (&[("Traceparent", OTHER)], Some(OTHER), &[]),
            (&[("traceparent", "malformed")], None, &[]),
            (&[("traceparent", ONE), ("traceparent", OTHER)], None, &[]),
            (&[("Baggage", "c=3")], None, &[]),
            (&[("tracestate", "c=3")], None, &[]),
        ] {
            let adopted = adopted.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            assert_eq!(traced(document, &beside), (parent.map(str::to_owned), adopted), "{document:?}");
        }
        assert_eq!(traced(&[], &[]), (None, vec![]));
        assert_eq!(traced(&[], &[("traceparent", "x"), ("tracestate", "a=1")]), (None, vec![]));
    }

    #[test]
    fn only_what_is_propagated_is_taken_from_the_document_or_the_request() {
        let context = [("traceparent", ONE), ("tracestate", "a=1"), ("baggage", "b=2")];
        let owned = |fields: &[(&str, &str)]| -> Vec<(String, String)> {
            fields.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
        };
        for (trace_context, baggage, parent, adopted) in [
            (true, false, Some(ONE), &[("tracestate", "a=1")][..]),
            (false, true, None, &[("baggage", "b=2")]),
            (false, false, None, &[]),
        ] {
            let propagators = Propagators { trace_context, baggage };
            let parent = parent.map(str::to_owned);
            assert_eq!(traced_by(propagators, &[], &context), (parent.clone(), owned(adopted)), "{propagators:?}");
            assert_eq!(traced_by(propagators, &context, &[]), (parent, vec![]), "{propagators:?}");
        }
    }
}

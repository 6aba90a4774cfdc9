//! The beginning of the reference: what a reader needs to know before the first call.

use maud::{Markup, html};

use super::html::prose;
use crate::wire::{PARAMETERS, PARTS, WORDS};

/// Each is a heading and what stands under it.
const CONVENTIONS: [(&str, &str); 5] = [
    (
        "Documents",
        "JSON in camelCase. Times are epoch milliseconds, durations are milliseconds and end in `Ms`. Values that do \
         not exist are `null`. Unknown fields are refused, not ignored.",
    ),
    (
        "Idempotency",
        "Give each task an `idempotencyKey`, in the document or as the `Idempotency-Key` header. Submitting the same \
         request with the same key again is always safe: it answers with the same task and `Idempotent-Replayed: true`. \
         A service that makes its own operations idempotent reserves a record for each key, and a consumer of events records \
         each event in its inbox.",
    ),
    (
        "Waiting",
        "With `Prefer: wait=N`, submitting a task or reading one answers as soon as the task has ended, or after N \
         seconds (at most 30) with its current state. Reserving a record waits for the execution that is under way.",
    ),
    (
        "Lists",
        "Lists come in pages. Ask for the next one with `cursor` set to the `nextCursor` of the last, until it is `null`.",
    ),
    (
        "Errors",
        "Problem details (RFC 9457) with a stable `type`, which is also the address of a page here that explains it. \
         `field` and `errors` name what was wrong and where. 400: the request is malformed; 422: it is well-formed, \
         but a value is not allowed.",
    ),
];

/// The statuses of a task: the colour, the name and what a task in it does.
const STATUSES: [(&str, &str, &str); 6] = [
    ("", "PENDING", "waits for its next attempt"),
    ("", "IN_FLIGHT", "an attempt is claimed or under way"),
    ("good", "SUCCEEDED", "was accepted by the dependency"),
    ("bad", "FAILED", "failed in a way that no retry can fix"),
    ("bad", "EXHAUSTED", "ran out of attempts or time"),
    ("off", "CANCELLED", "was cancelled; nothing is sent any more"),
];

pub(crate) fn section() -> Markup {
    let secrets = secrets();
    html! {
        section class="overview" id="overview" {
            h1 { "Redrive API" }
            p class="lead" {
                "Redrive accepts a request, stores it durably and retries it until it succeeds or its limits are reached. It \
                 survives crashes, spaces retries out, never sends more often than allowed, and sends one idempotency key with \
                 every attempt."
            }
            p class="base" { "Base URL " code { "http://" (super::HOST) } }
            ol class="life" {
                @for (class, status, meaning) in STATUSES {
                    li { b class=[(!class.is_empty()).then_some(class)] { (status) } span { (meaning) } }
                }
            }
            div class="conventions" {
                @for (title, text) in CONVENTIONS.into_iter().chain([("Secrets", secrets.as_str())]) {
                    div { h3 { (title) } p { (prose(text)) } }
                }
            }
        }
    }
}

/// What is shown as `***`, by the lists that decide it.
fn secrets() -> String {
    let list = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    format!(
        "The values of headers and URL parameters that carry secrets, and the user and password in a URL, are stored and \
         sent as given, and shown as `***`. A name is secret if it contains {}, if one of its words is {}, or if it is the URL \
         parameter {}; `--secret-names` adds more.",
        list(&PARTS),
        list(&WORDS),
        list(&PARAMETERS),
    )
}

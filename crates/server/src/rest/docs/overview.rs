//! The beginning of the reference: what a reader needs to know before the first call.

use super::html::prose;
use crate::wire::{PARAMETERS, PARTS, WORDS};

/// Each is a heading and what stands under it.
const CONVENTIONS: [(&str, &str); 5] = [
    (
        "Documents",
        "JSON in camelCase. Times are epoch milliseconds, durations are milliseconds and end in `Ms`. What there is \
         nothing to say about is `null`. A field that is not known is refused, not ignored.",
    ),
    (
        "Idempotency",
        "Give each task an `idempotencyKey`, in the document or as the `Idempotency-Key` header. Submitting the same \
         request with the same key again is always safe: it answers with the same task and `Idempotent-Replayed: true`.",
    ),
    (
        "Waiting",
        "`Prefer: wait=N` makes a submission, or a look at a task, answer as soon as the task has ended, or after N \
         seconds (at most 30) with the task as it is.",
    ),
    (
        "Lists",
        "Lists come in pages. Ask for the next one with `cursor` set to the `nextCursor` of the last, until it is `null`.",
    ),
    (
        "Errors",
        "Problem details (RFC 9457) with a stable `type`, which is also the address of a page here that explains it. \
         `field` and `errors` name what was wrong and where. 400: it could not be understood; 422: it was understood, \
         and cannot be.",
    ),
];

pub(crate) fn section() -> String {
    let mut section = String::from(
        "<section class=\"overview\" id=\"overview\"><h1>Redrive API</h1>\
         <p class=\"lead\">Hand Redrive a request, and it sees it through: it survives crashes, spaces its retries \
         out, never sends more often than it was allowed to, and carries one idempotency key on every attempt.</p>\
         <p class=\"base\">Base URL <code>http://{host}</code></p><ol class=\"life\">\
         <li><b>PENDING</b><span>waits for its next attempt</span></li>\
         <li><b>IN_FLIGHT</b><span>an attempt is claimed or under way</span></li>\
         <li><b class=\"good\">SUCCEEDED</b><span>was accepted by the dependency</span></li>\
         <li><b class=\"bad\">FAILED</b><span>got an answer that no retry can mend</span></li>\
         <li><b class=\"bad\">EXHAUSTED</b><span>ran out of attempts or time</span></li>\
         <li><b class=\"off\">CANCELLED</b><span>was cancelled; nothing is sent any more</span></li></ol><div class=\"conventions\">",
    );
    let secrets = secrets();
    for (title, text) in CONVENTIONS.into_iter().chain([("Secrets", secrets.as_str())]) {
        section.push_str(&format!("<div><h3>{title}</h3><p>{}</p></div>", prose(text)));
    }
    section.push_str("</div></section>");
    section
}

/// What is shown as `***`, by the lists that decide it.
fn secrets() -> String {
    let list = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    format!(
        "The values of headers and URL parameters that carry secrets, and the user and password in a URL, are kept and \
         sent as given and shown as `***`. Secret is a name that contains {}, one with the word {}, and the URL \
         parameter {}; `--secret-names` adds more.",
        list(&PARTS),
        list(&WORDS),
        list(&PARAMETERS),
    )
}

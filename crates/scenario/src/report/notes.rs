//! How to read the page, and what the model leaves out.

use crate::story::{Comparison, Story};

use super::palette::DRAWN;

/// The section.
pub(super) fn section(comparison: &Comparison) -> String {
    let undrawn = match comparison.stories.len().saturating_sub(DRAWN) {
        0 => String::new(),
        more => {
            format!("<li>The pictures show the first {DRAWN} contenders; {more} more are in the table only.</li>\n")
        }
    };
    let (covered, too_long) = (Story::COVERED_PERCENT, Story::TOO_LONG);
    format!(
        "<section id=\"notes\">\n<h2>How to read this</h2>\n<ul>\n\
         <li>All contenders meet the same world: the same arrivals, the same latencies, the same draws of \
         jitter for the same client and attempt. What differs is the policies and their guards.</li>\n\
         <li>A call is an attempt on the wire. A capacity is not a limit that callers see: what exceeds it waits in the \
         dependency’s queue, is answered 503 when that is full, and may be served after its caller has timed out, which is wasted work.</li>\n\
         <li>The pictures over time end when {covered} % of every contender’s calls have been made, and not before the last \
         outage is over. A contender that takes more than {too_long} times as long as all others is cut off at the right edge, with a \
         note below the picture. <code>--until</code> sets another end.</li>\n{undrawn}</ul>\n\
         <h2>What the model leaves out</h2>\n<ul>\n\
         <li>One dependency, with one capacity and one queue. Its work takes as \
         long under load as without, only the queue in front of it grows, and it comes back from an outage at full strength, with an empty queue.</li>\n\
         <li>No network in between: nothing gets lost, and a refused connection or a 503 takes a millisecond.</li>\n\
         <li>Each client makes one request, and no new requests come because of old ones: no users who press reload, no \
         callers of callers that retry as well.</li>\n\
         <li>A contender’s guards are shared by all of its clients, as the guards of a lane of a Redrive service are. \
         Clients that each have guards of their own know less, and protect less.</li>\n\
         <li>The dependency answers only 200 and 503. Every request is alike, and none is more urgent than another.</li>\n\
         <li>It is one random run: numbers that are close to each other may change places with another seed.</li>\n\
         </ul>\n<p class=\"note\">Backoff, jitter, decisions and guards are the very code that the service runs.</p>\n</section>\n"
    )
}

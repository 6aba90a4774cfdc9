//! The id of an event, which a reader of events resumes after.

use fastrand::Rng;
use redrive_server::live_events::EventId;

use crate::target::Target;

pub(crate) const TARGET: Target = Target {
    name: "event-id",
    what: "Last-Event-ID, after which a reader of events resumes",
    run,
    samples,
    words: &["-", "0", "00", "+", "f", "F", "18446744073709551615", "18446744073709551616", "٣"],
    generate,
    max_bytes: 100,
};

fn samples() -> Vec<Vec<u8>> {
    ["9f3c1e77a04b52d8-1042", "0000000000000000-0", "ffffffffffffffff-18446744073709551615"]
        .map(|text| text.as_bytes().to_vec())
        .to_vec()
}

fn generate(random: &mut Rng) -> Vec<u8> {
    EventId { start: random.u64(..), number: random.u64(..) }.to_string().into_bytes()
}

/// An id that is accepted is one that the server could have sent.
fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(id) = text.parse::<EventId>() {
        assert_eq!(id.to_string(), text, "an id that was never sent was accepted");
    }
}

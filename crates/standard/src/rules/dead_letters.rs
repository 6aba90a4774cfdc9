//! R-8 (and the end of R-3): where what could not be delivered goes.

use super::check::{DEAD_LETTERS_INCOMPLETE, DEAD_LETTERS_SILENT, DROPS_MESSAGES, MISSING_DEAD_LETTERS};
use super::declared::{DeadLetterQueue, Kept, WhenExhausted};
use super::finding::{Finding, Step};
use super::service::Call;
use super::word::plain;

/// What a dead letter keeps.
const KEPT: [Kept; 3] = [Kept::Payload, Kept::Headers, Kept::RetryMetadata];
const FIELD: &str = "deadLetterQueue";

pub(super) fn dead_letters(call: &Call<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = dropped(call).into_iter().collect();
    match call.dependency.dead_letter_queue.as_ref().filter(|queue| is_one(queue)) {
        Some(queue) => findings.extend(judge_queue(queue)),
        None => findings.extend(missing(call)),
    }
    findings
}

/// What has no name is no queue.
fn is_one(queue: &DeadLetterQueue) -> bool {
    !matches!(plain(&queue.name).as_str(), "" | "none" | "no")
}

fn dropped(call: &Call<'_>) -> Option<Finding> {
    let wrong = match call.dependency.when_exhausted? {
        WhenExhausted::DeadLetter => return None,
        WhenExhausted::Fail if !call.context.needs_dead_letters() => return None,
        WhenExhausted::Fail => "a message that has used up its retries ends with an error that no caller waits for",
        WhenExhausted::Drop => "what has used up its retries is dropped",
    };
    let fix = "put it into a dead-letter queue, and declare whenExhausted as dead-letter";
    Some(Finding::new(&DROPS_MESSAGES, [Step::Field("whenExhausted")], wrong, fix))
}

fn missing(call: &Call<'_>) -> Option<Finding> {
    let name = &call.dependency.name;
    let wrong = match call.context.needs_dead_letters() {
        true => format!("{name} has no dead-letter queue, for {}", call.context.meaning()),
        false if call.dependency.when_exhausted == Some(WhenExhausted::DeadLetter) => {
            format!("what has used up its retries goes to a dead-letter queue, and {name} has none")
        }
        false => return None,
    };
    let fix = "configure one and declare it: deadLetterQueue with its name and alert true";
    Some(Finding::new(&MISSING_DEAD_LETTERS, [Step::Field(FIELD)], wrong, fix))
}

fn judge_queue(queue: &DeadLetterQueue) -> Vec<Finding> {
    let at = |field| [Step::Field(FIELD), Step::Field(field)];
    let mut findings = Vec::new();
    if queue.alert != Some(true) {
        let wrong = format!("a message in {} raises no alert", queue.name);
        let fix = "raise one for each message, and declare alert as true";
        findings.push(Finding::new(&DEAD_LETTERS_SILENT, at("alert"), wrong, fix));
    }
    let lost: Vec<&str> = match &queue.keeps {
        Some(keeps) => KEPT.into_iter().filter(|part| !keeps.contains(part)).map(Kept::as_str).collect(),
        None => Vec::new(),
    };
    if !lost.is_empty() {
        let (name, lost) = (&queue.name, lost.join(", "));
        let wrong = format!("a message in {name} does not keep: {lost}");
        findings.push(Finding::new(&DEAD_LETTERS_INCOMPLETE, at("keeps"), wrong, format!("keep {lost} as well")));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::service::tests::{BUDGET, DEAD_LETTERS, found};

    #[test]
    fn async_work_needs_a_queue_and_what_is_waited_for_does_not() {
        for context in ["event", "webhook", "webhook-patient"] {
            let expected = [("missing-dead-letter-queue", "dependencies[0].deadLetterQueue".into())];
            assert_eq!(found(context, BUDGET), expected, "{context}");
        }
        for context in ["sync", "grpc", "batch"] {
            assert_eq!(found(context, BUDGET), [], "{context}");
        }
    }

    #[test]
    fn a_dead_letter_keeps_everything_and_raises_an_alert() {
        let queue =
            |fields: &str| found("event", &format!(r#"{BUDGET}, "deadLetterQueue": {{ "name": "dead", {fields} }}"#));
        assert_eq!(queue(r#""alert": true, "keeps": ["payload", "headers", "retryMetadata"]"#), []);
        let at = |field: &str| format!("dependencies[0].deadLetterQueue.{field}");
        assert_eq!(queue(r#""alert": false"#), [("dead-letters-silent", at("alert"))]);
        assert_eq!(
            queue(r#""keeps": ["payload", "headers", "retry-metadata"]"#),
            [("dead-letters-silent", at("alert"))]
        );
        assert_eq!(queue(r#""alert": true, "keeps": ["payload"]"#), [("dead-letters-incomplete", at("keeps"))]);
    }

    #[test]
    fn nothing_is_dropped() {
        let expected = [("drops-messages", "dependencies[0].whenExhausted".into())];
        assert_eq!(found("batch", &format!(r#"{BUDGET}, "whenExhausted": "drop""#)), expected);
        assert_eq!(found("batch", &format!(r#"{BUDGET}, "whenExhausted": "fail""#)), []);
        let discarded = format!(r#"{BUDGET}, {DEAD_LETTERS}, "whenExhausted": "discard""#);
        assert_eq!(found("event", &discarded), [("drops-messages", "dependencies[0].whenExhausted".into())]);
        let failed = format!(r#"{BUDGET}, {DEAD_LETTERS}, "whenExhausted": "fail""#);
        assert_eq!(found("event", &failed), [("drops-messages", "dependencies[0].whenExhausted".into())]);
    }

    #[test]
    fn a_queue_that_is_spoken_of_must_be_there() {
        let expected = [("missing-dead-letter-queue", "dependencies[0].deadLetterQueue".to_owned())];
        assert_eq!(found("batch", &format!(r#"{BUDGET}, "whenExhausted": "dead-letter""#)), expected);
        for name in ["", " ", "none", "None"] {
            let queue = format!(r#"{BUDGET}, "deadLetterQueue": {{ "name": "{name}", "alert": true }}"#);
            assert_eq!(found("event", &queue), expected, "{name:?}");
        }
    }
}

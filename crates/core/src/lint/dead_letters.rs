//! R-8 (and the end of R-3): where what could not be delivered goes.

use super::check::{DEAD_LETTERS_INCOMPLETE, DEAD_LETTERS_SILENT, DROPS_MESSAGES, MISSING_DEAD_LETTERS};
use super::finding::{Finding, Step};
use super::service::Call;

/// What a dead letter keeps.
const KEPT: [&str; 3] = ["payload", "headers", "retry-metadata"];
const FIELD: &str = "deadLetterQueue";

pub(super) fn dead_letters(call: &Call<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if call.dependency.when_exhausted.as_deref().is_some_and(|what| what.eq_ignore_ascii_case("drop")) {
        let wrong = "what has used up its retries is dropped";
        let fix = "put it into a dead-letter queue: whenExhausted = \"dead-letter\"";
        findings.push(Finding::new(&DROPS_MESSAGES, [Step::Field("whenExhausted")], wrong, fix));
    }
    let Some(queue) = &call.dependency.dead_letter_queue else {
        if call.context.needs_dead_letters() {
            let wrong = format!("{} has no dead-letter queue, for {}", call.dependency.name, call.context.meaning());
            let fix = "configure one and declare it: deadLetterQueue = { name = \"…\", alert = true }";
            findings.push(Finding::new(&MISSING_DEAD_LETTERS, [Step::Field(FIELD)], wrong, fix));
        }
        return findings;
    };
    let at = |field| [Step::Field(FIELD), Step::Field(field)];
    if queue.alert != Some(true) {
        let wrong = format!("a message in {} raises no alert", queue.name);
        findings.push(Finding::new(
            &DEAD_LETTERS_SILENT,
            at("alert"),
            wrong,
            "raise one for each and declare it: alert = true",
        ));
    }
    let lost: Vec<&str> = match &queue.keeps {
        Some(keeps) => KEPT.into_iter().filter(|part| !keeps.iter().any(|kept| is_same(kept, part))).collect(),
        None => Vec::new(),
    };
    if !lost.is_empty() {
        let wrong = format!("a message in {} does not keep: {}", queue.name, lost.join(", "));
        findings.push(Finding::new(
            &DEAD_LETTERS_INCOMPLETE,
            at("keeps"),
            wrong,
            format!("keep {} as well", lost.join(", ")),
        ));
    }
    findings
}

fn is_same(kept: &str, part: &str) -> bool {
    kept.trim().replace(['_', ' '], "-").eq_ignore_ascii_case(part)
}

#[cfg(test)]
mod tests {
    use super::super::service::tests::{BUDGET, found};

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
        assert_eq!(queue(r#""alert": true, "keeps": ["payload", "headers", "retry_metadata"]"#), []);
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
    }
}

//! A batch: the document of `POST /retry-tasks/batch`.

use fastrand::Rng;
use redrive_core::trace::CallerContext;
use redrive_server::OperationError;
use redrive_server::operations::{Accepted, SubmissionHeaders, submit_batch, submit_task};
use redrive_server::wire::{Batch, Malformed, Submission, parse};

use super::json;
use super::submission::{self, check_accepted, check_failure, check_malformed};
use crate::target::Target;
use crate::world::{World, block_on};

pub(crate) const TARGET: Target = Target {
    name: "batch",
    what: "the document of POST /retry-tasks/batch",
    run,
    samples,
    words: submission::WORDS,
    generate,
    max_bytes: 16 * 1024,
};

/// The most items whose outcome is compared with that of a single submission.
const COMPARED: usize = 4;

fn samples() -> Vec<Vec<u8>> {
    json::texts(&[
        r#"{"tasks":[]}"#,
        r#"{"tasks":[{"targetUrl":"https://example.com/"},{"targetUrl":"x"},5,null,{"targetUrl":"http://a/","labels":{"a":1}}]}"#,
        r#"{"tasks":[{"targetUrl":"http://a/","idempotencyKey":"k"},{"targetUrl":"http://a/","idempotencyKey":"k"},
            {"targetUrl":"http://b/","idempotencyKey":"k"}]}"#,
    ])
}

fn generate(random: &mut Rng) -> Vec<u8> {
    let tasks: Vec<String> = (0..random.usize(..6)).map(|_| submission::generate(random)).collect();
    format!("{{\"tasks\":[{}]}}", tasks.join(",")).into_bytes()
}

fn run(input: &[u8]) {
    let batch: Batch<'_> = match parse(input) {
        Ok(batch) => batch,
        Err(malformed) => return check_malformed(input, &malformed),
    };
    let item = |text: &'_ serde_json::value::RawValue| -> Result<(), Malformed> {
        let parsed = parse::<Submission<'_>>(text.get().as_bytes());
        parsed.map(drop).inspect_err(|malformed| check_malformed(text.get().as_bytes(), malformed))
    };
    batch.tasks.iter().for_each(|text| drop(item(text)));
    block_on(async {
        let world = World::start().await;
        let items: Vec<_> = batch.tasks.iter().map(|text| parse::<Submission<'_>>(text.get().as_bytes())).collect();
        let have_keys = items.iter().flatten().any(|item| item.idempotency_key.is_some());
        let results = match submit_batch(&world.app, &world.caller, items.clone(), &CallerContext::default()).await {
            Ok(results) => results,
            Err(failure) => return check_failure(&failure, ""),
        };
        assert_eq!(results.len(), items.len(), "each task has its result");
        for (at, result) in results.iter().enumerate() {
            check_result(result, at, &world, have_keys);
        }
        if !have_keys {
            for (item, result) in items.into_iter().zip(&results).take(COMPARED) {
                compare(&world, item, result).await;
            }
        }
    });
}

fn check_result(result: &Result<Accepted, OperationError>, at: usize, world: &World, have_keys: bool) {
    match result {
        // The same key may occur twice in one batch: then the second one is no new task.
        Ok(accepted) if !have_keys => check_accepted(accepted, &world.app.limits),
        Ok(_) => {}
        Err(OperationError::KeyReused(_)) => assert!(have_keys),
        Err(OperationError::Malformed(Malformed::Shape { field, .. })) => {
            let place = field.as_deref().unwrap_or_default();
            assert!(place.starts_with(&format!("tasks[{at}]")), "{place:?} is not in task {at}");
        }
        Err(OperationError::Malformed(Malformed::Syntax(_))) => {}
        Err(failure) => check_failure(failure, &format!("tasks[{at}].")),
    }
}

/// The result of a task in a batch is the same as that of a single submission.
async fn compare(world: &World, item: Result<Submission<'_>, Malformed>, result: &Result<Accepted, OperationError>) {
    let alone = match item {
        Ok(submission) => submit_task(&world.app, &world.caller, submission, &SubmissionHeaders::default()).await,
        Err(malformed) => Err(malformed.into()),
    };
    match (&alone, result) {
        (Ok(alone), Ok(within)) => assert_eq!(alone.detail.request, within.detail.request),
        (Err(alone), Err(within)) => {
            assert_eq!(std::mem::discriminant(alone), std::mem::discriminant(within), "{alone} and {within}");
        }
        _ => panic!("alone {alone:?}, in a batch {result:?}"),
    }
}

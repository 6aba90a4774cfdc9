//! The cursor of a list: one text for all three lists.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fastrand::Rng;
use redrive_core::policy::Spec;
use redrive_core::{PolicyId, TaskId};
use redrive_server::operations::{
    SubmissionHeaders, TaskFilter, find_tasks, list_attempts, list_policies, submit_task,
};
use redrive_server::wire::{AttemptNumber, Cursor, Submission};
use redrive_store::Expected;

use crate::target::Target;
use crate::world::{World, block_on};

pub(crate) const TARGET: Target = Target {
    name: "cursor",
    what: "the cursors of the lists of tasks, policies and attempts",
    run,
    samples,
    words: &["dDAxOG", "cGRlZmF1bHQ", "YTc", "YSs3", "YTAwNw", "=", "-", "_", "+", "/", "AAAA", "ZTQ"],
    generate,
    max_bytes: 400,
};

/// How many tasks and how many policies there are to page through.
const ITEMS: u64 = 5;

fn samples() -> Vec<Vec<u8>> {
    let policy = PolicyId::try_new("policy-2").expect("a policy's name");
    [TaskId::from_parts(77, 99).to_cursor(), AttemptNumber(7).to_cursor(), policy.to_cursor()]
        .map(String::into_bytes)
        .to_vec()
}

/// Payloads at the limits of what a cursor holds.
const PAYLOADS: [&str; 10] = [
    "0",
    "4294967295",
    "4294967296",
    "+1",
    "01",
    "default",
    "policy-3",
    "",
    " 1",
    "018BCFE5-6800-7F57-A123-456789ABCDEF",
];

/// A cursor of one of the lists, or a list's letter with another payload.
fn generate(random: &mut Rng) -> Vec<u8> {
    let cursor = match random.u8(..4) {
        0 => TaskId::from_parts(random.u64(..), random.u64(..)).to_cursor(),
        1 => AttemptNumber(random.u32(..)).to_cursor(),
        _ => {
            let list = ["t", "p", "a", "x"][random.usize(..4)];
            URL_SAFE_NO_PAD.encode(format!("{list}{}", PAYLOADS[random.usize(..PAYLOADS.len())]))
        }
    };
    cursor.into_bytes()
}

fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let (task, policy, attempt) = (read::<TaskId>(text), read::<PolicyId>(text), read::<AttemptNumber>(text));
    let lists = [task.is_some(), policy.is_some(), attempt.is_some()];
    assert!(lists.iter().filter(|is_it| **is_it).count() <= 1, "a cursor of two lists: {lists:?}");
    if lists.contains(&true) {
        block_on(page(task, policy, attempt));
    }
}

/// A cursor that is accepted is one that the server could have returned.
fn read<C: Cursor>(text: &str) -> Option<C> {
    let cursor = C::from_cursor(text)?;
    assert_eq!(cursor.to_cursor(), text, "a cursor that was never handed out was accepted");
    Some(cursor)
}

/// A list continues after its cursor, in order, and ends.
async fn page(task: Option<TaskId>, policy: Option<PolicyId>, attempt: Option<AttemptNumber>) {
    let World { app, caller } = World::start().await;
    let submission = || Submission { target_url: "http://127.0.0.1/".into(), ..Submission::default() };
    let mut newest = None;
    for _ in 0..ITEMS {
        let accepted =
            submit_task(&app, &caller, submission(), &SubmissionHeaders::default()).await.expect("a task is accepted");
        newest = Some(accepted.detail.task.id);
    }
    if let Some(mut below) = task {
        for _ in 0..=ITEMS {
            let filter = TaskFilter { below: Some(below), limit: Some(2), ..TaskFilter::default() };
            let page = find_tasks(&app, &caller, filter).await.expect("a page of tasks");
            let ids: Vec<TaskId> = page.tasks.iter().map(|detail| detail.task.id).collect();
            assert!(ids.iter().all(|id| *id < below) && ids.is_sorted_by(|a, b| a > b), "{ids:?} below {below}");
            let Some(next) = page.next else { return };
            assert!(next < below, "{next} is not behind {below}");
            below = next;
        }
        panic!("the list of tasks does not end");
    }
    if let Some(mut after) = policy {
        for n in 1..ITEMS {
            let id = PolicyId::try_new(format!("policy-{n}")).expect("a policy's name");
            let put = app.engine.policies().put(caller.tenant.clone(), id, Spec::default(), Expected::Absent);
            put.await.expect("a policy is kept");
        }
        for _ in 0..=ITEMS {
            let page = list_policies(&app, &caller, Some(after.clone()), Some(2)).await.expect("a page of policies");
            let ids: Vec<&PolicyId> = page.policies.iter().map(|policy| &policy.id).collect();
            assert!(ids.iter().all(|id| **id > after) && ids.is_sorted(), "{ids:?} after {after}");
            let Some(next) = page.next else { return };
            assert!(next > after, "{next} is not behind {after}");
            after = next;
        }
        panic!("the list of policies does not end");
    }
    if let (Some(AttemptNumber(after)), Some(task)) = (attempt, newest) {
        let page = list_attempts(&app, &caller, task, after, Some(2)).await.expect("a page of attempts");
        assert!(page.attempts.iter().all(|attempt| attempt.number > after));
        assert!(page.next.is_none_or(|next| next > after));
    }
}

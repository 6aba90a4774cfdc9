//! Simulates days of churn in minutes: tasks are submitted, tried, fail, are retried, end, and are cleaned away after
//! their retention. Prints the sizes of the tables and their indexes along the way.
//!
//! `cargo run --release -p redrive-store-postgres --example churn -- postgres://… [tasks per day] [days] [days kept]`
//!
//! The store takes its times from its callers, so a simulated day is as long as its tasks take. Autovacuum runs as
//! usual. A vacuum at the end of each day replaces what autovacuum would have done in the hours that are missing.

#![allow(clippy::print_stdout, reason = "a command for people")]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use redrive_core::task::PolicyRef;
use redrive_core::{
    Attempt, Class, Dependency, IdempotencyKey, Lane, Outcome, PolicyId, Reason, Request, Status, Task, TaskId,
    TenantId, Timestamp, policy,
};
use redrive_store::{
    ClaimRequest, ClaimedTask, CleanFrom, Expected, LaneRoom, LeaseTerms, NewTask, Next, NodeId, Settlement, Start,
    Store,
};
use redrive_store_postgres::{Options, PostgresStore};
use tokio_postgres::{Client, NoTls};

const DAY: Duration = Duration::from_secs(86_400);
const TERMS: LeaseTerms = LeaseTerms { margin: Duration::from_secs(15) };
const BATCH: u64 = 500;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("the URL of an empty database")?;
    let per_day: u64 = arguments.next().map_or(Ok(200_000), |text| text.parse())?;
    let days: u64 = arguments.next().map_or(Ok(4), |text| text.parse())?;
    let kept: u64 = arguments.next().map_or(Ok(1), |text| text.parse())?;
    let store = PostgresStore::open(Options::new(&url, NodeId::try_new("churn")?)).await?;
    let tenant = TenantId::default_tenant();
    let begin = Timestamp::from_millis(1_800_000_000_000);
    store
        .policies()
        .put(tenant, PolicyId::default_policy(), policy::Spec::default(), Expected::Anything, begin)
        .await?;
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
    tokio::spawn(async move { connection.await.unwrap_or_default() });
    for day in 0..days {
        let morning = begin.after(DAY * u32::try_from(day)?);
        for batch in 0..per_day / BATCH {
            let now = morning.after(DAY.mul_f64(batch as f64 * BATCH as f64 / per_day as f64));
            live(&store, day * per_day + batch * BATCH, now).await?;
        }
        let removed = clean(&store, morning.after(DAY).before(DAY * u32::try_from(kept)?)).await?;
        rest(&client).await?;
        println!("\nday {}: {per_day} tasks came, {removed} were cleaned away", day + 1);
        print_sizes(&client).await?;
    }
    store.close().await;
    Ok(())
}

/// Runs a batch of tasks from submission to end: half start claimed, a third of all is tried twice, some become dead
/// letters.
async fn live(store: &PostgresStore, first: u64, now: Timestamp) -> Result<(), Box<dyn Error>> {
    let tasks: Vec<NewTask> = (first..first + BATCH).map(|n| new_task(n, now)).collect::<Result<_, _>>()?;
    let requests: Vec<_> = tasks.iter().map(|new| (new.task.clone(), new.request.clone())).collect();
    let submitted = store.tasks().submit(tasks).await?;
    let mut claimed: Vec<ClaimedTask> = Vec::new();
    for ((mut task, request), submitted) in requests.into_iter().zip(submitted) {
        if let redrive_store::Submitted::Created(_, Some(lease)) = submitted {
            task.status = Status::InFlight;
            task.attempt_number = 1;
            claimed.push(ClaimedTask { task, request, lease });
        }
    }
    let (first, retries) = (due(Class::First, now)?, due(Class::Retry, now)?);
    claimed.extend(store.tasks().claim(first).await?.claimed);
    let (again, ends): (Vec<_>, Vec<_>) = claimed.iter().partition(|claimed| claimed.task.id.tail().is_multiple_of(3));
    store.tasks().settle(ends.iter().map(|claimed| settlement(claimed, now, false)).collect()).await?;
    store.tasks().settle(again.iter().map(|claimed| settlement(claimed, now, true)).collect()).await?;
    let second = store.tasks().claim(retries).await?.claimed;
    store.tasks().settle(second.iter().map(|claimed| settlement(claimed, now, false)).collect()).await?;
    Ok(())
}

/// A request for everything of this class that is due.
fn due(class: Class, now: Timestamp) -> Result<ClaimRequest, Box<dyn Error>> {
    let rooms = vec![LaneRoom { lane: lane()?, class, slots: 10_000, ahead: 0 }];
    Ok(ClaimRequest { rooms, most: 10_000, due_by: now, lease: TERMS, now })
}

fn lane() -> Result<Lane, Box<dyn Error>> {
    Ok(Lane { tenant: TenantId::default_tenant(), dependency: Dependency::try_new("https://churn.example")? })
}

fn new_task(n: u64, now: Timestamp) -> Result<NewTask, Box<dyn Error>> {
    let id = TaskId::from_parts(TaskId::first_sequence(now) + n % BATCH, n.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let task = Task {
        id,
        lane: lane()?,
        idempotency_key: IdempotencyKey::try_new(format!("{:016x}", n.wrapping_mul(0xD6E8_FEB8_6659_FD93)))?,
        policy: PolicyRef { id: PolicyId::default_policy(), version: 1 },
        status: Status::Pending,
        reason: None,
        attempt_number: 0,
        run: 1,
        attempts_before: 0,
        max_attempts: 6,
        attempt_timeout: Duration::from_secs(30),
        created_at: now,
        run_started_at: now,
        deadline_at: now.after(DAY),
        next_attempt_at: Some(now),
        ended_at: None,
        backoff: None,
        dns_failures: 0,
        cancel_requested: false,
        correlation_id: None,
        trace_parent: None,
        last_error: None,
    };
    let request = Request {
        target_url: "https://churn.example/hooks".into(),
        method: "POST".into(),
        headers: vec![("content-type".into(), "application/json".into())],
        body: vec![b'x'; 512].into(),
        overrides: None,
        labels: Default::default(),
    };
    let fingerprint = redrive_core::request::Fingerprinter::default().part(&n.to_le_bytes()).finish();
    let start = if n.is_multiple_of(2) { Start::Claimed(TERMS, now) } else { Start::Pending };
    Ok(NewTask { task, request: Arc::new(request), fingerprint, start })
}

fn settlement(claimed: &ClaimedTask, now: Timestamp, is_retried: bool) -> Settlement {
    let is_dead = claimed.task.id.tail() % 50 == 1;
    let attempt = Attempt {
        number: claimed.task.attempt_number,
        number_in_run: claimed.task.attempt_in_run(),
        started_at: now,
        duration: Some(Duration::from_millis(12)),
        outcome: if is_retried { Outcome::Retryable } else { Outcome::Success },
        response_status: Some(200),
        error: None,
        backoff: None,
    };
    let next = match (is_retried, is_dead) {
        (true, _) => Next::RetryAt { at: now, backoff: Some(Duration::from_secs(1)), dns_failures: 0 },
        (false, true) => Next::End { status: Status::Failed, reason: Some(Reason::NotRetryable), answer: None },
        (false, false) => Next::End { status: Status::Succeeded, reason: None, answer: None },
    };
    Settlement {
        tenant: claimed.task.lane.tenant.clone(),
        id: claimed.task.id,
        token: claimed.lease.token,
        attempt: Some(attempt),
        next,
        at: now,
    }
}

async fn clean(store: &PostgresStore, ended_before: Timestamp) -> Result<usize, Box<dyn Error>> {
    let (mut from, mut removed) = (Some(CleanFrom::Start), 0);
    while let Some(place) = from {
        let cleaned = store.upkeep().clean(ended_before, place, 500).await?;
        removed += cleaned.removed;
        from = cleaned.next;
    }
    Ok(removed)
}

/// Does what autovacuum would have done by the next morning.
async fn rest(client: &Client) -> Result<(), Box<dyn Error>> {
    client.batch_execute("VACUUM ANALYZE redrive.tasks, redrive.live, redrive.log, redrive.task_counts").await?;
    Ok(())
}

async fn print_sizes(client: &Client) -> Result<(), Box<dyn Error>> {
    const SIZES: &str = "
        SELECT relation.relname::text, pg_size_pretty(pg_relation_size(relation.oid)), relation.relkind = 'i',
               coalesce(n_live_tup, 0), coalesce(n_dead_tup, 0)
        FROM pg_class AS relation LEFT JOIN pg_stat_user_tables AS stat ON stat.relid = relation.oid
        WHERE relation.relnamespace = 'redrive'::regnamespace AND relation.relkind IN ('r', 'i')
          AND pg_relation_size(relation.oid) > 65536
        ORDER BY pg_relation_size(relation.oid) DESC";
    for row in client.query(SIZES, &[]).await? {
        let (name, size, is_index): (String, String, bool) = (row.get(0), row.get(1), row.get(2));
        let (live, dead): (i64, i64) = (row.get(3), row.get(4));
        let rows = if is_index { "index".to_owned() } else { format!("{live} rows, {dead} dead") };
        println!("  {name:<28} {size:>10}   {rows}");
    }
    Ok(())
}

//! A step in progress: the service, the target, the client, and the outcome so far.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;

use super::arrivals::Arrivals;
use super::attackers::Attackers;
use super::client::Client;
use super::field::Field;
use super::outcome::{Outcome, RSS_LIMIT};
use super::service::{Service, Surroundings};
use crate::api::{Answered, Api, Task};
use crate::http::Server;
use crate::procfs::reset_peak;

/// The longest time for acknowledged tasks to end once the siege is over.
const DRAIN_LIMIT: Duration = Duration::from_secs(30);
/// Tasks that fill several pages of 1 MiB.
const LARGE_TASKS: usize = 80;
/// The header field of each of them, in bytes.
const LARGE_HEADER: usize = 30 * 1024;

/// A step in progress.
pub struct Run<'a> {
    /// The environment.
    pub field: &'a Field,
    /// The service, until it is replaced.
    pub service: Service,
    /// The target of well-behaved tasks.
    pub target: Server,
    arrivals: Arc<Arrivals>,
    client: Option<Client>,
    tasks: Vec<String>,
    outcome: Outcome,
}

impl<'a> Run<'a> {
    /// Starts a service and a target. The client does not call yet.
    pub fn begin(field: &'a Field, surroundings: Surroundings, arguments: &[&str]) -> Result<Self> {
        let arrivals = Arc::<Arrivals>::default();
        let target = Server::start("target", Arc::clone(&arrivals))?;
        let service = field.start(surroundings, arguments)?;
        Ok(Run { field, service, target, arrivals, client: None, tasks: Vec::new(), outcome: Outcome::default() })
    }

    /// Starts an ordinary service, and the client.
    pub fn ordinary(field: &'a Field) -> Result<Self> {
        let mut run = Run::begin(field, Surroundings::Ordinary, &[])?;
        run.start_client()?;
        Ok(run)
    }

    /// Starts the client.
    pub fn start_client(&mut self) -> Result<()> {
        self.client = Some(Client::start(self.service.address, self.target.address())?);
        Ok(())
    }

    /// Stops the client. Refusals for other reasons than these are failures of the service.
    pub fn stop_client(&mut self, expected: &[&str]) -> Result<()> {
        let Some(client) = self.client.take() else { return Ok(()) };
        let seen = client.stop()?;
        for (name, calls) in [("submit", &seen.submits), ("/livez", &seen.health)] {
            for fault in calls.faults(name, expected) {
                self.check(false, fault);
            }
        }
        self.tasks.extend(seen.tasks);
        self.outcome.submits = seen.submits;
        self.outcome.health = seen.health;
        Ok(())
    }

    /// Records what was done.
    pub fn done(&mut self, what: impl Into<String>) {
        self.outcome.done.push(what.into());
    }

    /// Records a check, and whether it held.
    pub fn check(&mut self, holds: bool, what: impl Into<String>) {
        self.outcome.checks.push((holds, what.into()));
    }

    /// Waits while the siege continues; fails early if the service has ended.
    pub fn go_on_for(&self, time: Duration) -> Result<()> {
        let until = Instant::now() + time;
        while Instant::now() < until && self.service.process.ended()?.is_none() {
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Lets these attackers run for a while, records their ends and the memory that they cost, and stops them.
    pub fn hold(&mut self, what: &str, attackers: Attackers, time: Duration) -> Result<()> {
        self.go_on_for(time)?;
        let ends = attackers.describe();
        drop(attackers);
        let peak = self.judge_memory()?;
        self.done(format!("{what} ({ends}; peak RSS {peak} MiB)"));
        reset_peak(self.service.process.pid())
    }

    /// Makes one call on a connection of its own.
    pub fn call(&self, method: &str, path: &str, body: &str) -> Result<Answered> {
        let address = self.service.address;
        self.field.runtime.block_on(async { Api::connect(address).await?.call(method, path, body).await })
    }

    /// Repeats a call until `is_there` is true of its answer. Returns the last answer, and whether it was true.
    pub fn wait_for_answer(
        &self,
        (method, path, body): (&str, &str, &str),
        within: Duration,
        is_there: impl Fn(&Answered) -> bool,
    ) -> Result<(bool, String)> {
        let begin = Instant::now();
        loop {
            let answer = self.call(method, path, body)?;
            let is_it = is_there(&answer);
            if is_it || begin.elapsed() > within {
                return Ok((is_it, answer.describe()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Submits a task that must be delivered like the client's.
    pub fn submit(&mut self, document: &str) -> Result<String> {
        let answer = self.call("POST", "/retry-tasks", document)?;
        ensure!(answer.status == 201, "a submission was answered {}", answer.describe());
        let task: Task = answer.document()?;
        self.tasks.push(task.task_id.clone());
        Ok(task.task_id)
    }

    /// Submits tasks that fill more than one page of a list and are not due.
    pub fn fill_pages(&self) -> Result<()> {
        let task = json!({
            "targetUrl": format!("http://{}/later", self.target.address()),
            "delayMs": 3_600_000,
            "headers": { "x-large": "x".repeat(LARGE_HEADER) },
        });
        let answer =
            self.call("POST", "/retry-tasks/batch", &json!({ "tasks": vec![task; LARGE_TASKS] }).to_string())?;
        ensure!(answer.status == 200, "a batch was answered {}", answer.describe());
        Ok(())
    }

    /// Adds a task to those that must be delivered.
    pub fn expect_delivery(&mut self, task: &str) {
        self.tasks.push(task.to_owned());
    }

    /// Removes a task from those that must be delivered.
    pub fn set_apart(&mut self, task: &str) {
        self.tasks.retain(|known| known != task);
    }

    /// Checks the memory, and that the process runs.
    pub fn judge_process(&mut self) -> Result<()> {
        match self.service.process.ended()? {
            None => self.judge_memory().map(drop),
            Some(status) => {
                let said = self.service.process.log_tail();
                self.check(false, format!("the process ended ({status}); it said:\n{said}"));
                Ok(())
            }
        }
    }

    /// Checks the service's peak memory since the last check; returns it in MiB.
    fn judge_memory(&mut self) -> Result<u64> {
        let peak = self.service.process.usage()?.peak_rss;
        self.outcome.peak_rss = self.outcome.peak_rss.max(peak);
        let mib = peak / 1024 / 1024;
        if peak > RSS_LIMIT {
            self.check(false, format!("peak RSS was {mib} MiB"));
        }
        Ok(mib)
    }

    /// Checks that every acknowledged task has arrived once and succeeded; returns the tasks.
    pub fn judge_deliveries(&mut self) -> Result<Vec<Task>> {
        let until = Instant::now() + DRAIN_LIMIT;
        let tasks = self.field.runtime.block_on(ended_tasks(&self.service, &self.tasks, until))?;
        let mut bad: Vec<String> = Vec::new();
        for (id, task) in &tasks {
            let (status, arrivals) = (task.as_ref().map_or("lost", |task| task.status.as_str()), self.arrivals.of(id));
            if status != "SUCCEEDED" || arrivals != 1 {
                bad.push(format!("task {id} is {status} and arrived {arrivals} times"));
            }
        }
        let count = tasks.len();
        match bad.first() {
            None => self.check(true, format!("{count} acknowledged tasks delivered")),
            Some(first) => self.check(false, format!("{} of {count} acknowledged tasks: {first}", bad.len())),
        }
        Ok(tasks.into_iter().filter_map(|(_, task)| task).collect())
    }

    /// The usual end: stops the client, checks memory and deliveries.
    pub fn end(mut self, expected_refusals: &[&str]) -> Result<Outcome> {
        self.stop_client(expected_refusals)?;
        self.judge_deliveries()?;
        self.judge_process()?;
        Ok(self.outcome)
    }

    /// The outcome, without further checks.
    pub fn into_outcome(self) -> Outcome {
        self.outcome
    }
}

/// These tasks once they have ended, or as they are at `until`.
async fn ended_tasks(service: &Service, ids: &[String], until: Instant) -> Result<Vec<(String, Option<Task>)>> {
    let mut api = Api::connect(service.address).await?;
    let mut tasks = Vec::with_capacity(ids.len());
    for id in ids {
        let task = loop {
            let task = api.task(id).await?;
            let is_pending = task.as_ref().is_some_and(|task| !crate::api::is_ended(&task.status));
            if !is_pending || Instant::now() > until {
                break task;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        tasks.push((id.clone(), task));
    }
    Ok(tasks)
}

//! Damaged rows: changed by hand while their tasks wait, and repaired after a while.
//!
//! Only tasks that were planted for this are damaged; no caller reads them meanwhile. Once repaired they must be
//! delivered like any other, so they are judged like any other. The damaged policy is one that no task uses.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use fastrand::Rng;

use super::sql;

/// Table, column, and a value that is invalid there.
const DAMAGES: [(&str, &str, &str); 12] = [
    ("live", "dependency", "bad dep"),
    ("live", "token", "9223372036854775807"),
    ("live", "token", "-1"),
    ("live", "due_at", "-1"),
    ("live", "deadline_at", "-1"),
    ("live", "dns_failures", "-1"),
    ("live", "error_kind", "martian"),
    ("tasks", "dependency", "bad dep"),
    ("tasks", "policy", "bad policy"),
    ("tasks", "max_attempts", "-5"),
    ("tasks", "headers", "[[1]]"),
    ("tasks", "labels", "{"),
];
/// The policy that no task uses.
pub const SPARE_POLICY: &str = "chaos-spare";
const BAD_SPEC: &str = r#"{"maxAttempts": "many"}"#;
/// The most tasks that are damaged at once.
const MOST: usize = 3;
/// How many planted tasks are remembered: older ones have been sent.
const REMEMBERED: usize = 12;

/// Tasks that wait to be damaged.
#[derive(Debug, Default)]
pub struct Planted(Mutex<VecDeque<String>>);

impl Planted {
    /// Adds a task.
    pub fn add(&self, task: String) {
        let mut tasks = self.lock();
        tasks.truncate(REMEMBERED - 1);
        tasks.push_front(task);
    }

    /// Takes some of the tasks that were planted last, which have the longest wait left.
    fn take(&self, most: usize) -> Vec<String> {
        let mut tasks = self.lock();
        let count = most.min(tasks.len());
        tasks.drain(..count).collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The damaged values.
pub struct BadRows {
    planted: Arc<Planted>,
    damaged: Vec<Damaged>,
}

/// One damaged value of one row.
struct Damaged {
    table: &'static str,
    column: &'static str,
    bad: &'static str,
    /// The condition that selects the row.
    row: String,
    /// The value that it had.
    was: Option<String>,
}

impl BadRows {
    /// Nothing is damaged yet.
    pub fn new(planted: Arc<Planted>) -> Self {
        BadRows { planted, damaged: Vec::new() }
    }

    /// Whether nothing is damaged.
    pub fn is_empty(&self) -> bool {
        self.damaged.is_empty()
    }

    /// Damages some rows and returns which. After an error it is unknown whether the last one was damaged.
    pub fn damage(&mut self, url: &str, seed: u64) -> Result<Vec<String>> {
        let mut random = Rng::with_seed(seed);
        let mut done = Vec::new();
        for task in self.planted.take(random.usize(1..=MOST)) {
            let (table, column, bad) = DAMAGES[random.usize(..DAMAGES.len())];
            // Not one in flight: the end of its attempt would be refused, which tests nothing else.
            let waits = match table {
                "live" => "lease_until IS NULL",
                _ => "EXISTS (SELECT FROM redrive.live WHERE live.id = tasks.id AND lease_until IS NULL)",
            };
            let row = format!("id = '{task}' AND {waits}");
            if self.damage_one(url, Damaged { table, column, bad, row: format!("id = '{task}'"), was: None }, &row)? {
                done.push(format!("{table}.{column} of task {task} is {bad:?}"));
            }
        }
        let row = format!("policy = '{SPARE_POLICY}'");
        let spec = Damaged { table: "policy_versions", column: "spec", bad: BAD_SPEC, row: row.clone(), was: None };
        if random.bool() && self.damage_one(url, spec, &row)? {
            done.push(format!("the policy {SPARE_POLICY} is made invalid"));
        }
        Ok(done)
    }

    fn damage_one(&mut self, url: &str, mut damage: Damaged, row: &str) -> Result<bool> {
        let Damaged { table, column, bad, .. } = damage;
        let found = sql::column(url, &format!("SELECT {column}::text FROM redrive.{table} WHERE {row}"))?;
        let Some(was) = found.into_iter().next() else { return Ok(false) };
        damage.was = was;
        // Recorded before the statement: its result may be unknown.
        self.damaged.push(damage);
        let bad = sql::literal(Some(bad));
        sql::has_changed(url, &format!("UPDATE redrive.{table} SET {column} = {bad} WHERE {row} RETURNING 1"))
    }

    /// Repairs what can be repaired now. Returns whether that was all.
    pub fn mend(&mut self, url: &str) -> bool {
        self.damaged.retain(|Damaged { table, column, bad, row, was }| {
            let (bad, was) = (sql::literal(Some(bad)), sql::literal(was.as_deref()));
            let mend =
                format!("UPDATE redrive.{table} SET {column} = {was} WHERE {row} AND {column} = {bad} RETURNING 1");
            sql::has_changed(url, &mend).is_err()
        });
        self.damaged.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_planted_tasks_are_damaged_and_the_oldest_forgotten() {
        let planted = Planted::default();
        (0..REMEMBERED + 3).for_each(|number| planted.add(number.to_string()));
        assert_eq!(planted.take(2), ["14", "13"]);
        assert_eq!(planted.take(100).last().unwrap(), "3");
        assert!(planted.take(1).is_empty());
    }
}

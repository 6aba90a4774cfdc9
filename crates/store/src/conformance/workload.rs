//! A long random workload of all operations, drawn from a seed, whose every answer is compared with the model's.

use std::collections::BTreeSet;

use redrive_core::{Class, Lane, Reason, Status, TenantId, Timestamp};

use super::model::Model;
use super::samples::{
    allow, at, end, failed_attempt, id, lane, request, retry, room, settlement, succeed, task, tenant, unsent,
};
use super::snapshot::{Snapshot, snapshot};
use crate::{
    ClaimRequest, ClaimedTask, CleanFrom, LaneRoom, Next, RaisedAlert, Settlement, Store, Submitted, Suppression, Token,
};

const TENANTS: [&str; 3] = ["acme", "globex", "initech"];
const DEPENDENCIES: [&str; 3] = ["billing", "https://hooks.example", "mail"];

/// The tenants that a workload uses.
pub fn tenants() -> impl Iterator<Item = TenantId> {
    TENANTS.into_iter().map(tenant)
}

pub(super) async fn a_long_random_life_ends_as_the_model_says(store: &dyn Store) {
    run(store, 1, 1_500).await;
}

/// Puts a fresh store through `steps` random steps and compares it with the model after each. Returns what the store
/// holds at the end, so that a durable store can be closed, opened and compared again.
pub async fn run(store: &dyn Store, seed: u64, steps: u64) -> Snapshot {
    for tenant in tenants() {
        allow(store, tenant).await;
    }
    let mut life = Life {
        store,
        model: Model::default(),
        random: Random(seed),
        seconds: 0,
        made: 0,
        taken: BTreeSet::new(),
        held: Vec::new(),
    };
    for step in 1..=steps {
        life.step().await;
        if step % 250 == 0 || step == steps {
            let held = snapshot(store, tenants()).await;
            held.assert_is(&life.model.snapshot(tenants()), &format!("seed {seed}, after step {step}"));
            life.backlogs().await;
        }
    }
    snapshot(store, tenants()).await
}

struct Life<'a> {
    store: &'a dyn Store,
    model: Model,
    random: Random,
    seconds: u64,
    made: u64,
    /// Due times in use. No two are the same, because the contract does not define the order of tasks with the same due
    /// time.
    taken: BTreeSet<Timestamp>,
    /// Claims, some of them stale.
    held: Vec<ClaimedTask>,
}

impl Life<'_> {
    async fn step(&mut self) {
        self.seconds += 1 + self.random.below(4);
        match self.random.below(100) {
            0..28 => self.submit().await,
            28..52 => self.claim().await,
            52..76 => self.settle_some().await,
            76..81 => self.cancel().await,
            81..86 => self.bring_forward().await,
            86..91 => self.replay().await,
            91..94 => self.announce().await,
            94..96 => self.rescue().await,
            96..98 => self.end_overdue().await,
            98 => self.suppress().await,
            _ => self.clean().await,
        }
    }

    async fn submit(&mut self) {
        let mut batch = Vec::new();
        for _ in 0..=self.random.below(6) {
            self.made += 1;
            let mut sample = task(self.made).of(self.random.pick(&TENANTS)).to(self.random.pick(&DEPENDENCIES));
            sample = sample.created(self.now()).label("n", &self.made.to_string());
            sample = sample.max_attempts(1 + self.random.below(4) as u32);
            if self.random.chance(25) {
                sample = sample.deadline(at((self.seconds + self.random.below(60)) * 1_000));
            }
            if self.random.chance(25) {
                sample = sample.key(&format!("key-{}", 1 + self.random.below(self.made)));
            }
            if self.random.chance(10) {
                sample = sample.body("another request");
            }
            if self.random.chance(5) {
                sample = sample.policy("default", 9);
            }
            let due = self.some_time();
            sample = match self.random.below(10) {
                0..4 => sample.claimed(self.now()),
                4 => sample.due(due).claimed(self.now()),
                _ => sample.due(due),
            };
            batch.push(sample.0);
        }
        let said = self.store.tasks().submit(batch.clone()).await.unwrap();
        let expected: Vec<_> = batch.iter().map(|new| self.model.submit(new.clone())).collect();
        assert_eq!(said, expected);
        for (new, submitted) in batch.into_iter().zip(said) {
            if let Submitted::Created(task, Some(lease)) = submitted {
                self.held.push(ClaimedTask { task: *task, request: new.request, lease });
            }
        }
    }

    async fn claim(&mut self) {
        let mut rooms: Vec<LaneRoom> = Vec::new();
        for (lane, class) in all_queues() {
            if self.random.chance(50) {
                rooms.push(room(lane, class, self.random.below(3) as usize, self.random.below(3) as usize));
            }
        }
        if self.random.chance(50) {
            rooms.reverse();
        }
        let most = if self.random.chance(30) { self.random.below(6) as usize } else { usize::MAX };
        let due_by = at(self.seconds * 1_000 + self.random.pick(&[0, 0, 700, 3_000]));
        let request = ClaimRequest { most, due_by, ..request(rooms, self.now()) };
        let claims = self.store.tasks().claim(request.clone()).await.unwrap();
        assert_eq!(claims, self.model.claim(&request));
        self.held.extend(claims.claimed);
    }

    async fn settle_some(&mut self) {
        let mut ends = Vec::new();
        for _ in 0..=self.random.below(5) {
            if self.held.is_empty() {
                break;
            }
            let at = self.random.below(self.held.len() as u64) as usize;
            let keeps = self.random.chance(20);
            let claimed = if keeps { self.held[at].clone() } else { self.held.swap_remove(at) };
            ends.push(self.some_end(&claimed));
        }
        self.settle(ends).await;
    }

    async fn settle(&mut self, ends: Vec<Settlement>) {
        let said = self.store.tasks().settle(ends.clone()).await.unwrap();
        let expected: Vec<_> = ends.into_iter().map(|end| self.model.settle(end)).collect();
        assert_eq!(said, expected);
    }

    fn some_end(&mut self, claimed: &ClaimedTask) -> Settlement {
        let (now, later) = (self.now(), self.some_time());
        // Tasks in later runs are few, so more of their attempts are given back: this tests the class that the tasks
        // return to.
        let is_given_back = claimed.task.run > 1 && self.random.chance(40);
        let mut end = match self.random.below(10) {
            _ if is_given_back => unsent(claimed, now, later),
            0..3 => succeed(claimed, now),
            3..5 => retry(claimed, now, later),
            5 => {
                let dns_failures = claimed.task.dns_failures + 1;
                let next = Next::RetryAt { at: later, backoff: None, dns_failures };
                settlement(claimed, Some(failed_attempt(claimed)), next, now)
            }
            6 => end(claimed, Status::Failed, Some(Reason::NotRetryable), now),
            7..9 => unsent(claimed, now, later),
            _ => {
                let next = Next::End { status: Status::Exhausted, reason: Some(Reason::Deadline), answer: None };
                settlement(claimed, None, next, now)
            }
        };
        if self.random.chance(5) {
            // Never the token of a later claim of this task: the holder of that lease would not log this attempt.
            end.token = Token(self.random.pick(&[0, end.token.0 - 1, end.token.0 + 1_000]));
        }
        if self.random.chance(3) {
            end.tenant = tenant(self.random.pick(&TENANTS));
        }
        end
    }

    async fn cancel(&mut self) {
        let (tenant, id) = (tenant(self.random.pick(&TENANTS)), id(self.random.below(self.made + 2)));
        let said = self.store.tasks().cancel_one(tenant.clone(), id, self.now()).await.unwrap();
        assert_eq!(said, self.model.cancel(&tenant, id, self.now()));
    }

    async fn bring_forward(&mut self) {
        let (tenant, id) = (tenant(self.random.pick(&TENANTS)), id(self.random.below(self.made + 2)));
        let said = self.store.tasks().bring_one_forward(tenant.clone(), id, self.now()).await.unwrap();
        assert_eq!(said, self.model.bring_forward(&tenant, id, self.now()));
    }

    /// Suppresses some tasks, most of them with the number of attempts that they have made.
    async fn suppress(&mut self) {
        let mut given = Vec::new();
        for _ in 0..=self.random.below(8) {
            let id = id(self.random.below(self.made + 2));
            let task = self.model.any_task(id);
            let attempts = task.map_or(0, |task| task.attempt_number) + u32::from(self.random.chance(10));
            let tenant = match task {
                Some(task) if self.random.chance(90) => task.lane.tenant.clone(),
                _ => tenant(self.random.pick(&TENANTS)),
            };
            given.push(Suppression { tenant, id, attempt_number: attempts });
        }
        let said = self.store.tasks().suppress(given.clone(), self.now()).await.unwrap();
        let said: Vec<_> = said.into_iter().map(Result::unwrap).collect();
        let expected: Vec<_> = given.iter().map(|each| self.model.suppress(each, self.now())).collect();
        assert_eq!(said, expected);
    }

    /// Replays mostly dead letters, sometimes any task.
    async fn replay(&mut self) {
        let dead = self.model.dead_letters();
        let (tenant, id) = match dead.len() as u64 {
            1.. if self.random.chance(75) => {
                let task = &dead[self.random.below(dead.len() as u64) as usize];
                (task.lane.tenant.clone(), task.id)
            }
            _ => (tenant(self.random.pick(&TENANTS)), id(self.random.below(self.made + 2))),
        };
        let said = self.store.tasks().replay_one(tenant.clone(), id, self.now()).await.unwrap();
        assert_eq!(said, self.model.replay(&tenant, id, self.now()));
    }

    /// Confirms some of the pending alerts, and sometimes a run that has none.
    async fn announce(&mut self) {
        let before = at(self.seconds.saturating_sub(self.random.below(100)) * 1_000);
        let mut said = self.store.upkeep().pending_alerts(before, 10_000).await.unwrap();
        assert!(said.is_sorted_by_key(|task| task.ended_at), "what ended first comes first");
        said.sort_by_key(|task| task.id);
        assert_eq!(said, self.model.unannounced(before));
        let mut announced = Vec::new();
        for task in said {
            let run = if self.random.chance(10) { task.run + 1 } else { task.run };
            if self.random.chance(60) {
                announced.push(RaisedAlert { tenant: task.lane.tenant, id: task.id, run });
            }
        }
        announced.iter().for_each(|each| self.model.announced(each));
        self.store.upkeep().confirm_alerts(announced).await.unwrap();
    }

    async fn rescue(&mut self) {
        let mut said = self.store.upkeep().expired_leases(self.now(), 10_000).await.unwrap();
        said.sort_by_key(|claimed| claimed.task.id);
        assert_eq!(said, self.model.expired(self.now()));
        let mut ends = Vec::new();
        for claimed in said {
            let later = self.some_time();
            ends.push(retry(&claimed, self.now(), later));
        }
        self.settle(ends).await;
    }

    /// Ends overdue tasks, up to a limit that does not divide tasks with the same deadline: the contract does not
    /// define their order.
    async fn end_overdue(&mut self) {
        let (now, overdue) = (self.now(), self.model.overdue(self.now()));
        let mut limit = 1 + self.random.below(8) as usize;
        while limit < overdue.len() && overdue[limit - 1].0 == overdue[limit].0 {
            limit += 1;
        }
        let mut said = self.store.upkeep().end_overdue(now, limit).await.unwrap();
        assert!(said.ended.is_sorted_by_key(|task| task.deadline_at), "the earliest deadline comes first");
        said.ended.sort_by_key(|task| (task.deadline_at, task.id));
        assert_eq!(said, self.model.end_overdue(now, limit));
    }

    async fn clean(&mut self) {
        let before = at(self.seconds.saturating_sub(self.random.below(300)) * 1_000);
        let (mut from, mut removed) = (CleanFrom::Start, 0);
        loop {
            let cleaned = self.store.upkeep().clean(before, from, 1 + self.random.below(50) as usize).await.unwrap();
            removed += cleaned.removed;
            let Some(next) = cleaned.next else { break };
            assert_ne!(next, from, "a pass gets on, or it never ends");
            from = next;
        }
        assert_eq!(removed, self.model.clean(before));
    }

    async fn backlogs(&self) {
        let lanes: Vec<Lane> = all_queues().map(|(lane, _)| lane).collect();
        let said = self.store.reads().backlogs(lanes.clone(), self.now(), 10_000).await.unwrap();
        let expected: Vec<_> = lanes.iter().map(|lane| self.model.backlog(lane, self.now())).collect();
        assert_eq!(said, expected);
    }

    /// The time of this step: whole seconds, different for every step, so that no other task is due at the time to
    /// which one is brought forward.
    fn now(&self) -> Timestamp {
        at(self.seconds * 1_000)
    }

    /// A random time somewhat before or after now, never the same twice.
    fn some_time(&mut self) -> Timestamp {
        let second = (self.seconds + self.random.below(25)).saturating_sub(5);
        loop {
            let due = at(second * 1_000 + 1 + self.random.below(999));
            if self.taken.insert(due) {
                return due;
            }
        }
    }
}

/// Every class of every lane.
fn all_queues() -> impl Iterator<Item = (Lane, Class)> {
    let names = TENANTS.into_iter().flat_map(|tenant| DEPENDENCIES.map(|dependency| (tenant, dependency)));
    names.flat_map(|(tenant, dependency)| Class::ALL.map(|class| (lane(tenant, dependency), class)))
}

/// A linear congruential generator (Knuth's MMIX): the same seed gives the same workload on every machine.
pub(super) struct Random(pub(super) u64);

impl Random {
    /// Uniform in `0..limit`. Uses the high bits, because the low bits of such a generator repeat soon.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

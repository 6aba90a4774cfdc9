//! Clients: they submit, give up, retry, read, cancel, bring forward, replay, and try to use tasks of other tenants.

mod call;
mod follow_up;
mod records;
mod submit;

use std::sync::{Arc, Mutex};

use redrive_core::policy::Spec;
use redrive_core::{TaskId, TenantId};
use redrive_server::operations::{self, Precondition};
use redrive_server::wire::{PolicyInput, Text};

use super::{World, lock, streams};
use crate::executor::WORLD;
use crate::plan::{Errand, NAMED, SHIFTING, base};
use crate::random::Random;
pub(super) use call::{Answer, Caller};
pub(super) use records::run as use_record;

/// Registers the world's policies, and retries until it has worked.
pub(super) async fn set_up(world: Arc<World>) {
    let mut caller = Caller::new(&world, 0, world.shape.patience);
    for tenant in world.tenants.clone() {
        for name in NAMED.into_iter().chain([SHIFTING]) {
            while !put_policy(&mut caller, &tenant, name, base(name)).await {
                world.executor.sleep(std::time::Duration::from_millis(500)).await;
            }
        }
    }
}

/// The caller of operations for this tenant.
pub(super) fn local(tenant: &TenantId) -> redrive_server::Caller {
    redrive_server::Caller::local(tenant.clone())
}

/// Registers a policy. Returns whether that is known to have worked.
async fn put_policy(caller: &mut Caller, tenant: &TenantId, name: &'static str, spec: Spec) -> bool {
    let tenant = tenant.clone();
    let put = caller
        .call(move |app| async move {
            let input = PolicyInput { policy_id: Text::from(name), spec };
            operations::put_policy(&app, &local(&tenant), input, Precondition::Nothing).await
        })
        .await;
    matches!(put, Answer::Given(Ok(_), _))
}

/// Runs one errand from its beginning.
pub(super) async fn run(world: Arc<World>, errand: Errand) {
    world.executor.sleep_until(errand.at).await;
    let errand = Arc::new(errand);
    let known: Known = Arc::new(Mutex::new(vec![None; errand.items.len()]));
    for (place, follow_up) in errand.follow_ups.iter().enumerate() {
        let (follow_up, caller) = (follow_up.clone(), Caller::of_errand(&world, &errand, 1 + place as u64));
        let (errand, known) = (errand.clone(), known.clone());
        world.executor.spawn(WORLD, follow_up::run(caller, errand, follow_up, known));
    }
    submit::run(Caller::of_errand(&world, &errand, 0), &errand, &known).await;
}

/// The task ids of an errand's items, where they are known.
type Known = Arc<Mutex<Vec<Option<TaskId>>>>;

fn known_task(known: &Known, item: usize) -> Option<TaskId> {
    lock(known)[item]
}

impl Caller {
    fn of_errand(world: &Arc<World>, errand: &Errand, place: u64) -> Self {
        let stream = streams::ERRANDS + errand.number as u64 * 64 + place;
        Caller::with(world, Random::stream(world.seed, stream), errand.patience)
    }

    pub(super) fn new(world: &Arc<World>, number: u64, patience: std::time::Duration) -> Self {
        Caller::with(world, Random::stream(world.seed, streams::ERRANDS - 1 - number), patience)
    }
}

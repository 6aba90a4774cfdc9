//! Runs every order of the steps of uploading, submitting and collecting the same content.
//!
//! Each operation has a few steps, some in the store and some in object storage. They run in different processes, so
//! any delay and any other step may come between two of them. After every step, the object of every kept task must
//! exist, and a submission that was rejected must succeed after another upload.

use std::collections::BTreeSet;

use redrive_core::BodyRef;

use crate::conformance::samples::*;
use crate::{Blob, Store, Submitted};

pub(crate) async fn no_order_of_upload_submit_and_collection_loses_a_body(store: &dyn Store) {
    let actors = [Actor::Upload, Actor::Submit, Actor::Collect];
    allow(store, acme()).await;
    for (n, order) in (1..).zip(orders(&actors)) {
        run(store, &actors, &order, n).await;
    }
}

/// An operation whose steps are interleaved with those of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Actor {
    /// Adopts the blob, then writes the object.
    Upload,
    /// Finds the recorded object, checks that it exists, submits.
    Submit,
    /// Condemns, deletes the objects, forgets.
    Collect,
}

impl Actor {
    fn steps(self) -> usize {
        if self == Actor::Upload { 2 } else { 3 }
    }
}

/// Every order of the steps of these actors.
pub(crate) fn orders(actors: &[Actor]) -> Vec<Vec<usize>> {
    let mut orders = Vec::new();
    let mut left: Vec<usize> = actors.iter().map(|actor| actor.steps()).collect();
    all_orders(&mut left, &mut Vec::new(), &mut orders);
    orders
}

fn all_orders(left: &mut [usize], begun: &mut Vec<usize>, orders: &mut Vec<Vec<usize>>) {
    if left.iter().all(|steps| *steps == 0) {
        orders.push(begun.clone());
        return;
    }
    for actor in 0..left.len() {
        if left[actor] > 0 {
            left[actor] -= 1;
            begun.push(actor);
            all_orders(left, begun, orders);
            begun.pop();
            left[actor] += 1;
        }
    }
}

/// The state that all actors share: the existing objects and the content under test.
struct Scene {
    content: String,
    objects: BTreeSet<BodyRef>,
    n: u64,
    kept: Option<BodyRef>,
    refused: bool,
}

/// What an actor learnt in its last step.
#[derive(Clone, Default)]
struct Known {
    body: Option<BodyRef>,
    condemned: Vec<Blob>,
}

/// Runs one order with its own content and task, numbered `n`. It starts with an old upload that no task refers to.
pub(crate) async fn run(store: &dyn Store, actors: &[Actor], order: &[usize], n: u64) {
    let content = format!("content {n}");
    let old = stored(&content, 1);
    assert_eq!(store.blobs().adopt(acme(), old, at(0)).await.unwrap(), old);
    let mut scene = Scene { content, objects: BTreeSet::from([old]), n, kept: None, refused: false };
    let mut known = vec![(0, Known::default()); actors.len()];
    for &actor in order {
        let (step, known) = &mut known[actor];
        scene.step(store, actors[actor], *step, actor as u64, known).await;
        *step += 1;
        let is_there = scene.kept.is_none_or(|body| scene.objects.contains(&body));
        assert!(is_there, "a task's body was deleted in the order {order:?} of {actors:?}");
    }
    if scene.refused {
        let (mut upload, mut again) = (Known::default(), Known::default());
        for step in 0..2 {
            scene.step(store, Actor::Upload, step, 90, &mut upload).await;
        }
        for step in 0..3 {
            scene.step(store, Actor::Submit, step, 91, &mut again).await;
        }
    }
    assert!(scene.kept.is_some_and(|body| scene.objects.contains(&body)), "not accepted in the end: {order:?}");
}

impl Scene {
    async fn step(&mut self, store: &dyn Store, actor: Actor, step: usize, who: u64, known: &mut Known) {
        let fresh = stored(&self.content, 10 + who);
        match (actor, step) {
            (Actor::Upload, 0) => known.body = Some(store.blobs().adopt(acme(), fresh, at(2_000)).await.unwrap()),
            (Actor::Upload, _) => self.objects.extend(known.body),
            (Actor::Submit, 0) => known.body = store.blobs().find(acme(), fresh.hash).await.unwrap(),
            (Actor::Submit, 1) => known.body = known.body.filter(|body| self.objects.contains(body)),
            (Actor::Submit, _) => match known.body {
                Some(body) => self.submit(store, body).await,
                None => self.refused = true,
            },
            (Actor::Collect, 0) => {
                let pass = store.blobs().condemn(at(1_000), None, 1_000_000).await.unwrap();
                known.condemned = pass.blobs.into_iter().filter(|blob| blob.body.hash == fresh.hash).collect();
            }
            (Actor::Collect, 1) => {
                self.objects.retain(|object| !known.condemned.iter().any(|blob| blob.body == *object))
            }
            (Actor::Collect, _) => store.blobs().forget(std::mem::take(&mut known.condemned)).await.unwrap(),
        }
    }

    async fn submit(&mut self, store: &dyn Store, body: BodyRef) {
        match submit(store, [task(self.n).stored(body)]).await.remove(0) {
            Submitted::Created(..) => (self.kept, self.refused) = (Some(body), false),
            Submitted::BodyGone => self.refused = true,
            other => panic!("{other:?}"),
        }
    }
}

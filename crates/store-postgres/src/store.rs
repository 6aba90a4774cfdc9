//! The store: its pools, writers and background tasks.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use redrive_core::{Class, Lane, Timestamp};
use redrive_store::{DepartedNodes, Error, LaneDue, Liveness, NewTask, NodeId, Settled, Submitted};
use tokio::task::JoinSet;

use crate::batch::{Batches, Locks, Pools, Work, Writing};
use crate::connection::Connection;
use crate::fence::Fence;
use crate::floors::Floors;
use crate::news::News;
use crate::open::{Connections, OpenError, open};
use crate::ops;
use crate::ops::claim::Claimant;
use crate::ops::set_aside::Aside;
use crate::ops::settle::WaitsAgain;
use crate::options::Options;
use crate::pool::Pool;
use crate::postgres_error::PostgresError;
use crate::records::{Changes, Reserves};
use crate::take_back::{take_back_again_and_again, take_back_at_start};
use crate::upkeep::Upkeep;

/// A store in a PostgreSQL database that other processes share.
pub struct PostgresStore {
    pub(crate) pool: Pool,
    /// Connections for the calls of the background loops.
    pub(crate) loop_pool: Pool,
    /// Connections for the writers.
    pub(crate) pools: Pools,
    pub(crate) node: NodeId,
    pub(crate) news: Arc<News>,
    pub(crate) aside: Arc<Aside>,
    pub(crate) floors: Arc<Floors>,
    pub(crate) fence: Fence,
    pub(crate) departed_nodes: Mutex<DepartedNodes>,
    /// Whether the last submission that failed found no space on the disk.
    pub(crate) is_full: AtomicBool,
    pub(crate) upkeep: Upkeep,
    /// `None` once the store is closed.
    pub(crate) writers: Mutex<Option<Arc<Writers>>>,
    pub(crate) writing: tokio::sync::Mutex<Writing>,
    /// Background tasks, which end with the store.
    pub(crate) background: tokio::sync::Mutex<JoinSet<()>>,
    pub(crate) liveness: Liveness,
}

pub(crate) struct Writers {
    pub(crate) submits: Batches<Submits>,
    pub(crate) settles: Batches<Settles>,
    pub(crate) reserves: Batches<Reserves>,
    pub(crate) changes: Batches<Changes>,
}

pub(crate) struct Submits {
    node: NodeId,
    floors: Arc<Floors>,
}

impl Work for Submits {
    type Item = ops::submit::EncodedTask;
    type Answer = ops::submit::Answer;
    const DOING: &'static str = "submitting tasks";
    const CAN_REPEAT: bool = true;

    fn size(item: &Self::Item) -> usize {
        item.size()
    }

    async fn run(
        &self,
        connection: &mut Connection,
        items: &[&Self::Item],
        _: Locks,
    ) -> Result<Vec<Option<Self::Answer>>, PostgresError> {
        let writing = self.floors.writing();
        let outcome = ops::submit::submit(connection, self.node.as_str(), items).await;
        for (item, answer) in items.iter().zip(outcome.iter().flatten()) {
            if let Ok(Submitted::Created(_, None)) = answer {
                let (lane, due) = due_at_once(&item.new);
                self.floors.note(&lane, Class::First, due);
                self.floors.note_deadline(item.new.task.deadline_at);
            }
        }
        writing.came_to(&outcome);
        Ok(outcome?.into_iter().map(Some).collect())
    }
}

pub(crate) struct Settles {
    floors: Arc<Floors>,
}

impl Work for Settles {
    type Item = ops::settle::EncodedSettlement;
    type Answer = Settled;
    const DOING: &'static str = "settling attempts";
    /// A repeated settlement would look like a lost lease. The caller can handle an unknown outcome better.
    const CAN_REPEAT: bool = false;

    fn size(item: &Self::Item) -> usize {
        item.size()
    }

    async fn run(
        &self,
        connection: &mut Connection,
        items: &[&Self::Item],
        _: Locks,
    ) -> Result<Vec<Option<Settled>>, PostgresError> {
        let writing = self.floors.writing();
        let outcome = ops::settle::settle(connection, items).await;
        writing.came_to(&outcome);
        let (answers, waiting) = outcome?;
        for WaitsAgain { due, deadline } in waiting {
            self.floors.note_all(&[due]);
            self.floors.note_deadline(deadline);
        }
        // A settlement whose outcome was unknown may have taken effect, so that its task is pending.
        if answers.contains(&Settled::LeaseLost) {
            self.floors.forget_all();
        }
        Ok(answers.into_iter().map(Some).collect())
    }
}

impl PostgresStore {
    /// Opens the store and, unless the options disable that, migrates its schema. Needs tokio's runtime.
    pub async fn open(options: Options) -> Result<Self, OpenError> {
        let Connections { pool, loop_pool, writers: pools, listen } = open(&options).await?;
        let node = options.node.clone();
        let floors = Floors::new(options.floors_last.clone());
        let news = News::new(node.as_str(), floors.clone());
        let aside = Arc::new(Aside::new(node.as_str()));
        take_back_at_start(&pool).await;
        let upkeep = Upkeep::default();
        let mut background = JoinSet::new();
        let liveness = Liveness::default();
        // Not with the connections of readers, which may all be in use: a breaker that opens is announced here.
        background.spawn(liveness.clone().watch("news", news.clone().say(loop_pool.clone())));
        if let Some(address) = listen {
            background.spawn(liveness.clone().watch("listener", news.clone().listen(address)));
        }
        background.spawn(liveness.clone().watch("upkeep", upkeep.clone().run(pool.clone(), options.upkeep_after)));
        let taking_back =
            take_back_again_and_again(pool.clone(), options.take_back_every, news.clone(), floors.clone());
        background.spawn(liveness.clone().watch("take back", taking_back));
        let mut writing = Writing::new();
        let submits = Submits { node: node.clone(), floors: floors.clone() };
        let settles = Settles { floors: floors.clone() };
        let writers = Arc::new(Writers {
            submits: Batches::start(&pools, options.writers, submits, &mut writing, &liveness),
            settles: Batches::start(&pools, options.writers, settles, &mut writing, &liveness),
            reserves: Batches::start(&pools, options.writers, Reserves, &mut writing, &liveness),
            changes: Batches::start(&pools, options.writers, Changes, &mut writing, &liveness),
        });
        Ok(PostgresStore {
            pool,
            loop_pool,
            pools,
            node,
            news,
            aside,
            floors,
            fence: Fence::default(),
            departed_nodes: Mutex::default(),
            is_full: AtomicBool::new(false),
            upkeep,
            writers: Mutex::new(Some(writers)),
            writing: tokio::sync::Mutex::new(writing),
            background: tokio::sync::Mutex::new(background),
            liveness,
        })
    }

    /// The identity of this process for claims.
    pub(crate) fn claimant(&self) -> Claimant<'_> {
        Claimant { node: self.node.as_str(), aside: &self.aside }
    }

    pub(crate) fn writers(&self) -> Result<Arc<Writers>, Error> {
        self.writers.lock().unwrap_or_else(PoisonError::into_inner).clone().ok_or(Error::Closed)
    }

    /// Announces due tasks that a claim left, because there are more than this process can take.
    pub(crate) fn tell_of_left(&self, lanes: &[LaneDue], due_by: Timestamp) {
        let is_due = |lane: &&LaneDue| lane.next_due.is_some_and(|due| due <= due_by);
        for lane in lanes.iter().filter(is_due) {
            self.news.tell(&lane.lane, lane.class, lane.next_due.unwrap_or(due_by));
        }
    }

    /// Announces due tasks that were not claimed in the same transaction.
    pub(crate) fn tell_of_unclaimed(&self, due: Vec<(Lane, Timestamp)>, answers: &[Submitted]) {
        for ((lane, at), answer) in due.into_iter().zip(answers) {
            if let Submitted::Created(_, None) = answer {
                self.news.tell(&lane, Class::First, at);
            }
        }
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("node", &self.node).finish_non_exhaustive()
    }
}

/// The lane of a task that is due when it is submitted, and its due time.
pub(crate) fn due_at_once(new: &NewTask) -> (Lane, Timestamp) {
    (new.task.lane.clone(), new.task.next_attempt_at.unwrap_or(new.task.created_at))
}

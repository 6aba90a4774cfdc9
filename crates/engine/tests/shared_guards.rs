//! Guards of several nodes over one store: what the dependency sees of all of them together. No announcement arrives
//! between these nodes, so they learn of each other by their exchanges alone.

#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "tests")]

mod world;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redrive_core::Status;
use redrive_core::guards::breaker::State;
use redrive_core::guards::{self};
use redrive_core::policy::Spec;
use redrive_engine::Options;
use redrive_engine::clock::Clock;
use redrive_store::memory::MemoryStore;
use redrive_store::{GuardKey, SharedStore, StateChange, Store};
use world::{FailingStore, PausedClock, Peers, Reply, World, attempts, lane};

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Retries soon and often, for long.
fn eager(max_attempts: u32) -> Spec {
    Spec { initial_delay_ms: Some(100), max_delay_ms: Some(1_000), ..attempts(max_attempts) }
}

fn without_breaker() -> Options {
    Options { guards: guards::Settings { breaker: None, ..guards::Settings::default() }, ..Options::default() }
}

/// Nodes over one store, and one dependency that all of them call.
struct Nodes {
    nodes: Vec<World>,
    peers: Arc<Peers>,
    /// Whether calls fail.
    is_down: Arc<AtomicBool>,
}

impl Nodes {
    async fn start(count: usize, options: Options) -> Self {
        let (peers, clock) = (Peers::start(), PausedClock::start());
        let store = Arc::new(FailingStore::of_several(MemoryStore::new(), peers.clone()));
        let is_down = Arc::new(AtomicBool::new(true));
        let mut nodes = Vec::new();
        for _ in 0..count {
            nodes.push(World::over(store.clone(), clock.clone(), options.clone()).await);
        }
        let nodes = Nodes { nodes, peers, is_down };
        nodes.call("dependency");
        nodes
    }

    /// Has all nodes call the one dependency under this name.
    fn call(&self, name: &str) {
        for node in &self.nodes {
            let is_down = self.is_down.clone();
            node.dependency.behave(name, move |_, _| {
                let status = if is_down.load(Ordering::Relaxed) { 500 } else { 200 };
                Reply::After(Duration::from_millis(200), Box::new(Reply::Status(status)))
            });
        }
    }

    async fn submit(&self, count: usize, name: &str, spec: fn(u32) -> Spec, attempts: u32) {
        for number in 0..count {
            self.nodes[number % self.nodes.len()].submit_to(name, &format!("{name}-{number}"), spec(attempts)).await;
        }
    }

    async fn pass(&self, time: Duration) {
        self.nodes[0].clock.sleep(time).await;
    }

    /// When each send arrived, in milliseconds since the start, and whether it was a retry; of all nodes.
    fn sends(&self) -> Vec<(u64, bool)> {
        let seen = self.nodes.iter().flat_map(|node| node.dependency.sends().into_iter().map(move |send| (node, send)));
        let mut seen: Vec<_> = seen.map(|(node, send)| (node.millis(send.at), send.outbound.attempt > 1)).collect();
        seen.sort_unstable();
        seen
    }

    fn sent_by(&self, node: usize) -> usize {
        self.nodes[node].dependency.sends().len()
    }

    async fn count(&self, status: Status) -> u64 {
        self.nodes[0].store.reads().counts(world::tenant()).await.unwrap().get(&status).copied().unwrap_or(0)
    }

    fn breaker(&self, node: usize) -> State {
        self.nodes[node]
            .engine
            .lane_report(&lane("dependency"))
            .and_then(|report| report.breaker)
            .unwrap_or(State::Closed)
    }
}

/// The most retries beyond a fifth of the first attempts, with the slack of a bucket on either side.
fn most_beyond_a_fifth(sends: &[(u64, bool)]) -> f64 {
    let beyond = |end: u64| {
        let within = |millis: u64| sends.iter().filter(move |(at, _)| *at <= end && *at + millis > end);
        let retries = within(29_000).filter(|(_, is_retry)| *is_retry).count();
        let firsts = within(32_000).filter(|(_, is_retry)| !*is_retry).count();
        retries as f64 - 0.2 * firsts as f64
    };
    sends.iter().filter(|(_, is_retry)| *is_retry).map(|(at, _)| beyond(*at)).fold(f64::MIN, f64::max)
}

#[tokio::test(start_paused = true)]
async fn three_nodes_send_one_floor_to_a_dead_dependency() {
    let nodes = Nodes::start(3, without_breaker()).await;
    nodes.submit(60, "dependency", eager, 100).await;
    nodes.pass(secs(120)).await;
    let sends = nodes.sends();
    let (firsts, retries) = (sends.iter().filter(|(_, is_retry)| !is_retry).count(), sends.len() - 60);
    assert_eq!(firsts, 60);
    assert!(most_beyond_a_fifth(&sends) <= 10.0, "{}", most_beyond_a_fifth(&sends));
    assert!((10 + 12 + 20..=10 + 12 + 40).contains(&retries), "the floor is used in each window: {retries}");
}

#[tokio::test(start_paused = true)]
async fn invented_names_do_not_multiply_the_floor_over_several_nodes() {
    let nodes = Nodes::start(2, without_breaker()).await;
    for name in ["a", "b", "c", "d", "e"] {
        nodes.call(name);
        nodes.submit(4, name, eager, 100).await;
    }
    nodes.pass(secs(25)).await;
    let retries = nodes.sends().iter().filter(|(_, is_retry)| *is_retry).count();
    assert!((8..=10).contains(&retries), "one floor for one origin: {retries}");
}

#[tokio::test(start_paused = true)]
async fn a_lane_that_calls_several_origins_sends_retries_to_each() {
    let nodes = Nodes::start(1, without_breaker()).await;
    let node = &nodes.nodes[0];
    for number in 0..8 {
        let origin = if number % 2 == 0 { "http://x.test/" } else { "http://y.test/" };
        let mut draft = node.draft(&format!("task-{number}"), eager(100)).await;
        Arc::make_mut(&mut draft.request).target_url = origin.into();
        node.submit_draft(draft).await;
    }
    nodes.pass(secs(25)).await;
    let sends = node.dependency.sends();
    let retries = |origin: &str| {
        let is_there = |url: &str| url.starts_with(origin);
        sends.iter().filter(|send| send.outbound.attempt > 1 && is_there(&send.outbound.request.target_url)).count()
    };
    let (x, y) = (retries("http://x.test"), retries("http://y.test"));
    assert!(x >= 2 && y >= 2, "{x} and {y} retries");
    assert!(x + y <= 11, "the floor of the lane, and a fifth of its first attempts: {x} and {y}");
}

#[tokio::test(start_paused = true)]
async fn a_synchronous_call_is_retried_when_the_budget_was_spent_long_ago() {
    let nodes = Nodes::start(1, without_breaker()).await;
    nodes.submit(30, "dependency", eager, 8).await;
    nodes.pass(secs(20)).await;
    // All of these have ended by then, or nothing is due: no tokens are asked for.
    nodes.pass(secs(600)).await;
    let sync = Spec { context: Some(redrive_core::policy::Context::Sync), ..eager(3) };
    let task = nodes.nodes[0].submit("waited-for", sync).await;
    let ended = nodes.nodes[0].ended(task.id).await.task;
    assert_eq!(ended.attempt_number, 3, "{:?}", ended.reason);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_stops_returns_its_tokens() {
    let nodes = Nodes::start(2, without_breaker()).await;
    nodes.submit(20, "dependency", eager, 100).await;
    nodes.pass(Duration::from_millis(500)).await;
    nodes.nodes[0].engine.drain();
    nodes.pass(secs(3)).await;
    nodes.nodes[0].engine.stop().await;
    nodes.pass(secs(20)).await;
    let retries = nodes.sends().iter().filter(|(_, is_retry)| *is_retry).count();
    assert_eq!(retries, 10 + 4, "all of the floor and the fifth is used");
}

#[tokio::test(start_paused = true)]
async fn half_of_the_calls_fail_on_three_nodes_and_a_fifth_more_is_sent() {
    let nodes = Nodes::start(3, without_breaker()).await;
    for (number, node) in nodes.nodes.iter().enumerate() {
        let count = std::sync::atomic::AtomicUsize::new(number);
        node.dependency.behave("dependency", move |_, _| {
            Reply::Status(if count.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) { 500 } else { 200 })
        });
    }
    for second in 0..60 {
        nodes.submit_more(second, 30).await;
        nodes.pass(secs(1)).await;
    }
    let sends = nodes.sends();
    let retries = sends.iter().filter(|(_, is_retry)| *is_retry).count() as f64;
    assert!(most_beyond_a_fifth(&sends) <= 10.0, "{}", most_beyond_a_fifth(&sends));
    let share = retries / 1_800.0;
    assert!((0.17..=0.21).contains(&share), "retries are {share} of the first attempts");
}

impl Nodes {
    async fn submit_more(&self, round: usize, count: usize) {
        for number in 0..count {
            let node = &self.nodes[number % self.nodes.len()];
            node.submit_to("dependency", &format!("{round}-{number}"), eager(4)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_breaker_that_one_node_opens_is_open_for_all_and_one_node_probes() {
    let nodes = Nodes::start(3, Options::default()).await;
    // The first node alone has work, and sees the failures.
    for number in 0..30 {
        nodes.nodes[0].submit_to("dependency", &format!("{number}"), eager(100)).await;
    }
    nodes.pass(secs(6)).await;
    let open: Vec<State> = (0..3).map(|node| nodes.breaker(node)).collect();
    assert!(open.iter().all(|state| matches!(state, State::Open { .. })), "{open:?}");
    let before = nodes.sends().len();
    for node in 0..3 {
        nodes.nodes[node].submit_to("dependency", &format!("more-{node}"), eager(100)).await;
    }
    nodes.pass(secs(5)).await;
    assert_eq!(nodes.sends().len(), before, "nothing is sent while it is open");
    // Every pause of 15 to 60 s ends with a probe that fails; on a single node, too.
    nodes.pass(secs(180)).await;
    let probes = nodes.sends().len() - before;
    assert!((3..=12).contains(&probes), "{probes} probes in three minutes");
    nodes.is_down.store(false, Ordering::Relaxed);
    nodes.pass(secs(180)).await;
    assert_eq!(nodes.count(Status::Succeeded).await, 33);
    assert_eq!((0..3).map(|node| nodes.breaker(node)).collect::<Vec<_>>(), [State::Closed; 3]);
}

#[tokio::test(start_paused = true)]
async fn a_backlog_drains_over_several_nodes_when_the_dependency_is_back() {
    let nodes = Nodes::start(3, Options::default()).await;
    nodes.submit(1_500, "dependency", eager, 100).await;
    nodes.pass(secs(200)).await;
    nodes.is_down.store(false, Ordering::Relaxed);
    nodes.pass(secs(120)).await;
    assert_eq!(nodes.count(Status::Succeeded).await, 1_500);
    let by_node: Vec<usize> = (0..3).map(|node| nodes.sent_by(node)).collect();
    assert!(by_node.iter().all(|sent| *sent > 100), "all nodes take part: {by_node:?}");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_starts_finds_the_breaker_open() {
    let nodes = Nodes::start(1, Options::default()).await;
    nodes.submit(30, "dependency", eager, 100).await;
    nodes.pass(secs(2)).await;
    let before = nodes.sends().len();
    let node = &nodes.nodes[0];
    let later = World::over(node.store.clone(), node.clock.clone(), Options::default()).await;
    node.engine.drain();
    later.submit("later", eager(100)).await;
    later.clock.sleep(secs(5)).await;
    assert_eq!((nodes.sends().len(), later.dependency.sends().len()), (before, 0));
    assert!(matches!(later.engine.lane_report(&lane("dependency")).unwrap().breaker, Some(State::Open { .. })));
}

#[tokio::test(start_paused = true)]
async fn an_operator_who_closes_or_resets_on_one_node_does_so_for_all() {
    let nodes = Nodes::start(2, Options::default()).await;
    nodes.submit(30, "dependency", eager, 100).await;
    nodes.pass(secs(6)).await;
    nodes.is_down.store(false, Ordering::Relaxed);
    nodes.nodes[1].engine.close_breaker(&lane("dependency"));
    nodes.pass(secs(6)).await;
    assert_eq!((nodes.breaker(0), nodes.breaker(1)), (State::Closed, State::Closed));
    nodes.nodes[0].engine.reset_guards(&lane("dependency"));
    nodes.pass(secs(6)).await;
    assert_eq!(nodes.count(Status::Succeeded).await, 30);
}

#[tokio::test(start_paused = true)]
async fn a_row_that_cannot_be_read_costs_a_floor_and_stops_nothing() {
    let nodes = Nodes::start(2, without_breaker()).await;
    let change = StateChange {
        key: GuardKey::Lane(lane("dependency")),
        expected: None,
        state: "{\"budget\": 7".to_owned(),
        is_closed: true,
        is_announced: false,
        expires_at: nodes.nodes[0].clock.now().after(secs(600)),
    };
    nodes.peers.guards().replace(vec![change]).await.unwrap();
    nodes.submit(10, "dependency", eager, 100).await;
    nodes.pass(secs(25)).await;
    assert_eq!(nodes.sends().len(), 10 + 2, "first attempts, and what they earn");
    nodes.is_down.store(false, Ordering::Relaxed);
    nodes.pass(secs(60)).await;
    assert_eq!(nodes.count(Status::Succeeded).await, 10);
}

#[tokio::test(start_paused = true)]
async fn lanes_without_retries_share_nothing() {
    let nodes = Nodes::start(2, Options::default()).await;
    nodes.is_down.store(false, Ordering::Relaxed);
    nodes.submit(50, "dependency", attempts, 3).await;
    nodes.pass(secs(60)).await;
    assert_eq!(nodes.count(Status::Succeeded).await, 50);
    let key = GuardKey::Lane(lane("dependency"));
    assert_eq!(nodes.peers.guards().read(vec![key]).await.unwrap(), [None]);
}

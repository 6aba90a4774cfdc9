use std::sync::mpsc as gates;
use std::sync::{Arc, Mutex};

use super::*;

/// A backend that waits for the test's permission before every transaction and logs what it did.
struct Gated {
    began: mpsc::UnboundedSender<()>,
    gate: gates::Receiver<Result<(), Error>>,
    log: Arc<Mutex<Vec<String>>>,
    fail_commits: bool,
}

/// The test's side of a [`Gated`] backend.
struct Control {
    began: mpsc::UnboundedReceiver<()>,
    gate: gates::Sender<Result<(), Error>>,
    log: Arc<Mutex<Vec<String>>>,
}

impl Backend for Gated {
    fn begin(&mut self) -> Result<(), Error> {
        self.began.send(()).unwrap();
        self.gate.recv().unwrap()?;
        self.note("begin");
        Ok(())
    }

    fn commit(&mut self) -> Result<(), Error> {
        self.note("commit");
        if self.fail_commits { Err(Error::Full("commit".to_owned())) } else { Ok(()) }
    }

    fn rollback(&mut self) {
        self.note("rollback");
    }
}

impl Drop for Gated {
    fn drop(&mut self) {
        self.note("drop");
    }
}

impl Gated {
    fn note(&self, what: &str) {
        self.log.lock().unwrap().push(what.to_owned());
    }
}

impl Control {
    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    fn count(&self, what: &str) -> usize {
        self.log().iter().filter(|entry| *entry == what).count()
    }

    fn open(&self) {
        self.gate.send(Ok(())).unwrap();
    }
}

fn gated(options: Options) -> (GroupCommit<Gated>, Control) {
    gated_with(options, false)
}

fn gated_with(options: Options, fail_commits: bool) -> (GroupCommit<Gated>, Control) {
    let (began, began_rx) = mpsc::unbounded_channel();
    let (gate, gate_rx) = gates::channel();
    let log = Arc::new(Mutex::new(Vec::new()));
    let backend = Gated { began, gate: gate_rx, log: Arc::clone(&log), fail_commits };
    let handle = GroupCommit::start("test-writer", backend, options).unwrap();
    (handle, Control { began: began_rx, gate, log })
}

type Answered<R> = tokio::task::JoinHandle<Result<R, Error>>;

/// Spawns a job that writes `what` to the log and returns it.
fn spawn_note(handle: &GroupCommit<Gated>, what: &str) -> Answered<String> {
    let (handle, what) = (handle.clone(), what.to_owned());
    tokio::spawn(async move {
        handle
            .run(move |backend| {
                backend.note(&what);
                Ok(what.clone())
            })
            .await
    })
}

async fn until_queued(handle: &GroupCommit<Gated>, jobs: usize) {
    let queue = &handle.shared.queue;
    while queue.max_capacity() - queue.capacity() < jobs {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn callers_that_queue_during_a_commit_share_the_next_one() {
    let (handle, mut control) = gated(Options::default());
    let first = spawn_note(&handle, "first");
    control.began.recv().await.unwrap();
    let others: Vec<_> = (0..500).map(|n| spawn_note(&handle, &n.to_string())).collect();
    until_queued(&handle, 500).await;
    control.open();
    assert_eq!(first.await.unwrap().unwrap(), "first");
    control.open();
    for (n, other) in others.into_iter().enumerate() {
        assert_eq!(other.await.unwrap().unwrap(), n.to_string());
    }
    assert_eq!(control.count("commit"), 2);
}

#[tokio::test]
async fn a_batch_is_bounded() {
    let (handle, mut control) = gated(Options { max_jobs_per_commit: 10, queue: 100 });
    let first = spawn_note(&handle, "first");
    control.began.recv().await.unwrap();
    let others: Vec<_> = (0..25).map(|n| spawn_note(&handle, &n.to_string())).collect();
    until_queued(&handle, 25).await;
    (0..4).for_each(|_| control.open());
    first.await.unwrap().unwrap();
    for other in others {
        other.await.unwrap().unwrap();
    }
    assert_eq!(control.count("commit"), 1 + 3, "25 jobs in tens");
}

#[tokio::test]
async fn a_full_queue_makes_callers_wait_instead_of_failing() {
    let (handle, mut control) = gated(Options { max_jobs_per_commit: 1, queue: 1 });
    let jobs: Vec<_> = (0..5).map(|n| spawn_note(&handle, &n.to_string())).collect();
    for _ in 0..5 {
        control.began.recv().await.unwrap();
        control.open();
    }
    for job in jobs {
        job.await.unwrap().unwrap();
    }
    assert_eq!(control.count("commit"), 5);
}

#[tokio::test]
async fn jobs_run_in_the_order_they_were_queued() {
    let (handle, mut control) = gated(Options::default());
    let first = spawn_note(&handle, "0");
    control.began.recv().await.unwrap();
    let mut others = Vec::new();
    for n in 1..=20 {
        others.push(spawn_note(&handle, &n.to_string()));
        until_queued(&handle, n).await;
    }
    control.open();
    control.open();
    first.await.unwrap().unwrap();
    for other in others {
        other.await.unwrap().unwrap();
    }
    let ran: Vec<_> = control.log().into_iter().filter_map(|entry| entry.parse::<usize>().ok()).collect();
    assert_eq!(ran, (0..=20).collect::<Vec<_>>());
}

#[tokio::test]
async fn no_call_is_answered_before_the_commit() {
    let (handle, mut control) = gated(Options::default());
    let job = spawn_note(&handle, "job");
    control.began.recv().await.unwrap();
    assert!(!job.is_finished());
    control.open();
    job.await.unwrap().unwrap();
    assert_eq!(control.log(), ["begin", "job", "commit"]);
}

#[tokio::test]
async fn a_failing_job_fails_alone_and_its_neighbours_are_written() {
    let (handle, mut control) = gated(Options::default());
    let first = spawn_note(&handle, "first");
    control.began.recv().await.unwrap();
    let before = spawn_note(&handle, "before");
    until_queued(&handle, 1).await;
    let failing = {
        let handle = handle.clone();
        tokio::spawn(async move { handle.run(|_| Err::<(), _>(Error::Full("job".to_owned()))).await })
    };
    until_queued(&handle, 2).await;
    let after = spawn_note(&handle, "after");
    until_queued(&handle, 3).await;
    (0..6).for_each(|_| control.open());
    first.await.unwrap().unwrap();
    for (answer, what) in [(before.await.unwrap(), "before"), (after.await.unwrap(), "after")] {
        assert_eq!(answer.unwrap(), what);
    }
    assert!(matches!(failing.await.unwrap(), Err(Error::Full(why)) if why == "job"));
    assert_eq!(control.log()[..5], ["begin", "first", "commit", "begin", "before"]);
    assert_eq!(
        control.log()[5..],
        ["rollback", "begin", "before", "commit", "begin", "rollback", "begin", "rollback", "begin", "after", "commit"],
        "each half by itself, in order, until the one that fails stands alone"
    );
}

#[tokio::test]
async fn many_neighbours_of_a_failing_job_share_their_commits_all_the_same() {
    let (handle, mut control) = gated(Options::default());
    let first = spawn_note(&handle, "first");
    control.began.recv().await.unwrap();
    let mut jobs = Vec::new();
    for n in 0..256 {
        jobs.push(spawn_note(&handle, &n.to_string()));
        until_queued(&handle, n + 1).await;
    }
    let failing = {
        let handle = handle.clone();
        tokio::spawn(async move { handle.run(|_| Err::<(), _>(Error::Corrupt("job".to_owned()))).await })
    };
    until_queued(&handle, 257).await;
    (0..30).for_each(|_| control.open());
    first.await.unwrap().unwrap();
    for job in jobs {
        job.await.unwrap().unwrap();
    }
    assert!(matches!(failing.await.unwrap(), Err(Error::Corrupt(_))));
    assert!(control.count("begin") <= 20, "{} transactions for 257 jobs", control.count("begin"));
}

#[tokio::test]
async fn a_commit_that_fails_is_everybodys_error() {
    let (handle, mut control) = gated_with(Options::default(), true);
    let job = spawn_note(&handle, "job");
    control.began.recv().await.unwrap();
    control.open();
    assert!(matches!(job.await.unwrap(), Err(Error::Full(why)) if why == "commit"));
    assert_eq!(control.log(), ["begin", "job", "commit", "rollback"]);
}

#[tokio::test]
async fn a_transaction_that_cannot_begin_runs_no_job() {
    let (handle, control) = gated(Options::default());
    control.gate.send(Err(Error::Unavailable("busy".to_owned()))).unwrap();
    assert!(matches!(spawn_note(&handle, "job").await.unwrap(), Err(Error::Unavailable(why)) if why == "busy"));
    assert_eq!(control.log(), Vec::<String>::new());
    control.open();
    spawn_note(&handle, "next").await.unwrap().unwrap();
}

#[tokio::test]
async fn a_caller_that_gave_up_does_not_take_its_job_back() {
    let (handle, mut control) = gated(Options::default());
    let first = spawn_note(&handle, "first");
    control.began.recv().await.unwrap();
    let abandoned = spawn_note(&handle, "abandoned");
    until_queued(&handle, 1).await;
    abandoned.abort();
    assert!(abandoned.await.unwrap_err().is_cancelled());
    control.open();
    control.open();
    first.await.unwrap().unwrap();
    handle.close().await;
    assert_eq!(control.log(), ["begin", "first", "commit", "begin", "abandoned", "commit", "drop"]);
}

#[tokio::test]
async fn close_writes_what_is_queued_and_drops_the_backend_before_it_returns() {
    let (handle, mut control) = gated(Options { max_jobs_per_commit: 3, queue: 100 });
    let first = spawn_note(&handle, "first");
    control.began.recv().await.unwrap();
    let jobs: Vec<_> = (0..10).map(|n| spawn_note(&handle, &n.to_string())).collect();
    until_queued(&handle, 10).await;
    let closing = {
        let handle = handle.clone();
        tokio::spawn(async move { handle.close().await })
    };
    (0..10).for_each(|_| control.open());
    closing.await.unwrap();
    assert_eq!(control.log().last().unwrap(), "drop");
    first.await.unwrap().unwrap();
    for job in jobs {
        job.await.unwrap().unwrap();
    }
    assert!(matches!(handle.run(|_| Ok(())).await, Err(Error::Closed)));
    handle.close().await;
    assert!(matches!(handle.clone().run(|_| Ok(())).await, Err(Error::Closed)));
}

#[tokio::test]
async fn the_thread_ends_with_its_last_handle() {
    let (handle, control) = gated(Options::default());
    let mut ended = handle.shared.ended.clone();
    drop(handle);
    assert!(ended.changed().await.is_err());
    assert_eq!(control.log(), ["drop"]);
}

#[tokio::test]
async fn a_panic_ends_the_writer_and_every_caller_hears_of_it() {
    let (handle, mut control) = gated(Options { max_jobs_per_commit: 2, queue: 100 });
    let before = spawn_note(&handle, "before");
    control.began.recv().await.unwrap();
    let panicking = {
        let handle = handle.clone();
        tokio::spawn(async move { handle.run(|_| -> Result<(), Error> { panic!("a job's panic, on purpose") }).await })
    };
    until_queued(&handle, 1).await;
    let queued: Vec<_> = (0..5).map(|n| spawn_note(&handle, &n.to_string())).collect();
    until_queued(&handle, 6).await;
    control.open();
    control.open();
    before.await.unwrap().unwrap();
    assert!(matches!(panicking.await.unwrap(), Err(Error::Unavailable(_))));
    for job in queued {
        assert!(matches!(job.await.unwrap(), Err(Error::Unavailable(_))));
    }
    assert!(matches!(spawn_note(&handle, "late").await.unwrap(), Err(Error::Unavailable(_))));
    assert_eq!(control.log(), ["begin", "before", "commit", "begin", "drop"], "nothing of the batch was committed");
    handle.close().await;
    assert!(matches!(handle.run(|_| Ok(())).await, Err(Error::Closed)));
}

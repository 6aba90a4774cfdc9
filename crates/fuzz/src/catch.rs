//! Runs a target once and returns whether anything panicked, on any thread.
//!
//! Servers, stores and runtimes catch panics of their own work and continue. Here each of them counts: a panic hook
//! sees every panic of the process before it can be caught.

use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};

use crate::target::Target;

/// A broken property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The panic's message.
    pub message: String,
    /// The panic's location.
    pub place: String,
}

static HEARD: Mutex<Vec<Broken>> = Mutex::new(Vec::new());
/// One input at a time, so that every panic belongs to that input.
static RUNNING: Mutex<()> = Mutex::new(());
static IS_RUNNING: AtomicBool = AtomicBool::new(false);

/// Runs `target` with `input`; an error if anything panicked.
pub fn run(target: &Target, input: &[u8]) -> Result<(), Broken> {
    static HOOK: Once = Once::new();
    HOOK.call_once(listen);
    let _running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    heard().clear();
    IS_RUNNING.store(true, Ordering::SeqCst);
    let ended = panic::catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    IS_RUNNING.store(false, Ordering::SeqCst);
    let mut broken = heard();
    match (broken.is_empty(), ended) {
        (true, Ok(())) => Ok(()),
        (true, Err(_)) => Err(Broken { message: "a panic without a message".into(), place: String::new() }),
        (false, _) => Err(broken.swap_remove(0)),
    }
}

/// Collects panics while an input runs; others are printed as usual.
fn listen() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |panic| if IS_RUNNING.load(Ordering::SeqCst) { hear(panic) } else { print(panic) }));
}

fn hear(panic: &PanicHookInfo<'_>) {
    let payload = panic.payload();
    let text = payload.downcast_ref::<String>().map(String::as_str).or_else(|| payload.downcast_ref().copied());
    let message = text.unwrap_or("a panic without a message").to_owned();
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    heard().push(Broken { message, place });
}

fn heard() -> std::sync::MutexGuard<'static, Vec<Broken>> {
    HEARD.lock().unwrap_or_else(PoisonError::into_inner)
}

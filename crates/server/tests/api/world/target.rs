//! A target inside the process: it answers what it was told to, and remembers what it was sent.

use std::collections::VecDeque;
use std::sync::Mutex;

use bytes::Bytes;
use redrive_core::{Answer, ErrorType};
use redrive_engine::transport::{Outbound, SendError, Sending, Transport};
use tokio::sync::{Notify, oneshot};

/// What to do with one send.
pub(crate) enum Plan {
    Answer(Answer),
    Fail(ErrorType),
    /// Answers 200 once the other end of this says so.
    Hold(oneshot::Receiver<()>),
}

/// Answers as planned, and 200 when nothing is planned.
#[derive(Default)]
pub(crate) struct ScriptedTarget {
    plans: Mutex<VecDeque<Plan>>,
    sent: Mutex<Vec<Outbound>>,
    was_sent: Notify,
}

/// An answer with a status and a body.
pub(crate) fn answer(status: u16, body: impl Into<Bytes>) -> Answer {
    Answer { status, headers: Vec::new(), body: body.into().into(), truncated: false }
}

impl ScriptedTarget {
    pub(crate) fn plan(&self, plan: Plan) {
        self.plans.lock().unwrap().push_back(plan);
    }

    /// Holds the next send until the returned end is used or dropped.
    pub(crate) fn hold(&self) -> oneshot::Sender<()> {
        let (release, held) = oneshot::channel();
        self.plan(Plan::Hold(held));
        release
    }

    /// Ends once there were `count` sends; all of them.
    pub(crate) async fn sends(&self, count: usize) -> Vec<Outbound> {
        loop {
            let was_sent = self.was_sent.notified();
            let sent = self.sent.lock().unwrap().clone();
            if sent.len() >= count {
                return sent;
            }
            was_sent.await;
        }
    }
}

impl Transport for ScriptedTarget {
    fn send(&self, outbound: Outbound) -> Sending {
        let plan = self.plans.lock().unwrap().pop_front();
        self.sent.lock().unwrap().push(outbound);
        self.was_sent.notify_waiters();
        Box::pin(async move {
            match plan {
                None => Ok(answer(200, "")),
                Some(Plan::Answer(answer)) => Ok(answer),
                Some(Plan::Fail(kind)) => Err(SendError { kind, message: "as planned".into() }),
                Some(Plan::Hold(held)) => {
                    held.await.unwrap_or_default();
                    Ok(answer(200, ""))
                }
            }
        })
    }
}

//! A target inside the process: it answers what it was told to, and remembers what it was sent.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

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
    /// Says that it begins to connect, and is connected once the other end says so. Answers 200.
    Connect(oneshot::Sender<()>, oneshot::Receiver<()>),
}

/// Answers as planned, and 200 when nothing is planned.
#[derive(Default)]
pub(crate) struct ScriptedTarget {
    plans: Mutex<VecDeque<Plan>>,
    sent: Arc<Mutex<Vec<Outbound>>>,
    was_sent: Arc<Notify>,
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

    /// Holds the next send before its first byte: the one end tells when, the other lets it go on.
    pub(crate) fn hold_connection(&self) -> (oneshot::Receiver<()>, oneshot::Sender<()>) {
        let (connecting, begun) = oneshot::channel();
        let (release, connected) = oneshot::channel();
        self.plan(Plan::Connect(connecting, connected));
        (begun, release)
    }

    /// What has been sent so far.
    pub(crate) fn sent(&self) -> usize {
        self.sent.lock().unwrap().len()
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
        let (sent, was_sent) = (self.sent.clone(), self.was_sent.clone());
        Box::pin(async move {
            let plan = match plan {
                Some(Plan::Connect(connecting, connected)) => {
                    connecting.send(()).unwrap_or_default();
                    connected.await.unwrap_or_default();
                    None
                }
                plan => plan,
            };
            outbound.gate.open().map_err(|error| SendError { kind: ErrorType::NotSent, message: error.to_string() })?;
            sent.lock().unwrap().push(outbound);
            was_sent.notify_waiters();
            match plan {
                None | Some(Plan::Connect(..)) => Ok(answer(200, "")),
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

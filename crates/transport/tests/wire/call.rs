//! Calls, as the engine would make them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use redrive_core::{Answer, BodyRef, Dependency, ErrorType, IdempotencyKey, Lane, Request, TaskId, TenantId};
use redrive_engine::transport::{AlwaysOpen, Gate, Outbound, SendError, Transport};
use redrive_transport::{HttpTransport, Options, Roots};

/// Long enough to never run out in a test that does not want it to.
const PLENTY: Duration = Duration::from_secs(60);

/// Short enough to run out soon in a test that waits for it.
pub(crate) const SHORT: Duration = Duration::from_millis(400);

/// A transport with these options, and no authority trusted but those that they name.
pub(crate) fn transport(options: Options) -> HttpTransport {
    HttpTransport::new(Options { roots: Roots::ExtraOnly, ..options }).unwrap()
}

/// A call of `url`, which has plenty of time.
pub(crate) fn call(url: impl Into<String>) -> Call {
    static TASKS: AtomicU64 = AtomicU64::new(1);
    let task = TASKS.fetch_add(1, Ordering::Relaxed);
    let request = Request {
        target_url: url.into(),
        method: "POST".into(),
        headers: Vec::new(),
        body: Bytes::from_static(b"body").into(),
        overrides: None,
        labels: BTreeMap::new(),
    };
    Call {
        outbound: Outbound {
            lane: lane("lane"),
            request: Arc::new(request),
            idempotency_key: IdempotencyKey::try_new(format!("key-{task}")).unwrap(),
            task: TaskId::from_parts(task, task),
            attempt: 1,
            trace: None,
            connect_timeout: PLENTY,
            attempt_timeout: PLENTY,
            gate: Arc::new(AlwaysOpen),
        },
    }
}

fn lane(dependency: &str) -> Lane {
    Lane { tenant: TenantId::default_tenant(), dependency: Dependency::try_new(dependency).unwrap() }
}

/// A call to be made.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) outbound: Outbound,
}

impl Call {
    fn request(mut self, change: impl FnOnce(&mut Request)) -> Self {
        change(Arc::make_mut(&mut self.outbound.request));
        self
    }

    pub(crate) fn method(self, method: &str) -> Self {
        self.request(|request| request.method = method.into())
    }

    pub(crate) fn header(self, name: &str, value: &str) -> Self {
        self.request(|request| request.headers.push((name.into(), value.into())))
    }

    pub(crate) fn body(self, body: impl Into<Bytes>) -> Self {
        self.request(|request| request.body = body.into().into())
    }

    pub(crate) fn stored(self, body: BodyRef) -> Self {
        self.request(|request| request.body = body.into())
    }

    pub(crate) fn lane(mut self, dependency: &str) -> Self {
        self.outbound.lane = lane(dependency);
        self
    }

    pub(crate) fn tenant(mut self, tenant: &str) -> Self {
        self.outbound.lane.tenant = TenantId::try_new(tenant).unwrap();
        self
    }

    pub(crate) fn gate(mut self, gate: impl Gate + 'static) -> Self {
        self.outbound.gate = Arc::new(gate);
        self
    }

    pub(crate) fn attempt(mut self, number: u32) -> Self {
        self.outbound.attempt = number;
        self
    }

    pub(crate) fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.outbound.connect_timeout = timeout;
        self
    }

    pub(crate) fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.outbound.attempt_timeout = timeout;
        self
    }

    pub(crate) fn key(&self) -> String {
        self.outbound.idempotency_key.to_string()
    }

    /// Makes the call.
    pub(crate) async fn over(self, transport: &HttpTransport) -> Result<Answer, SendError> {
        transport.send(self.outbound).await
    }

    /// Makes the call, which must fail, and says how. No message may show what is secret.
    pub(crate) async fn fails_over(self, transport: &HttpTransport) -> (ErrorType, String) {
        let error = self.over(transport).await.expect_err("there was an answer");
        assert!(!error.message.contains("secret"), "{}", error.message);
        assert!(error.message.starts_with(|first: char| !first.is_uppercase()), "{}", error.message);
        (error.kind, error.message)
    }
}

//! One request, as handlers get it.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http_body::Body as _;
use redrive_core::{Consumer, Dependency, IdempotencyKey, OperationName, PolicyId, RecordName, TaskId};

use super::body;
use super::host_name::HostNames;
use super::peer::Exchange;
use super::problem::Refusal;
use super::query::Query;
use super::request_body::RequestBody;
use super::router::PathParameters;
use super::shutdown::ShutdownSignal;
use crate::app::App;
use crate::caller::Caller;
use crate::intake::key;
use crate::operation_error::OperationError;

/// What all requests share.
pub(crate) struct Context {
    pub(crate) app: Arc<App>,
    /// The caller of every request, until there are keys to tell callers apart.
    pub(crate) local: Caller,
    /// The host names of the server.
    pub(crate) names: HostNames,
    pub(crate) shutdown: ShutdownSignal,
    pub(crate) body_read_timeout: Duration,
    /// The number of open connections.
    pub(crate) connections: Arc<AtomicUsize>,
}

/// One request.
pub(crate) struct Call {
    pub(crate) context: Arc<Context>,
    pub(crate) caller: Caller,
    /// The memory of the request and its answer.
    pub(crate) exchange: Arc<Exchange>,
    pub(crate) parts: Parts,
    pub(crate) body: RequestBody,
    pub(crate) query: Query,
    /// The values of the path's parameters.
    pub(crate) parameters: PathParameters,
}

impl Call {
    pub(crate) fn app(&self) -> &App {
        &self.context.app
    }

    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The value of the path's parameter `name`.
    pub(crate) fn parameter(&self, name: &str) -> &str {
        self.parameters.get(name)
    }

    /// The task in the path. An invalid id is a task that does not exist.
    pub(crate) fn task_id(&self) -> Result<TaskId, Refusal> {
        let id = self.parameter("taskId");
        id.parse().map_err(|_| OperationError::NoSuchTask(id.to_owned()).into())
    }

    /// The policy in the path. An invalid name is a policy that does not exist.
    pub(crate) fn policy_id(&self) -> Result<PolicyId, Refusal> {
        let id = self.parameter("policyId");
        PolicyId::try_new(id).map_err(|_| OperationError::NoSuchPolicy(id.to_owned()).into())
    }

    /// The dependency in the path.
    pub(crate) fn dependency(&self) -> Result<Dependency, Refusal> {
        let name = self.parameter("dependency");
        Dependency::try_new(name).map_err(|invalid| Refusal::parameter("dependency", invalid.to_string()))
    }

    /// The operation and the idempotency key in the path.
    pub(crate) fn record_key(&self) -> Result<(OperationName, IdempotencyKey), Refusal> {
        let operation = OperationName::try_new(self.parameter("operation"));
        let operation = operation.map_err(|invalid| Refusal::parameter("operation", invalid.to_string()))?;
        Ok((operation, self.idempotency_key()?))
    }

    /// The idempotency key in the path.
    pub(crate) fn idempotency_key(&self) -> Result<IdempotencyKey, Refusal> {
        Ok(key::check("key", self.parameter("key"))?)
    }

    /// The consumer in the path.
    pub(crate) fn consumer(&self) -> Result<Consumer, Refusal> {
        let name = self.parameter("consumer");
        Consumer::try_new(name).map_err(|invalid| Refusal::parameter("consumer", invalid.to_string()))
    }

    /// The consumer and the event in the path.
    pub(crate) fn event(&self) -> Result<(Consumer, RecordName), Refusal> {
        let event = RecordName::try_new(self.parameter("eventId"));
        let event = event.map_err(|invalid| Refusal::parameter("eventId", invalid.to_string()))?;
        Ok((self.consumer()?, event))
    }

    /// Reads the body if there is one, and returns it with the head of the call.
    pub(crate) async fn read_optional_json(self, limit_bytes: usize) -> Result<(Option<Bytes>, CallHead), Refusal> {
        if self.body.size_hint().exact() == Some(0) {
            let Call { context, caller, exchange, parts, .. } = self;
            return Ok((None, CallHead { context, caller, exchange, parts }));
        }
        self.read_json(limit_bytes).await.map(|(bytes, head)| (Some(bytes), head))
    }

    /// Reads the body, and returns it with the head of the call.
    pub(crate) async fn read_json(self, limit_bytes: usize) -> Result<(Bytes, CallHead), Refusal> {
        let Call { context, caller, exchange, parts, body, .. } = self;
        let bytes = body::read_json(&parts.headers, body, limit_bytes, context.body_read_timeout, &exchange).await?;
        Ok((bytes, CallHead { context, caller, exchange, parts }))
    }
}

/// A request without its body, which has been read.
pub(crate) struct CallHead {
    pub(crate) context: Arc<Context>,
    pub(crate) caller: Caller,
    /// The memory of the request and its answer.
    pub(crate) exchange: Arc<Exchange>,
    pub(crate) parts: Parts,
}

//! One request, as the routes see it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use redrive_core::{PolicyId, TaskId};

use super::body;
use super::host_name::HostNames;
use super::peer::Exchange;
use super::problem::Refusal;
use super::query::Query;
use super::stopping::Stopping;
use super::unread::Lent;
use crate::app::App;
use crate::caller::Caller;
use crate::failure::Failure;

/// What all requests share.
pub(crate) struct Context {
    pub(crate) app: Arc<App>,
    /// The caller of every request, until there are keys to tell callers apart.
    pub(crate) local: Caller,
    /// The names that the server answers to.
    pub(crate) names: HostNames,
    pub(crate) stopping: Stopping,
    pub(crate) body_read_timeout: Duration,
}

/// One request.
pub(crate) struct Call {
    pub(crate) context: Arc<Context>,
    pub(crate) caller: Caller,
    /// What the request holds in memory.
    pub(crate) exchange: Arc<Exchange>,
    pub(crate) parts: Parts,
    pub(crate) body: Lent,
    pub(crate) query: Query,
    /// What stands in the path's parameter.
    pub(crate) parameter: Option<String>,
}

impl Call {
    pub(crate) fn app(&self) -> &App {
        &self.context.app
    }

    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// What stands in the path's parameter.
    pub(crate) fn parameter(&self) -> &str {
        self.parameter.as_deref().unwrap_or_default()
    }

    /// The task that the path names. What is no id names no task.
    pub(crate) fn task_id(&self) -> Result<TaskId, Refusal> {
        self.parameter().parse().map_err(|_| Failure::NoSuchTask(self.parameter().to_owned()).into())
    }

    /// The policy that the path names. What is no name names no policy.
    pub(crate) fn policy_id(&self) -> Result<PolicyId, Refusal> {
        PolicyId::try_new(self.parameter()).map_err(|_| Failure::NoSuchPolicy(self.parameter().to_owned()).into())
    }

    /// Reads the body. What remains of the call comes back with it.
    pub(crate) async fn read_json(self, limit_bytes: usize) -> Result<(Bytes, Received), Refusal> {
        let Call { context, caller, exchange, parts, body, .. } = self;
        let bytes = body::read_json(&parts.headers, body, limit_bytes, context.body_read_timeout, &exchange).await?;
        Ok((bytes, Received { context, caller, parts }))
    }
}

/// A request whose body has been read.
pub(crate) struct Received {
    pub(crate) context: Arc<Context>,
    pub(crate) caller: Caller,
    pub(crate) parts: Parts,
}

//! Lists alerts and silences.

use redrive_core::alerts::{Alert, Subject};

use crate::alerts::{Silence, silences};
use crate::app::App;
use crate::caller::Caller;

/// What fires and has fired, as this process sees it, and the silences of all processes.
#[derive(Debug, Clone, PartialEq)]
pub struct AlertList {
    /// What fires: the most severe first, then the newest.
    pub firing: Vec<Alert>,
    /// What is over, the newest first.
    pub past: Vec<Alert>,
    /// Silences that have not ended, by their end; `None` if the store does not answer.
    pub silences: Option<Vec<Silence>>,
}

/// Lists the alerts that a caller may see: those of its tenant's dependencies, and those of the service and its sinks. It answers
/// also while the store fails, when it is needed most.
pub async fn list_alerts(app: &App, caller: &Caller) -> AlertList {
    let is_theirs = |alert: &Alert| match &alert.subject {
        Subject::Lane(lane) => lane.tenant == caller.tenant || lane.tenant == app.alerts.system,
        Subject::Service => true,
    };
    let (mut firing, mut past) = app.alerts.list();
    firing.retain(is_theirs);
    past.retain(is_theirs);
    let silences = match silences::read(app).await {
        Ok(silences) => {
            app.engine.store_worked("reading silences");
            Some(silences.into_iter().filter(|silence| silence.tenant == caller.tenant).collect())
        }
        Err(error) => {
            app.engine.store_failed("reading silences", &error);
            None
        }
    };
    AlertList { firing, past, silences }
}

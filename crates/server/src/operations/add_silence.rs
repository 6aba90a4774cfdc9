//! Silences alerts for a time.

use redrive_core::Dependency;
use redrive_core::alerts::Signal;
use redrive_core::idempotency::ExecutionId;

use super::dependency::note;
use super::end_time;
use crate::alerts::{Silence, silences};
use crate::app::App;
use crate::caller::Caller;
use crate::operation_error::OperationError;
use crate::wire::SilenceInput;

/// Keeps alerts from the sinks for a time, on all nodes. They are still listed and logged.
pub async fn add_silence(app: &App, caller: &Caller, input: SilenceInput<'_>) -> Result<Silence, OperationError> {
    super::record::check_time(app)?;
    let until = end_time::check(input.for_ms, input.until_ms, app.engine.now())?;
    let until =
        until.ok_or_else(|| OperationError::invalid("forMs", "must be given, or untilMs: a silence has an end"))?;
    let silence = Silence {
        id: ExecutionId::from_random(app.engine.random_bits()),
        tenant: caller.tenant.clone(),
        signal: input.rule.as_deref().map(signal).transpose()?,
        dependency: input.dependency.as_deref().map(dependency).transpose()?,
        note: note(app, caller, input.reason.as_deref())?,
        until,
    };
    if silences::read(app).await?.len() >= silences::MOST {
        return Err(OperationError::TooManySilences { most: silences::MOST });
    }
    let added = silences::add(app, silence).await?;
    app.alerts.look_soon();
    Ok(added)
}

fn signal(rule: &str) -> Result<Signal, OperationError> {
    Signal::from_name(rule).ok_or_else(|| {
        let names = Signal::ALL.map(Signal::as_str).join(", ");
        OperationError::invalid("rule", format!("must be the name of a rule: {names}"))
    })
}

fn dependency(name: &str) -> Result<Dependency, OperationError> {
    Dependency::try_new(name).map_err(|invalid| OperationError::invalid("dependency", invalid.to_string()))
}

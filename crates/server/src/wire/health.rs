//! The health of the service.

use redrive_engine::ClockState;
use redrive_store::{SetAside, UnreadableRow};
use schemars::JsonSchema;
use serde::Serialize;

/// The health of the service.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Health {
    /// `ok`.
    pub status: &'static str,
    /// Rows of the store that this version cannot read. They are set aside; everything else continues.
    #[serde(rename = "setAside", skip_serializing_if = "Option::is_none")]
    pub set_aside: Option<ShownSetAside>,
    /// The state of the clocks, if something is wrong with them. Submissions are still accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<ShownClock>,
}

impl Health {
    /// The service is healthy.
    pub const OK: Health = Health { status: "ok", set_aside: None, clock: None };

    /// The service is healthy, with these rows set aside and this state of the clocks.
    pub fn beside(set_aside: SetAside, clock: ClockState) -> Self {
        let SetAside { count, rows } = set_aside;
        let clock = (clock.is_machine_off() || !clock.is_certain).then_some(ShownClock {
            ahead_ms: clock.ahead_ms,
            stepped_ms: clock.stepped_ms,
            is_claiming: clock.is_certain,
        });
        let rows = rows.into_iter().map(|UnreadableRow { row, problem }| ShownRow { row, problem }).collect();
        Health { set_aside: (count > 0).then_some(ShownSetAside { count, rows }), clock, ..Health::OK }
    }
}

/// The state of the clocks.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Clock")]
pub struct ShownClock {
    /// By how many milliseconds the machine's clock is ahead of the time that this process works with: the database's
    /// where nodes share one, otherwise what the machine's clock showed at the start.
    pub ahead_ms: i64,
    /// By how many milliseconds the database's clock has stepped, while the step is not applied yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stepped_ms: Option<i64>,
    /// Whether tasks are claimed: not while the time is uncertain.
    pub is_claiming: bool,
}

/// Rows that cannot be read.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SetAside")]
pub struct ShownSetAside {
    /// How many.
    pub count: u64,
    /// The first of them.
    pub rows: Vec<ShownRow>,
}

/// A row that cannot be read.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SetAsideRow")]
pub struct ShownRow {
    /// The kind of the row and its key.
    pub row: String,
    /// What is wrong with it.
    pub problem: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_shown_only_if_something_is_wrong_with_them() {
        let state = |is_certain, ahead_ms, stepped_ms| ClockState { is_certain, ahead_ms, stepped_ms };
        let cases = [
            (state(true, 1_000, None), r#"{"status":"ok"}"#),
            (state(true, -1_001, None), r#"{"status":"ok","clock":{"aheadMs":-1001,"isClaiming":true}}"#),
            (state(false, 3, None), r#"{"status":"ok","clock":{"aheadMs":3,"isClaiming":false}}"#),
            (
                state(false, 0, Some(-9_000)),
                r#"{"status":"ok","clock":{"aheadMs":0,"steppedMs":-9000,"isClaiming":false}}"#,
            ),
        ];
        for (clock, expected) in cases {
            let shown = serde_json::to_string(&Health::beside(SetAside::default(), clock)).unwrap();
            assert_eq!(shown, expected);
        }
    }
}

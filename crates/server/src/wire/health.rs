//! How the service is.

use redrive_engine::ClockState;
use redrive_store::{SetAside, UnreadableRow};
use schemars::JsonSchema;
use serde::Serialize;

/// How the service is.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Health {
    /// `ok`.
    pub status: &'static str,
    /// What the store holds and this program cannot understand. It is set aside, and everything else goes on.
    #[serde(rename = "setAside", skip_serializing_if = "Option::is_none")]
    pub set_aside: Option<ShownSetAside>,
    /// What is wrong with the clocks, if anything is. Submissions are accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<ShownClock>,
}

impl Health {
    /// All is well.
    pub const OK: Health = Health { status: "ok", set_aside: None, clock: None };

    /// All is well but for what is set aside, and for the clocks.
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

/// What is wrong with the clocks.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Clock")]
pub struct ShownClock {
    /// By how many milliseconds the machine's clock is ahead of the time that this process works on: the database's where nodes
    /// share one, otherwise what the machine's clock showed at the start.
    pub ahead_ms: i64,
    /// By how many milliseconds the database's clock has stepped, while that is not followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stepped_ms: Option<i64>,
    /// Whether tasks are claimed. They are not while the time is not certain.
    pub is_claiming: bool,
}

/// Rows that cannot be understood.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SetAside")]
pub struct ShownSetAside {
    /// How many.
    pub count: u64,
    /// The first of them.
    pub rows: Vec<ShownRow>,
}

/// A row that cannot be understood.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SetAsideRow")]
pub struct ShownRow {
    /// Which row of which kind.
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

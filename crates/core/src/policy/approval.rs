//! An approval: a permission to break a rule of the standard until a given day.

use serde::{Deserialize, Serialize};

use crate::date::Date;

/// A permission for more or fewer retries than the standard allows: by whom, and until when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a table with by, until and maxAttempts")]
pub struct Approval {
    /// Who gave it: at most 200 characters.
    pub by: String,
    /// The last day on which it holds, in UTC.
    pub until: Date,
    /// The most attempts that it allows, the first one included.
    pub max_attempts: u32,
    /// Why: at most 1,000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Approval {
    /// The most characters of a name.
    pub const BY_CHARS: usize = 200;
    /// The most characters of a reason.
    pub const REASON_CHARS: usize = 1_000;

    /// Whether it holds on this day.
    pub fn holds_on(&self, today: Date) -> bool {
        today <= self.until
    }
}

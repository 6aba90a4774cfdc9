//! How the service is.

use redrive_store::{SetAside, Unreadable};
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
}

impl Health {
    /// All is well.
    pub const OK: Health = Health { status: "ok", set_aside: None };

    /// All is well but for what is set aside.
    pub fn beside(set_aside: SetAside) -> Self {
        let SetAside { count, rows } = set_aside;
        let rows = rows.into_iter().map(|Unreadable { row, problem }| ShownRow { row, problem }).collect();
        Health { set_aside: (count > 0).then_some(ShownSetAside { count, rows }), ..Health::OK }
    }
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

//! The format of a notification: a JSON array of items.
//!
//! An item that a program does not know is taken for a lost notification, which costs a scan of all lanes, and the other
//! items are read. (Programs up to schema version 5 drop the other items too, so a new kind of item is sent in
//! notifications of its own.) An item that announces no task contains a probe number as well. A program that does not
//! know the item takes it for a probe of another process, and ignores it.

use redrive_core::{Class, Dependency, Lane, TaskId, TenantId, Timestamp};
use redrive_store::{LaneDue, News as Announcement};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

/// The most bytes in one notification: PostgreSQL rejects 8,000 and more.
pub(super) const MAX_TEXT: usize = 7_900;

/// One item of a notification, or one that this program does not know.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum ReceivedItem {
    Known(Item),
    Unknown(IgnoredAny),
}

/// One item of a notification. The short names are part of the channel's format.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Item {
    #[serde(rename = "n", skip_serializing_if = "Option::is_none", default)]
    node: Option<String>,
    #[serde(rename = "t")]
    tenant: String,
    #[serde(flatten)]
    what: What,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum What {
    Due {
        #[serde(rename = "d")]
        dependency: String,
        #[serde(rename = "at")]
        due: u64,
        /// Absent in items of the previous version, and of `redrive.enqueue`, which makes first attempts only.
        #[serde(rename = "c", skip_serializing_if = "Option::is_none", default)]
        class: Option<u8>,
    },
    CancelRequested {
        #[serde(rename = "x")]
        task: String,
    },
    /// Comes before the probe, because it contains a probe number.
    GuardsChanged {
        #[serde(rename = "g")]
        dependency: String,
        #[serde(rename = "p")]
        number: u64,
    },
    /// A probe, which a process sends to itself in a separate notification to check that it receives notifications. It
    /// has no tenant.
    Probe {
        #[serde(rename = "p")]
        number: u64,
    },
}

impl Item {
    /// A task of this class of a lane is due.
    pub(super) fn due(node: &str, lane: &Lane, class: Class, due: Timestamp) -> Self {
        let dependency = lane.dependency.to_string();
        Item::new(node, &lane.tenant, What::Due { dependency, due: due.as_millis(), class: Some(class.code()) })
    }

    /// A cancel of this task was committed.
    pub(super) fn cancel(node: &str, tenant: &TenantId, id: TaskId) -> Self {
        Item::new(node, tenant, What::CancelRequested { task: id.to_string() })
    }

    /// The shared guards of this lane changed, or its controls.
    pub(super) fn guards_changed(node: &str, lane: &Lane) -> Self {
        Item::new(node, &lane.tenant, What::GuardsChanged { dependency: lane.dependency.to_string(), number: 0 })
    }

    /// A probe that a process sends to itself.
    pub(super) fn probe(node: &str, number: u64) -> Self {
        Item { node: Some(node.to_owned()), tenant: String::new(), what: What::Probe { number } }
    }

    fn new(node: &str, tenant: &TenantId, what: What) -> Self {
        Item { node: Some(node.to_owned()), tenant: tenant.to_string(), what }
    }

    pub(super) fn text(&self) -> String {
        serde_json::json!(self).to_string()
    }

    pub(super) fn is_from(&self, node: &str) -> bool {
        self.node.as_deref() == Some(node)
    }

    /// The number of a probe, if it is one.
    pub(super) fn probe_number(&self) -> Option<u64> {
        match self.what {
            What::Probe { number } => Some(number),
            What::Due { .. } | What::CancelRequested { .. } | What::GuardsChanged { .. } => None,
        }
    }

    /// The announcements of the item; none if it contains an invalid value.
    pub(super) fn read(self) -> Vec<Announcement> {
        let Ok(tenant) = TenantId::try_new(&self.tenant) else { return Vec::new() };
        match self.what {
            What::Due { dependency, due, class } => {
                let Ok(dependency) = Dependency::try_new(&dependency) else { return Vec::new() };
                let lane = Lane { tenant, dependency };
                let next_due = Some(Timestamp::from_millis(due));
                let classes: Vec<Class> = match (class, &self.node) {
                    (Some(code), _) => Class::from_code(code).into_iter().collect(),
                    (None, None) => vec![Class::First],
                    // An item of the previous version: it may be either class.
                    (None, Some(_)) => Class::ALL.to_vec(),
                };
                let news = |class| Announcement::Due(LaneDue { lane: lane.clone(), class, next_due });
                classes.into_iter().map(news).collect()
            }
            What::Probe { .. } => Vec::new(),
            What::GuardsChanged { dependency, .. } => {
                let dependency = Dependency::try_new(&dependency).ok();
                let news = dependency.map(|dependency| Announcement::GuardsChanged(Lane { tenant, dependency }));
                news.into_iter().collect()
            }
            What::CancelRequested { task } => {
                let id = task.parse().ok();
                id.map(|id| Announcement::CancelRequested(tenant, id)).into_iter().collect()
            }
        }
    }
}

/// The text of one notification: a JSON array that is not longer than PostgreSQL accepts.
#[derive(Default)]
pub(super) struct Text {
    items: String,
}

impl Text {
    /// Adds an item; returns `false` if there is no room for it. An item that fits into no notification is dropped, and
    /// its task is found by a scan.
    pub(super) fn push(&mut self, item: &Item) -> bool {
        let item = item.text();
        if !self.items.is_empty() && self.items.len() + item.len() + ",[]".len() > MAX_TEXT {
            return false;
        }
        if !self.items.is_empty() {
            self.items.push(',');
        }
        self.items.push_str(&item);
        true
    }

    pub(super) fn finish(self) -> Option<String> {
        (!self.items.is_empty()).then(|| format!("[{}]", self.items))
    }
}

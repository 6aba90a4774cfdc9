//! The two kinds of keys, and where each is stored.

use std::sync::LazyLock;

use crate::bulk::Bulk;
use crate::ops::meta::Name;

/// The table of one kind of keys, and the rows that they belong to.
#[derive(Debug)]
pub(crate) struct KeyTable {
    /// What the keys are of, for the log.
    pub(super) of: &'static str,
    /// Finds the rows of a hash.
    pub(crate) select: &'static str,
    /// Fills the table. A crash may have left some of the keys that are moved again: IGNORE.
    pub(super) insert: LazyLock<Bulk>,
    /// Removes the key with this hash of this row.
    pub(crate) delete: &'static str,
    /// All hashes.
    pub(super) hashes: &'static str,
    /// About how many hashes there are.
    pub(super) count: &'static str,
    /// The rows after a row, in order: each row's number, then the parts that its key consists of.
    pub(crate) rows_after: &'static str,
    pub(super) names: Names,
}

/// The numbers in `meta` about one table.
#[derive(Debug)]
pub(super) struct Names {
    pub(super) complete_up_to: Name,
    pub(super) moving_up_to: Name,
    pub(super) moved_before: Name,
}

/// The keys of tasks: tenant and idempotency key.
pub(crate) static OF_TASKS: KeyTable = KeyTable {
    of: "task",
    select: "SELECT task FROM keys WHERE hash = ?1",
    insert: LazyLock::new(|| Bulk::new("INSERT OR IGNORE INTO keys (hash, task)", 2)),
    delete: "DELETE FROM keys WHERE hash = ?1 AND task = ?2",
    hashes: "SELECT hash FROM keys",
    count: "SELECT coalesce(sum(tasks), 0) FROM task_counts",
    // CROSS, so that SQLite keeps the order of the loops.
    rows_after: "SELECT tasks.id, tenants.name, tasks.idempotency_key
         FROM tasks CROSS JOIN tenants ON tenants.id = tasks.tenant
         WHERE tasks.id > ?1
         ORDER BY tasks.id",
    names: Names {
        complete_up_to: Name::KeysCompleteUpTo,
        moving_up_to: Name::KeysMovingUpTo,
        moved_before: Name::KeysMovedBefore,
    },
};

/// The keys of idempotency records: tenant, operation and name.
pub(crate) static OF_RECORDS: KeyTable = KeyTable {
    of: "record",
    select: "SELECT record FROM record_keys WHERE hash = ?1",
    insert: LazyLock::new(|| Bulk::new("INSERT OR IGNORE INTO record_keys (hash, record)", 2)),
    delete: "DELETE FROM record_keys WHERE hash = ?1 AND record = ?2",
    hashes: "SELECT hash FROM record_keys",
    // Nothing counts them as they come and go, and all of them are read next anyway.
    count: "SELECT count(*) FROM record_keys",
    rows_after: "SELECT records.id, tenants.name, operations.name, records.name
         FROM records
         CROSS JOIN operations ON operations.id = records.operation
         CROSS JOIN tenants ON tenants.id = operations.tenant
         WHERE records.id > ?1
         ORDER BY records.id",
    names: Names {
        complete_up_to: Name::RecordKeysCompleteUpTo,
        moving_up_to: Name::RecordKeysMovingUpTo,
        moved_before: Name::RecordKeysMovedBefore,
    },
};

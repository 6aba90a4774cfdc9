//! The keys of a batch.

use redrive_core::idempotency::RecordKey;
use tokio_postgres::types::Type;

use crate::connection::Argument;

/// A key whose operation is written as text.
#[derive(Debug)]
pub(crate) struct EncodedKey {
    pub(crate) key: RecordKey,
    operation: String,
}

impl EncodedKey {
    pub(crate) fn new(key: RecordKey) -> Self {
        EncodedKey { operation: key.operation.to_string(), key }
    }

    pub(super) fn text(&self) -> TextKey<'_> {
        TextKey { tenant: self.key.tenant.as_str(), operation: &self.operation, name: self.key.name.as_str() }
    }
}

/// The three columns of a key. Sorted like the primary key, byte by byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TextKey<'a> {
    pub(super) tenant: &'a str,
    pub(super) operation: &'a str,
    pub(super) name: &'a str,
}

/// The different keys of a batch, in the order in which their rows are locked: the same in every transaction, so that
/// batches do not deadlock.
pub(super) struct Keys<'a>(Vec<TextKey<'a>>);

impl<'a> Keys<'a> {
    pub(super) fn of(keys: impl Iterator<Item = TextKey<'a>>) -> Self {
        let mut keys: Vec<_> = keys.collect();
        keys.sort_unstable();
        keys.dedup();
        Keys(keys)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The place of a key.
    pub(super) fn find(&self, key: TextKey<'_>) -> Option<usize> {
        self.0.binary_search(&key).ok()
    }

    /// The columns of the keys at these places.
    pub(super) fn columns(&self, places: impl Iterator<Item = usize>) -> KeyArrays<'a> {
        KeyArrays::of(places.map(|place| self.0[place]))
    }
}

/// Keys as the columns of a statement.
#[derive(Default)]
pub(super) struct KeyArrays<'a> {
    tenants: Vec<&'a str>,
    operations: Vec<&'a str>,
    names: Vec<&'a str>,
}

impl<'a> KeyArrays<'a> {
    pub(super) fn of(keys: impl Iterator<Item = TextKey<'a>>) -> Self {
        let mut columns = KeyArrays::default();
        for key in keys {
            columns.tenants.push(key.tenant);
            columns.operations.push(key.operation);
            columns.names.push(key.name);
        }
        columns
    }

    pub(super) fn arguments(&self) -> [Argument<'_>; 3] {
        [(&self.tenants, Type::TEXT_ARRAY), (&self.operations, Type::TEXT_ARRAY), (&self.names, Type::TEXT_ARRAY)]
    }
}

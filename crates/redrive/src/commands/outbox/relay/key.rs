//! Idempotency keys for rows that bring none.

use redrive_core::request::Fingerprinter;

/// How much of the fingerprint is in a key: 128 bits.
const BYTES: usize = 16;

/// Makes the keys of one table. They are the same after every restart, and different for different tables and
/// databases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Keys {
    prefix: String,
}

impl Keys {
    /// The keys of a table in a source with a given name: they stay the same when the database is moved.
    pub(super) fn named(source: &str, schema: &str, table: &str) -> Self {
        Keys::of_parts(&["named", source, schema, table])
    }

    /// Those of a table of a source without a name: a table that is made anew, or copied to another server, is another.
    pub(super) fn unnamed(system: &str, database: u32, table: u32) -> Self {
        Keys::of_parts(&["unnamed", system, &database.to_string(), &table.to_string()])
    }

    /// The key of the row with this id: `outbox-`, 32 hexadecimal digits, and the id, at most 60 characters.
    pub(super) fn of(&self, id: i64) -> String {
        format!("{}{id}", self.prefix)
    }

    fn of_parts(parts: &[&str]) -> Self {
        let print = parts.iter().fold(Fingerprinter::default(), |print, part| print.part(part.as_bytes())).hash();
        let digits: String = print[..BYTES].iter().map(|byte| format!("{byte:02x}")).collect();
        Keys { prefix: format!("outbox-{digits}-") }
    }
}

#[cfg(test)]
mod tests {
    use redrive_core::IdempotencyKey;

    use super::*;

    #[test]
    fn a_key_never_changes() {
        assert_eq!(Keys::named("shop", "app", "outbox").of(7), "outbox-8fbeed7aaa3e184a28c98b57124439b6-7");
        assert_eq!(
            Keys::unnamed("7412345678901234567", 16_384, 16_390).of(7),
            "outbox-0c6356dd521cbedc45d591458582ab7b-7"
        );
    }

    #[test]
    fn keys_differ_by_source_table_and_row_and_are_valid() {
        let makers = [
            Keys::named("shop", "app", "outbox"),
            Keys::named("shop", "app", "outbox2"),
            Keys::named("shop", "ap", "poutbox"),
            Keys::named("shop2", "app", "outbox"),
            Keys::unnamed("1", 2, 3),
            Keys::unnamed("1", 2, 4),
            Keys::unnamed("1", 3, 3),
            Keys::unnamed("2", 2, 3),
        ];
        let keys: std::collections::BTreeSet<_> =
            makers.iter().flat_map(|keys| [1, 11, i64::MIN, i64::MAX].map(|id| keys.of(id))).collect();
        assert_eq!(keys.len(), makers.len() * 4);
        for key in keys {
            assert!(IdempotencyKey::try_new(&key).is_ok(), "{key}");
        }
    }
}

//! Inserting many rows with few statements.
//!
//! Starting and finishing a statement, and finding the place of a row from the root of the tree, cost more than the row
//! itself. A statement with many rows pays for that once, and continues from row to row.

use rusqlite::{CachedStatement, Connection, ToSql};

use crate::sqlite_error::SqliteError;

/// Rows of the larger statement. More rows gain nothing.
const ROWS: usize = 16;

/// An INSERT in two sizes: for one row and for many.
#[derive(Debug)]
pub(crate) struct Bulk {
    one: String,
    many: String,
}

impl Bulk {
    /// `insert` is the statement up to VALUES; `columns` is the number of values of a row.
    ///
    /// The statement should name a conflict resolution other than ABORT, which keeps a copy of every page that it
    /// touches to be able to undo a part of the rows. Here the whole transaction is rolled back anyway: FAIL.
    pub(crate) fn new(insert: &str, columns: usize) -> Self {
        let row = format!("({})", vec!["?"; columns].join(", "));
        Bulk { one: format!("{insert} VALUES {row}"), many: format!("{insert} VALUES {}", vec![row; ROWS].join(", ")) }
    }

    /// Inserts the rows in their order; `bind` puts the values of one row.
    pub(crate) fn insert<T>(
        &self,
        connection: &Connection,
        rows: &[T],
        mut bind: impl FnMut(&mut Values<'_>, &T) -> rusqlite::Result<()>,
    ) -> Result<(), SqliteError> {
        let (chunks, rest) = rows.as_chunks::<ROWS>();
        if !chunks.is_empty() {
            let mut values = Values { statement: connection.prepare_cached(&self.many)?, bound: 0 };
            for chunk in chunks {
                chunk.iter().try_for_each(|row| bind(&mut values, row))?;
                values.execute()?;
            }
        }
        if !rest.is_empty() {
            let mut values = Values { statement: connection.prepare_cached(&self.one)?, bound: 0 };
            for row in rest {
                bind(&mut values, row)?;
                values.execute()?;
            }
        }
        Ok(())
    }
}

/// The values of a statement, put one after the other.
pub(crate) struct Values<'a> {
    statement: CachedStatement<'a>,
    bound: usize,
}

impl Values<'_> {
    pub(crate) fn put(&mut self, value: impl ToSql) -> rusqlite::Result<()> {
        self.bound += 1;
        self.statement.raw_bind_parameter(self.bound, value)
    }

    fn execute(&mut self) -> rusqlite::Result<()> {
        self.bound = 0;
        self.statement.raw_execute().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(connection: &Connection) -> Vec<(i64, Option<String>)> {
        let mut select = connection.prepare("SELECT n, text FROM numbers ORDER BY n").unwrap();
        select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn every_row_is_inserted_whatever_their_number() {
        for count in [0, 1, 15, 16, 17, 32, 100] {
            let connection = Connection::open_in_memory().unwrap();
            connection.execute_batch("CREATE TABLE numbers (n INTEGER PRIMARY KEY, text TEXT)").unwrap();
            let rows: Vec<i64> = (0..count).collect();
            let bulk = Bulk::new("INSERT OR FAIL INTO numbers (n, text)", 2);
            let text = |n: i64| (n % 3 > 0).then(|| n.to_string());
            bulk.insert(&connection, &rows, |values, n| {
                values.put(n)?;
                values.put(text(*n))
            })
            .unwrap();
            assert_eq!(numbers(&connection), rows.iter().map(|n| (*n, text(*n))).collect::<Vec<_>>(), "{count} rows");
        }
    }

    #[test]
    fn a_row_that_cannot_be_inserted_is_an_error() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE numbers (n INTEGER PRIMARY KEY, text TEXT)").unwrap();
        let bulk = Bulk::new("INSERT OR FAIL INTO numbers (n)", 1);
        for rows in [vec![7, 7], vec![8; 20]] {
            assert!(bulk.insert(&connection, &rows, |values, n: &i64| values.put(n)).is_err(), "{rows:?}");
        }
    }
}

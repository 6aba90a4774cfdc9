//! Reading rows by lane, page by page, past rows that cannot be read.

use redrive_core::Lane;
use tokio_postgres::Row;

use crate::codec::Cells;
use crate::ops::set_aside::Aside;
use crate::postgres_error::PostgresError;

/// The most pages that are read because some of their rows cannot be read.
const PAGES: usize = 20;

/// The rows that were read after a lane. A row that cannot be read is skipped, and is logged once.
pub(crate) struct LanePages<'a, T> {
    aside: &'a Aside,
    /// The kind of the rows in the log.
    kind: &'static str,
    after: LaneKey,
    limit: usize,
    pages_left: usize,
    read: Vec<T>,
}

/// A lane as stored in a table, readable or not. The next page begins after it.
#[derive(Default)]
pub(crate) struct LaneKey {
    pub(crate) tenant: String,
    pub(crate) dependency: String,
}

impl<'a, T> LanePages<'a, T> {
    pub(crate) fn new(aside: &'a Aside, kind: &'static str, after: Option<&Lane>, limit: usize) -> Self {
        let after = after.map_or(LaneKey::default(), |lane| LaneKey {
            tenant: lane.tenant.to_string(),
            dependency: lane.dependency.to_string(),
        });
        LanePages { aside, kind, after, limit, pages_left: PAGES, read: Vec::new() }
    }

    /// The lane after which the next page begins, and how many rows it may have; `None` after the last page.
    pub(crate) fn next(&self) -> Option<(&LaneKey, i64)> {
        let wanted = self.wanted();
        (wanted > 0 && self.pages_left > 0).then(|| (&self.after, i64::try_from(wanted).unwrap_or(i64::MAX)))
    }

    /// Adds a page. The first two columns are tenant and dependency.
    pub(crate) fn add(
        &mut self,
        rows: &[Row],
        read: impl Fn(&Row) -> Result<T, PostgresError>,
    ) -> Result<(), PostgresError> {
        // Unreadable rows are skipped: a page that is not full would look like the last one.
        let is_full = rows.len() == self.wanted();
        self.pages_left -= 1;
        for row in rows {
            match read(row) {
                Err(failure) if failure.is_about_a_value() => {
                    let LaneKey { tenant, dependency } = LaneKey::of(row)?;
                    self.aside.log_skipped(self.kind, &tenant, &dependency, &failure);
                }
                entry => self.read.push(entry?),
            }
        }
        match rows.last() {
            Some(last) if is_full => self.after = LaneKey::of(last)?,
            _ => self.pages_left = 0,
        }
        Ok(())
    }

    /// All that was read.
    pub(crate) fn finish(self) -> Vec<T> {
        self.read
    }

    fn wanted(&self) -> usize {
        self.limit - self.read.len()
    }
}

impl LaneKey {
    fn of(row: &Row) -> Result<Self, PostgresError> {
        let mut cells = Cells::of(row);
        Ok(LaneKey { tenant: cells.get()?, dependency: cells.get()? })
    }
}

//! The store: one writer, a few readers, and the calls that pass jobs to them.

use std::fmt;

use redrive_store::group_commit::GroupCommit;
use redrive_store::{Answers, Error, Liveness};

use crate::location::Location;
use crate::open::{OpenError, Parts, open};
use crate::ops::set_aside::{Damaged, set_aside};
use crate::options::Options;
use crate::pending_guards::PendingGuards;
use crate::readers::{Reader, Readers};
use crate::sqlite_error::SqliteError;
use crate::writer::Writer;

/// A store in one directory of this machine, owned by this process.
pub struct SqliteStore {
    pub(crate) writer: GroupCommit<Writer>,
    pub(crate) readers: Readers,
    pub(crate) liveness: Liveness,
    pub(crate) location: Location,
    pub(crate) guards: PendingGuards,
}

impl SqliteStore {
    /// Opens the store, or creates it if the directory has none. Blocks while it reads the newest idempotency keys.
    pub fn open(options: Options) -> Result<Self, OpenError> {
        let Parts { writer, readers, liveness, location, guards } = open(&options)?;
        Ok(SqliteStore { writer, readers, liveness, location, guards })
    }

    /// Runs a job on the writer, after all rows of its transaction have been written.
    pub(crate) async fn write<R: Send + 'static>(
        &self,
        doing: &'static str,
        mut job: impl FnMut(&mut Writer) -> Result<R, SqliteError> + Send + 'static,
    ) -> Result<R, Error> {
        self.gather(doing, move |writer| {
            writer.write_rows()?;
            job(writer)
        })
        .await
    }

    /// Reads, sets unreadable rows aside, and reads again, because these rows may have come before others.
    pub(crate) async fn read_around<R: Send + 'static>(
        &self,
        doing: &'static str,
        read: impl Fn(&mut Reader, &mut Vec<Damaged>) -> Result<R, SqliteError> + Clone + Send + 'static,
    ) -> Result<R, Error> {
        loop {
            let read = read.clone();
            let look = move |reader: &mut Reader| {
                let mut damaged = Vec::new();
                read(reader, &mut damaged).map(|found| (found, damaged))
            };
            let (found, damaged) = self.readers.run(doing, look).await?;
            if damaged.is_empty() {
                return Ok(found);
            }
            let aside = self.write("setting rows aside", move |writer| set_aside(&writer.connection, &damaged)).await;
            match aside {
                Ok(0) => return Ok(found),
                Ok(_) => {}
                // On a full disk, for example: the readable rows are still returned.
                Err(error) => {
                    tracing::warn!(%error, "rows that cannot be understood could not be set aside");
                    return Ok(found);
                }
            }
        }
    }

    /// Changes tasks one by one in one transaction. A row that cannot be read fails only its own task.
    pub(crate) async fn change_each<T: Send + 'static, R: Send + 'static>(
        &self,
        doing: &'static str,
        tasks: Vec<T>,
        change: impl Fn(&mut Writer, &T) -> Result<R, SqliteError> + Send + 'static,
    ) -> Result<Answers<R>, Error> {
        self.write(doing, move |writer| answer_each(writer, doing, &tasks, &change)).await
    }

    /// Changes idempotency records one by one in one transaction, in their order, before the rows of its tasks are
    /// written. A row that cannot be read fails only its own record.
    pub(crate) async fn change_records<T: Send + 'static, R: Send + 'static>(
        &self,
        doing: &'static str,
        records: Vec<T>,
        change: impl Fn(&mut Writer, &T) -> Result<R, SqliteError> + Send + 'static,
    ) -> Result<Answers<R>, Error> {
        self.gather(doing, move |writer| answer_each(writer, doing, &records, &change)).await
    }

    /// Runs a job on the writer that handles rows which are not written yet.
    pub(crate) async fn gather<R: Send + 'static>(
        &self,
        doing: &'static str,
        mut job: impl FnMut(&mut Writer) -> Result<R, SqliteError> + Send + 'static,
    ) -> Result<R, Error> {
        self.writer.run(move |writer| job(writer).map_err(|failure| failure.into_error(doing))).await
    }
}

pub(crate) fn answer_each<T, R>(
    writer: &mut Writer,
    doing: &str,
    items: &[T],
    change: impl Fn(&mut Writer, &T) -> Result<R, SqliteError>,
) -> Result<Answers<R>, SqliteError> {
    let answer = |item| match change(writer, item) {
        Err(failure) if failure.is_about_a_value() => Ok(Err(failure.into_error(doing))),
        outcome => outcome.map(Ok),
    };
    items.iter().map(answer).collect()
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("writer", &self.writer).finish_non_exhaustive()
    }
}

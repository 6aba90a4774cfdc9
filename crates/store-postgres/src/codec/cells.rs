//! A cursor over the cells of a row, which names the column of a value that cannot be read.

use std::time::Duration;

use redrive_core::{Class, Timestamp};
use redrive_store::Token;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use super::Uuid;
use crate::postgres_error::PostgresError;

/// The cells of a row, from left to right.
pub(crate) struct Cells<'a> {
    row: &'a Row,
    next: usize,
}

impl<'a> Cells<'a> {
    pub(crate) fn of(row: &'a Row) -> Self {
        Cells::from(row, 0)
    }

    /// The cells from this column on.
    pub(crate) fn from(row: &'a Row, next: usize) -> Self {
        Cells { row, next }
    }

    pub(crate) fn get<T: FromSql<'a>>(&mut self) -> Result<T, PostgresError> {
        let column = self.next;
        self.next += 1;
        self.row.try_get(column).map_err(|error| self.place(column, error))
    }

    pub(crate) fn unsigned(&mut self) -> Result<u64, PostgresError> {
        let number: i64 = self.get()?;
        u64::try_from(number).map_err(|_| self.wrong(format_args!("{number} is below zero")))
    }

    pub(crate) fn optional_unsigned(&mut self) -> Result<Option<u64>, PostgresError> {
        let number: Option<i64> = self.get()?;
        let convert = |number| u64::try_from(number).map_err(|_| self.wrong(format_args!("{number} is below zero")));
        number.map(convert).transpose()
    }

    /// A number that fits into a narrower type.
    pub(crate) fn narrow<T: TryFrom<i64>>(&mut self) -> Result<T, PostgresError> {
        let number: i64 = self.get()?;
        T::try_from(number).map_err(|_| self.wrong(format_args!("{number} is too large")))
    }

    pub(crate) fn optional_narrow<T: TryFrom<i64>>(&mut self) -> Result<Option<T>, PostgresError> {
        let number: Option<i64> = self.get()?;
        number
            .map(|number| T::try_from(number).map_err(|_| self.wrong(format_args!("{number} is too large"))))
            .transpose()
    }

    pub(crate) fn timestamp(&mut self) -> Result<Timestamp, PostgresError> {
        self.unsigned().map(Timestamp::from_millis)
    }

    pub(crate) fn optional_timestamp(&mut self) -> Result<Option<Timestamp>, PostgresError> {
        Ok(self.optional_unsigned()?.map(Timestamp::from_millis))
    }

    pub(crate) fn optional_micros(&mut self) -> Result<Option<Duration>, PostgresError> {
        Ok(self.optional_unsigned()?.map(Duration::from_micros))
    }

    /// A text that `parse` must accept.
    pub(crate) fn parsed<T>(&mut self, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, PostgresError> {
        let text: &str = self.get()?;
        parse(text).ok_or_else(|| self.wrong(format_args!("{text:?}")))
    }

    pub(crate) fn optional_parsed<T>(
        &mut self,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, PostgresError> {
        let text: Option<&str> = self.get()?;
        text.map(|text| parse(text).ok_or_else(|| self.wrong(format_args!("{text:?}")))).transpose()
    }

    pub(crate) fn class(&mut self) -> Result<Class, PostgresError> {
        let code: i16 = self.get()?;
        let known = u8::try_from(code).ok().and_then(Class::from_code);
        known.ok_or_else(|| self.wrong(format_args!("class {code}")))
    }

    /// A token that can still be incremented.
    pub(crate) fn token(&mut self) -> Result<Token, PostgresError> {
        let token = self.unsigned()?;
        match token == i64::MAX.cast_unsigned() {
            true => Err(self.wrong(format_args!("token {token} has no successor"))),
            false => Ok(Token(token)),
        }
    }

    pub(crate) fn task_id(&mut self) -> Result<redrive_core::TaskId, PostgresError> {
        let id: Uuid = self.get()?;
        id.task_id().ok_or_else(|| self.wrong("is no task id"))
    }

    /// A failure about the cell that was read last.
    pub(crate) fn wrong(&self, what: impl std::fmt::Display) -> PostgresError {
        self.place(self.next.saturating_sub(1), what)
    }

    fn place(&self, column: usize, what: impl std::fmt::Display) -> PostgresError {
        let name = self.row.columns().get(column).map_or("?", |column| column.name());
        PostgresError::corrupt(format_args!("column {name}"), what)
    }
}

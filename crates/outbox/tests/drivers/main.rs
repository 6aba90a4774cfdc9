//! Tests of both drivers against a real server, with one suite.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

mod driver;
mod records;
mod suite;
mod world;

/// Makes a test of this driver from each fact of the suite.
macro_rules! facts_hold_for {
    ($driver:ident: $($fact:ident)*) => {
        $(#[tokio::test]
        async fn $fact() {
            #[allow(unused_imports, reason = "each fact is in one of them")]
            use crate::{records::*, suite::*};
            $fact::<crate::driver::$driver>().await;
        })*
    };
}

macro_rules! facts {
    ($($fact:ident)*) => {
        mod tokio_postgres {
            facts_hold_for!(TokioPostgres: $($fact)*);
        }
        mod sqlx {
            facts_hold_for!(Sqlx: $($fact)*);
        }
    };
}

facts! {
    the_task_exists_if_and_only_if_the_transaction_commits
    what_is_enqueued_is_what_will_be_sent
    what_is_left_out_has_a_default
    the_same_key_and_request_is_the_same_task
    what_is_refused_has_its_own_error_and_the_servers_words
    a_database_without_the_schema_is_the_drivers_error
    an_operation_takes_place_if_and_only_if_its_transaction_commits
    a_result_is_replayed_as_it_was_given
    another_execution_is_told_about_the_one_before
    an_execution_that_does_not_own_the_record_has_its_own_errors
    an_event_is_new_until_the_transaction_that_saw_it_commits
}

/// A task on a multi-threaded runtime can enqueue.
#[allow(dead_code, reason = "that it compiles is the fact")]
fn futures_may_move_between_threads(
    transaction: &::tokio_postgres::Transaction<'_>,
    connection: &mut ::sqlx::PgConnection,
    enqueue: &redrive_outbox::Enqueue,
    reserve: &redrive_outbox::Reserve,
) {
    fn may_move(_: impl Send) {}
    may_move(redrive_outbox::tokio_postgres::enqueue(transaction, enqueue));
    may_move(redrive_outbox::sqlx::enqueue(connection, enqueue));
    may_move(redrive_outbox::tokio_postgres::reserve(transaction, reserve));
    may_move(redrive_outbox::sqlx::reserve(connection, reserve));
}

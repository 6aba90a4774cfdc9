//! The conformance suite: facts that hold for every store, as tests that every implementation runs.
//!
//! An implementation passes a function that makes a fresh store and gets one `#[tokio::test]` per fact, so that a
//! failure names what is not true:
//!
//! ```ignore
//! async fn fresh() -> Fresh {
//!     let directory = tempfile::tempdir().unwrap();
//!     let store = SqliteStore::open(directory.path()).await.unwrap();
//!     Fresh::keeping(store, directory)
//! }
//!
//! redrive_store::conformance!(fresh);
//! ```
//!
//! The calling crate needs tokio (`macros`, `rt`) among its dev-dependencies. The facts are also plain functions, in
//! [`facts`]. A durable store compares its contents before and after a reopen with [`workload::run`] and
//! [`snapshot()`]; [`samples`] makes tasks and settlements for such tests.
//!
//! [`shared_guards`] is the suite of [`SharedGuards`](crate::SharedGuards), which only a store for several processes
//! has.
//!
//! Nothing here sleeps or reads the clock: times are numbers that are passed in.
//!
//! Not here: power loss, full disks, several processes. Those need a store's own tests.

#![allow(clippy::unwrap_used, reason = "this is a test suite: an error that is not expected fails the test")]

mod blobs;
mod guards;
mod model;
mod policies;
mod reads;
mod records;
pub mod samples;
pub mod shared_guards;
mod snapshot;
mod tasks;
mod upkeep;
mod whole;
pub mod workload;

use std::any::Any;
use std::fmt;
use std::ops::Deref;

pub use snapshot::{Snapshot, TenantSnapshot, snapshot};

use crate::Store;
pub(crate) use blobs::interleave;
use blobs::objects;
use reads::{backlogs, content, list};
use records::{keeping, lists, lives, owners};
use tasks::{cancel, claim, classes, dns, horizon, replay, rooms, settle, submit, suppress};
use upkeep::{alerts, clean, expired, lanes, overdue};

/// A new store, with everything that must live as long as it does: a temporary directory, a database.
pub struct Fresh {
    store: Box<dyn Store>,
    _kept: Box<dyn Any + Send>,
}

impl Fresh {
    /// A store that depends on nothing else.
    pub fn new(store: impl Store) -> Self {
        Fresh::keeping(store, ())
    }

    /// A store that depends on `kept`, which is dropped after it.
    pub fn keeping(store: impl Store, kept: impl Any + Send) -> Self {
        Fresh { store: Box::new(store), _kept: Box::new(kept) }
    }
}

impl Deref for Fresh {
    type Target = dyn Store;

    fn deref(&self) -> &dyn Store {
        &*self.store
    }
}

impl fmt::Debug for Fresh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fresh").finish_non_exhaustive()
    }
}

/// One `#[tokio::test]` for each fact. `make` is an async function without arguments that returns a [`Fresh`] store.
#[macro_export]
macro_rules! conformance {
    ($make:expr) => {
        $crate::__for_each_fact! { $crate::__conformance_tests, $make }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_tests {
    ($make:expr, $($module:ident { $($fact:ident)* })*) => {
        $($(
            #[::tokio::test]
            async fn $fact() {
                let fresh: $crate::conformance::Fresh = ($make)().await;
                $crate::conformance::facts::$fact(&*fresh).await;
            }
        )*)*
    };
}

macro_rules! public_facts {
    ($make:expr, $($module:ident { $($fact:ident)* })*) => {
        /// Every fact, as a function that panics if the fact does not hold. Each needs a fresh store.
        #[allow(missing_docs, reason = "their names say it")]
        pub mod facts {
            use crate::Store;
            $($(
                pub async fn $fact(store: &dyn Store) {
                    super::$module::$fact(store).await;
                }
            )*)*
        }
    };
}

/// The list of facts. The compiler reports a fact that is missing here as dead code.
#[doc(hidden)]
#[macro_export]
macro_rules! __for_each_fact {
    ($then:path, $make:expr) => {
        $then! {
            $make,
            submit {
                a_submitted_task_is_found_as_it_was_given
                a_key_leads_to_its_task_as_it_is_now
                a_task_that_starts_claimed_counts_its_first_attempt
                a_task_that_starts_claimed_is_not_pending_for_anybody
                the_same_key_and_request_is_answered_with_the_task_as_it_is_now
                the_same_key_with_another_request_is_refused_and_changes_nothing
                a_key_belongs_to_the_tenant_and_not_to_the_dependency
                the_same_key_of_two_tenants_is_two_tasks
                keys_are_compared_exactly
                keys_are_compared_within_one_call
                a_key_whose_fingerprint_has_another_version_is_answered_with_it
                a_batch_of_a_thousand_keeps_each_key_once_and_answers_in_order
                a_task_whose_policy_version_is_missing_is_refused_alone
                a_refused_task_does_not_take_its_key
                a_taken_key_is_answered_even_if_the_policy_is_gone
                a_superseded_policy_version_that_a_task_refers_to_still_takes_tasks
                tasks_may_arrive_in_any_order_of_their_ids
                an_empty_call_is_an_empty_answer
            }
            claim {
                a_claim_counts_the_attempt_and_leases_the_task
                a_lease_lasts_for_the_attempts_timeout_and_the_margin
                the_earliest_due_come_first_whatever_their_ids
                a_task_is_claimed_from_its_due_moment_on_and_not_before
                a_claim_takes_no_more_than_the_room
                a_lane_without_room_is_left_alone_and_still_says_when_it_is_due
                a_lane_that_is_not_asked_is_left_alone
                every_lane_asked_is_answered_in_order_with_what_is_left
                a_task_in_flight_is_not_claimed_again
                an_ended_task_is_not_claimed_again
                a_retry_is_claimed_once_it_is_due
                tokens_grow_with_every_claim
                the_first_token_is_1_however_the_task_began
            }
            classes {
                a_claim_takes_only_the_class_that_was_asked_for
                a_thousand_retries_do_not_hide_a_first_attempt
                a_thousand_first_attempts_do_not_hide_a_retry
                each_class_has_the_order_of_its_own_due_times
                a_failed_attempt_moves_its_task_to_the_retries
                a_task_given_back_unsent_returns_to_its_class
                a_replayed_task_begins_among_the_first_attempts
                a_task_that_is_brought_forward_stays_in_its_class
                a_cancelled_task_is_in_no_class
            }
            rooms {
                a_room_takes_its_slots_and_what_is_ahead_of_them
                a_room_may_be_larger_than_any_backlog
                rooms_are_served_in_their_order_until_the_most_is_claimed
                a_last_attempt_is_claimed_only_into_a_slot_and_ends_the_room_otherwise
                tasks_with_a_single_attempt_are_never_claimed_ahead
                the_last_attempt_of_every_run_needs_a_slot
                a_last_attempt_that_ends_its_room_does_not_end_the_others
            }
            horizon {
                a_task_is_claimed_before_it_is_due_if_it_is_due_by_the_horizon
                a_horizon_in_the_past_claims_what_was_due_then
                a_lease_runs_from_the_later_of_the_claim_and_the_due_time
                a_task_that_starts_claimed_before_it_is_due_has_a_lease_from_its_due_time
                a_task_claimed_early_and_given_back_is_due_when_it_was
            }
            settle {
                a_success_ends_the_task
                a_retry_waits_for_its_next_attempt
                each_end_keeps_its_status_and_reason
                a_settle_with_a_stale_token_changes_nothing
                a_task_that_is_not_in_flight_cannot_be_settled
                a_task_ends_exactly_once
                of_two_settlements_in_one_call_the_first_wins
                a_settlement_of_another_tenants_task_or_of_none_changes_nothing
                settlements_are_answered_in_order
                an_attempt_that_was_never_sent_is_taken_back
                a_task_can_end_without_its_attempt_having_been_sent
                the_last_error_stays_until_another_one_comes
                a_settlement_replaces_the_drawn_backoff
                an_expired_lease_still_counts_if_it_was_not_taken_over
                the_attempt_log_keeps_every_field
                attempts_are_read_page_by_page
                only_its_tenant_reads_a_tasks_attempts
            }
            dns {
                the_number_of_dns_failures_is_carried_to_the_next_attempt
                an_attempt_given_back_unsent_keeps_the_number_of_dns_failures
                a_task_keeps_the_number_of_dns_failures_until_it_is_replayed
            }
            cancel {
                a_pending_task_is_cancelled_at_once
                a_task_between_two_attempts_is_cancelled_at_once
                a_task_in_flight_is_only_marked
                a_marked_task_is_cancelled_when_its_attempt_ends_without_success
                a_marked_task_that_succeeds_has_succeeded
                an_ended_task_cannot_be_cancelled
                a_later_due_task_is_brought_forward_to_now
                a_task_that_is_due_earlier_keeps_its_place
                a_task_in_flight_or_ended_is_not_brought_forward
                a_tenant_cannot_cancel_or_bring_forward_tasks_of_another
                many_tasks_are_cancelled_in_one_call_and_answered_in_order
                many_tasks_are_brought_forward_in_one_call_and_answered_in_order
            }
            replay {
                a_replayed_dead_letter_is_due_now_in_a_new_run
                both_kinds_of_dead_letter_are_replayed
                attempt_numbers_and_tokens_go_on_growing_over_runs
                every_run_has_its_whole_number_of_attempts_and_its_whole_time
                a_replayed_task_may_succeed_and_leaves_no_trace_of_its_failure_but_its_log
                a_replayed_task_that_ends_without_an_answer_has_none
                what_is_no_dead_letter_is_not_replayed
                a_dead_letter_is_replayed_once_until_it_is_one_again
                a_tenant_cannot_replay_tasks_of_another
                a_worker_of_an_earlier_run_settles_nothing
                a_replayed_task_keeps_its_key
                a_replayed_task_is_not_cleaned_away
                counts_and_lists_follow_a_replay
                a_replayed_task_can_be_cancelled
                a_replayed_task_pins_its_policy_again
                a_dead_letter_whose_policy_was_deleted_stays_one
                many_dead_letters_are_replayed_in_one_call_and_answered_in_order
            }
            suppress {
                a_suppressed_retry_ends_exhausted_and_keeps_the_record_of_its_attempts
                only_a_task_that_waits_with_this_number_of_attempts_is_suppressed
                a_suppressed_task_is_an_unannounced_dead_letter
                a_suppressed_task_is_replayed_and_may_be_suppressed_again
                a_suppressed_task_no_longer_pins_its_policy_and_keeps_its_key
                a_suppressed_task_is_cleaned_away_with_its_note
                many_tasks_are_suppressed_in_one_call_and_answered_in_order
                of_many_callers_at_once_one_suppresses
            }
            lanes {
                a_pending_lane_says_when_its_earliest_task_is_due
                each_class_of_a_lane_says_when_its_earliest_task_is_due
                a_lane_with_no_pending_task_is_absent_until_it_has_one
                lanes_come_by_tenant_and_then_by_dependency_in_byte_order
                lanes_are_paged_class_by_class
                lanes_go_on_after_one_that_is_no_longer_there
                a_large_backlog_in_one_lane_does_not_hide_the_others
            }
            expired {
                a_lease_is_found_from_its_end_on_just_as_it_was_given
                looking_for_expired_leases_changes_nothing
                a_task_that_started_claimed_expires_like_any_other
                only_tasks_in_flight_have_leases
                a_new_claim_has_a_new_lease
                expired_leases_of_all_tenants_are_found_up_to_the_limit
                whoever_settles_an_expired_lease_first_wins
                a_marked_task_whose_worker_died_is_cancelled_by_the_rescuer
            }
            overdue {
                a_pending_task_ends_exhausted_at_its_deadline_without_an_attempt
                an_overdue_retry_keeps_the_record_of_its_attempts
                overdue_tasks_end_earliest_deadline_first_up_to_the_limit
                a_task_in_flight_is_not_ended_by_its_deadline
                an_ended_task_is_not_ended_again_by_its_deadline
                a_task_that_was_brought_forward_keeps_its_deadline
                an_overdue_task_is_an_unannounced_dead_letter
                an_overdue_task_keeps_its_key
                an_overdue_task_is_replayed_with_its_whole_time
                an_overdue_task_no_longer_pins_its_policy
                an_overdue_task_is_cleaned_away_with_its_note
            }
            alerts {
                a_dead_letter_is_unannounced_until_its_alert_is_confirmed
                only_dead_letters_are_to_be_announced
                a_settle_that_changes_nothing_announces_nothing
                what_ended_first_is_announced_first_up_to_the_limit
                a_tenant_cannot_confirm_alerts_of_another
                a_replay_makes_an_alert_needless_and_the_next_end_needs_one_of_its_own
                a_replay_of_what_was_announced_is_announced_again
                a_task_that_is_cleaned_away_is_not_announced
            }
            clean {
                an_old_ended_task_goes_with_all_that_belongs_to_it
                a_task_is_old_if_it_ended_before_the_moment_and_not_at_it
                a_live_task_is_never_cleaned_away
                a_pass_goes_in_steps_and_reaches_everything
                the_first_step_begins_with_the_oldest
                the_newest_id_outlives_its_task
                the_current_version_of_a_policy_is_never_cleaned_away
            }
            list {
                tasks_are_listed_newest_first_page_by_page
                a_listed_task_comes_with_its_request_and_its_answer
                a_list_is_narrowed_by_status
                a_list_is_narrowed_by_the_beginning_of_the_ids
                the_dead_letters_are_the_failed_and_the_exhausted
                a_list_is_narrowed_by_dependency
                a_list_is_narrowed_by_policy_whatever_its_version
                a_list_is_narrowed_by_all_of_the_labels_exactly
                a_list_is_narrowed_by_acceptance_from_inclusive_to_exclusive
                filters_narrow_together
                a_rare_match_is_found_however_many_tasks_are_in_between
                a_tenant_cannot_list_or_read_tasks_of_another
                an_id_that_differs_only_in_its_random_part_is_no_task
                counts_follow_every_step_of_a_life
            }
            backlogs {
                a_backlog_is_what_is_due_and_what_is_due_later
                a_backlog_has_both_classes
                only_pending_tasks_are_in_a_backlog
                a_backlog_is_counted_up_to_the_bound
                backlogs_are_answered_in_order_whatever_lanes_are_asked_for
                old_retries_are_those_of_tasks_that_were_accepted_before
            }
            content {
                every_attempt_gets_the_same_body_byte_for_byte
                a_body_of_a_mebibyte_is_kept_whole
                header_fields_keep_their_order_their_case_and_their_repeats
                target_and_method_are_kept_as_given
                overrides_are_kept_as_given_also_empty_ones
                labels_of_any_script_are_kept
                an_answer_is_kept_whole
                a_task_may_end_without_an_answer
                an_error_message_is_kept_as_it_is
                numbers_are_kept_to_their_ends
            }
            policies {
                another_spec_is_the_next_version_and_the_same_spec_is_none
                a_policy_is_kept_with_every_field
                a_put_that_expects_something_else_changes_nothing
                policies_are_listed_in_byte_order_with_their_current_version
                a_policy_belongs_to_its_tenant
                a_deleted_policy_is_gone
                a_delete_that_expects_something_else_changes_nothing
                a_policy_that_live_tasks_pin_cannot_be_deleted
                only_the_tenants_own_tasks_pin_its_policy
                a_version_number_is_never_used_twice
            }
            objects {
                content_that_is_adopted_twice_is_one_blob
                a_blob_belongs_to_its_tenant
                a_task_with_a_stored_body_is_kept_as_it_was_given
                a_task_refers_only_to_a_blob_that_is_kept
                a_taken_key_is_answered_even_if_the_blob_is_gone
                a_blob_that_a_task_refers_to_is_not_condemned_until_the_task_is_cleaned_away
                a_blob_that_no_task_refers_to_stays_for_a_while_after_its_last_adoption
                a_condemned_blob_is_named_until_it_is_forgotten
                what_is_not_condemned_is_not_forgotten
                content_that_was_condemned_comes_back_as_another_copy
                an_answer_keeps_its_blob_until_its_task_is_cleaned_away
                of_an_answer_whose_blob_is_gone_the_rest_is_kept
                a_replay_lets_go_of_the_answers_blob_and_not_of_the_bodys
                a_pass_over_blobs_goes_in_steps_and_reaches_every_one
            }
            interleave {
                no_order_of_upload_submit_and_collection_loses_a_body
            }
            owners {
                a_record_has_one_owner_until_its_lease_is_over
                an_owner_that_was_replaced_changes_nothing
                a_call_that_is_repeated_is_answered_like_the_first
                an_execution_that_failed_lets_the_next_one_try
                a_renewed_lease_is_longer
                a_record_that_was_released_is_absent_and_its_epochs_go_on
                another_request_with_the_same_key_learns_and_changes_nothing
                a_reservation_may_be_complete_at_once
                items_of_one_call_are_decided_in_order
                a_thousand_records_are_reserved_in_one_call
                the_results_in_one_answer_have_a_bounded_number_of_bytes
                of_many_callers_at_once_one_owns_the_record
            }
            keeping {
                a_result_is_replayed_as_it_was_given
                numbers_of_a_record_are_kept_to_their_ends
                keys_of_records_are_compared_exactly
                a_record_expires_at_its_time_whether_or_not_it_was_cleaned
                records_that_have_expired_are_cleaned_in_steps
                a_record_is_deleted_only_if_it_is_the_one_that_was_seen
                a_response_keeps_its_blob_until_its_record_is_gone
                a_response_refers_only_to_a_blob_that_is_kept
            }
            lists {
                every_present_record_is_on_one_page
                a_list_of_records_is_narrowed_by_operation_state_and_age
                records_are_counted_by_operation_and_state_up_to_the_bound
            }
            lives {
                random_lives_of_records_end_as_the_pure_functions_say
            }
            guards {
                the_controls_of_a_lane_are_kept_with_every_field
                controls_are_replaced_as_a_whole_and_removed_when_they_are_empty
                controls_are_replaced_only_if_they_are_the_expected_ones
                of_many_writers_at_once_none_loses_its_change_of_controls
                controls_belong_to_one_lane_of_one_tenant
                controls_are_listed_by_tenant_and_dependency_in_byte_order_page_by_page
                a_list_of_controls_goes_on_after_a_lane_that_has_none
                only_a_store_with_one_owner_keeps_states_of_guards
                a_state_of_guards_is_kept_by_the_next_call_that_changes_something
                a_later_state_of_guards_replaces_an_earlier_one
                a_lane_whose_state_is_none_has_no_kept_state
                states_of_guards_are_read_by_tenant_and_dependency_in_byte_order_page_by_page
            }
            whole {
                a_fresh_store_is_empty_and_can_be_written_to
                a_call_by_itself_is_counted_as_one_commit
                the_newest_task_is_the_highest_id_ever_kept
                a_closed_store_says_so_to_every_call
                of_many_callers_at_once_one_gets_the_key_that_all_want
                no_two_callers_claim_the_same_task
                of_many_callers_at_once_one_settles
            }
            workload {
                a_long_random_life_ends_as_the_model_says
            }
        }
    };
}

__for_each_fact! { public_facts, () }

//! Facts about the guards that several processes share.
//!
//! An implementation passes a function that makes fresh guards and gets one `#[tokio::test]` per fact:
//!
//! ```ignore
//! async fn fresh_guards() -> FreshGuards {
//!     FreshGuards::new(MemorySharedGuards::default())
//! }
//!
//! redrive_store::shared_guards_conformance!(fresh_guards);
//! ```
//!
//! Not here: announcements, which need two processes.

#[allow(missing_docs, reason = "their names say it")]
pub mod facts;

use std::fmt;

use crate::conformance::Fresh;
use crate::conformance::samples::at;
use crate::{GuardKey, SharedGuards, StateChange, VersionedState};

/// Shared guards without states, with everything that must live as long as they do.
pub struct FreshGuards(Owner);

enum Owner {
    Guards(Box<dyn SharedGuards>),
    Store(Fresh),
}

impl FreshGuards {
    /// Guards that depend on nothing else.
    pub fn new(guards: impl SharedGuards + 'static) -> Self {
        FreshGuards(Owner::Guards(Box::new(guards)))
    }

    /// The guards of a fresh store that several processes share.
    pub fn of(store: Fresh) -> Self {
        FreshGuards(Owner::Store(store))
    }

    /// The guards.
    pub fn guards(&self) -> &dyn SharedGuards {
        match &self.0 {
            Owner::Guards(guards) => &**guards,
            Owner::Store(store) => store.shared().unwrap().guards(),
        }
    }
}

impl fmt::Debug for FreshGuards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FreshGuards").finish_non_exhaustive()
    }
}

/// One `#[tokio::test]` for each fact about shared guards. `make` is an async function without arguments that returns
/// [`FreshGuards`](crate::conformance::shared_guards::FreshGuards).
#[macro_export]
macro_rules! shared_guards_conformance {
    ($make:expr) => {
        $crate::__shared_guards_tests! {
            $make,
            a_state_is_made_once_and_replaced_by_its_version
            the_version_of_a_state_grows_and_is_never_used_again
            of_many_changes_each_succeeds_or_fails_alone_and_in_order
            of_many_writers_at_once_one_replaces_a_state
            writers_of_the_same_keys_in_other_orders_lose_no_change
            lanes_and_origins_of_the_same_name_and_of_other_tenants_have_states_of_their_own
            names_and_states_are_kept_whatever_characters_they_have
            lanes_that_are_not_closed_are_listed_in_byte_order_page_by_page
            a_list_of_lanes_has_them_as_they_are_now
            only_expired_states_are_deleted_and_no_more_than_asked_for
            a_call_without_keys_changes_nothing
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __shared_guards_tests {
    ($make:expr, $($fact:ident)*) => {
        $(
            #[::tokio::test]
            async fn $fact() {
                let fresh: $crate::conformance::shared_guards::FreshGuards = ($make)().await;
                $crate::conformance::shared_guards::facts::$fact(fresh.guards()).await;
            }
        )*
    };
}

/// Later than every state here expires, unless a test says otherwise.
const LATE: u64 = 1_000_000;

/// A change that makes or replaces the state of a lane whose breaker is closed.
pub fn change(key: GuardKey, expected: Option<u64>, state: &str) -> StateChange {
    StateChange { key, expected, state: state.to_owned(), is_closed: true, is_announced: false, expires_at: at(LATE) }
}

/// Makes or replaces one state; returns its version.
pub async fn replace_one(guards: &dyn SharedGuards, change: StateChange) -> Option<u64> {
    let [version] = guards.replace(vec![change]).await.unwrap()[..] else { panic!("one answer for one change") };
    version
}

/// The state of one key.
pub async fn read_one(guards: &dyn SharedGuards, key: GuardKey) -> Option<VersionedState> {
    let states: [_; 1] = guards.read(vec![key]).await.unwrap().try_into().unwrap();
    states.into_iter().next().unwrap()
}

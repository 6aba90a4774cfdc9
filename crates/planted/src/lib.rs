//! Planted bugs: known mistakes in the source, to show that the simulator finds them.
//!
//! The product does not contain them. Each bug is a record in `bugs/*.toml`: a piece of the source and its wrong
//! replacement. `cargo xtask sim --planted` writes a copy of the tree that has all of them, each behind its switch,
//! builds the simulator there once, and switches on one bug after the other.
//!
//! | file | content |
//! | --- | --- |
//! | `record` | reads the records |
//! | `apply` | applies every bug to the source of the tree |
//! | `copy` | writes the copy of the tree that is built |
//! | `switch` | which bug is on, in that copy |
//!
//! Not here: finding them (`crates/sim`).

mod apply;
mod copy;
mod record;
mod switch;

pub use apply::{Mismatch, apply};
pub use copy::{CopyError, write_copy};
pub use record::{Bug, Edit, Found, Unreadable, all, named, read};
pub use switch::{Planted, is, plant};

/// Whether this is the copy of the tree that has the bugs.
pub const IS_PLANTED: bool = false;

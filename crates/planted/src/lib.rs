//! Bugs that are planted on purpose, so that the simulator can show that it finds them.
//!
//! The product knows nothing of them. Each bug is a record in `bugs/*.toml`: a piece of the source and what a mistake would
//! make of it. `cargo xtask sim --planted` writes a copy of the tree that has all of them, each behind its switch, builds
//! the simulator there once, and switches on one bug after the other.
//!
//! | file | what it is |
//! | --- | --- |
//! | `record` | the records, as they are read |
//! | `apply` | the source of the tree with every bug in it |
//! | `copy` | the copy of the tree that is built |
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

//! The health of deliveries: five figures over the tasks that ended in the last hour, and what each value means.
//!
//! [`Tally`] counts tasks as they end, [`Window`] keeps the tallies of the last hour, and [`Thresholds::judge`] says for each
//! [`Figure`] whether it is usual, and why, in words.
//!
//! Not here: who counts and who asks (`redrive-server`), what is done about a bad figure (alerts).

mod figure;
mod tally;
mod window;

pub use figure::{Assessment, Bounds, Figure, Health, Thresholds};
pub use tally::Tally;
pub use window::Window;

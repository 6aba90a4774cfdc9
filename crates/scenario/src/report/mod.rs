//! The report: a comparison, or the contention model's numbers, as one page that needs nothing else.
//!
//! The page is HTML that is well-formed XML as well, with its style and its pictures (SVG) inside. It has no script and
//! loads nothing. Every picture says in words what it shows, and has its numbers in a table beside it.
//!
//! It is written by hand and not with `maud`, which the API's reference uses: maud closes no void element (`<br>`,
//! `<line …>`) and lets control characters through, and neither is well-formed XML.
//!
//! - `page` and `contention`: the two pages, section by section.
//! - `lead`, `calls`, `verdict`, `waiting`, `completion`, `policies`, `notes`: a section each.
//! - `figure`, `picture`, `plot`, `curves`, `steps`, `labels`: what pictures are made of.
//! - `scale`, `ticks`: from values to places, and which values are written at an axis.
//! - `table`, `text`, `number`: words and numbers; how a number is written is decided in one place.
//! - `palette`: the colours, and how to tell contenders apart without them.
//!
//! Not here: where the page is written to, the current day and the command line; the caller passes those.

mod calls;
mod completion;
mod contention;
mod curves;
mod figure;
mod labels;
mod lead;
mod notes;
pub(crate) mod number;
mod page;
mod palette;
mod picture;
mod plot;
mod policies;
mod scale;
mod steps;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod ticks;
mod verdict;
mod waiting;

pub use contention::occ_page;
pub use page::page;

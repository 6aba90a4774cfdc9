//! Tables: a heading for each column and for each row, in a container that scrolls when the page is narrow.
//!
//! A verdict does not scroll, because that would hide who is best: where the page is narrow its cells stand side by side
//! below the heading of their row. With that the style takes away what makes it a table to a screen reader, so each of
//! its parts says what it is.

use super::palette::{DRAWN, letter};
use super::text::{breakable, escape, shorten};
use crate::story::Comparison;

/// A longer name is shortened, and whole in its title.
const LONGEST_NAME: usize = 40;

/// A table in the making. Cells are HTML already.
pub(super) struct Table {
    class: &'static str,
    caption: String,
    head: Vec<String>,
    rows: Vec<(String, Vec<String>)>,
}

impl Table {
    /// A table that is called so, with these headings; the first is that of the row's headings.
    pub(super) fn new(class: &'static str, caption: &str, head: Vec<String>) -> Self {
        Table { class, caption: escape(caption).into_owned(), head, rows: Vec::new() }
    }

    /// A row with its heading.
    pub(super) fn row(&mut self, heading: String, cells: Vec<String>) {
        self.rows.push((heading, cells));
    }

    /// A heading across all columns.
    pub(super) fn group(&mut self, heading: &str) {
        self.rows.push((escape(heading).into_owned(), Vec::new()));
    }

    /// The whole.
    pub(super) fn finish(self) -> String {
        let role =
            |role: &str| if self.class.starts_with("verdict") { format!(" role=\"{role}\"") } else { String::new() };
        let (table, part, line) = (role("table"), role("rowgroup"), role("row"));
        let (column, heading_role, cell_role) = (role("columnheader"), role("rowheader"), role("cell"));
        let head: String = self.head.iter().map(|cell| format!("<th scope=\"col\"{column}>{cell}</th>")).collect();
        let columns = self.head.len();
        let row = |(heading, cells): &(String, Vec<String>)| {
            if cells.is_empty() {
                // The heading stays at the left when the table is scrolled, so it has the first column for itself.
                let rest = columns.saturating_sub(1).max(1);
                return format!(
                    "<tr class=\"group\"{line}><th scope=\"rowgroup\"{heading_role}>{heading}</th>\
                     <td colspan=\"{rest}\"{cell_role}></td></tr>\n"
                );
            }
            let cells: String = cells.iter().map(|cell| format!("<td{cell_role}>{cell}</td>")).collect();
            format!("<tr{line}><th scope=\"row\"{heading_role}>{heading}</th>{cells}</tr>\n")
        };
        let rows: String = self.rows.iter().map(row).collect();
        format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\"><table class=\"{class}\"{table}>\
             <caption>{caption}</caption>\n<thead{part}><tr{line}>{head}</tr></thead>\n<tbody{part}>\n{rows}</tbody></table></div>\n",
            caption = self.caption,
            class = self.class,
        )
    }
}

/// The letters and names of all contenders.
pub(super) fn all_named(comparison: &Comparison) -> impl Iterator<Item = String> {
    comparison.stories.iter().enumerate().map(|(number, story)| named(number, &story.contender.name))
}

/// A contender's letter in its colour.
pub(super) fn badge(number: usize) -> String {
    let series = if number < DRAWN { number } else { DRAWN - 1 };
    format!("<span class=\"key s{series}\">{}</span>", letter(number))
}

/// A contender's letter in its colour, and its name.
pub(super) fn named(number: usize, name: &str) -> String {
    let short = shorten(name, LONGEST_NAME);
    let title = if short == name { String::new() } else { format!(" title=\"{}\"", escape(name)) };
    format!("<span class=\"named\"{title}>{}<span>{}</span></span>", badge(number), breakable(&short))
}

//! Tables: a heading for each column and for each row, in a container that scrolls when the page is narrow.

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
        let head: String = self.head.iter().map(|cell| format!("<th scope=\"col\">{cell}</th>")).collect();
        let columns = self.head.len();
        let row = |(heading, cells): &(String, Vec<String>)| {
            if cells.is_empty() {
                // The heading stays at the left when the table is scrolled, so it has the first column for itself.
                let rest = columns.saturating_sub(1).max(1);
                return format!(
                    "<tr class=\"group\"><th scope=\"rowgroup\">{heading}</th><td colspan=\"{rest}\"></td></tr>\n"
                );
            }
            let cells: String = cells.iter().map(|cell| format!("<td>{cell}</td>")).collect();
            format!("<tr><th scope=\"row\">{heading}</th>{cells}</tr>\n")
        };
        let rows: String = self.rows.iter().map(row).collect();
        format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\"><table class=\"{class}\">\
             <caption>{caption}</caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n",
            caption = self.caption,
            class = self.class,
        )
    }
}

/// The letters and names of all contenders.
pub(super) fn all_named(comparison: &Comparison) -> impl Iterator<Item = String> {
    comparison.stories.iter().enumerate().map(|(number, story)| named(number, &story.contender.name))
}

/// A contender's letter in its colour, and its name.
pub(super) fn named(number: usize, name: &str) -> String {
    let series = if number < DRAWN { number } else { DRAWN - 1 };
    let short = shorten(name, LONGEST_NAME);
    let title = if short == name { String::new() } else { format!(" title=\"{}\"", escape(name)) };
    format!(
        "<span class=\"named\"{title}><span class=\"key s{series}\">{}</span><span>{}</span></span>",
        letter(number),
        breakable(&short)
    )
}

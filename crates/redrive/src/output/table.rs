//! Aligned columns: the one place where the command line pads text.

use super::Colour;
use super::layout::{Layout, Movable, wrap};

/// A table: a header and rows of as many cells.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// How many spaces each line begins with.
    indent: usize,
    header: Vec<Cell>,
    /// What moves out of a row if the table is too wide.
    movable: Movable,
    rows: Vec<Vec<Cell>>,
}

/// The spaces between two columns.
pub(super) const GAP: usize = 2;

/// How much further to the right the lines below a row begin.
const FOLD_INDENT: usize = 2;

/// One cell.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    /// What is shown instead if the table is too wide.
    short: Option<String>,
    colour: Option<Colour>,
}

impl Cell {
    /// A cell in a colour.
    pub(crate) fn coloured(text: impl Into<String>, colour: Colour) -> Self {
        Cell { colour: Some(colour), ..Cell::from(text) }
    }

    /// This cell with a text for tables that are too wide.
    pub(crate) fn or_short(self, text: impl Into<String>) -> Self {
        Cell { short: Some(printable(&text.into())), ..self }
    }

    /// The text, or the short one if there is one and it is wanted.
    pub(super) fn text(&self, is_short: bool) -> &str {
        self.short.as_deref().filter(|_| is_short).unwrap_or(&self.text)
    }

    /// Whether it says nothing.
    fn is_blank(&self) -> bool {
        self.text.is_empty() || self.text == "-"
    }

    fn paint(&self, text: &str, coloured: bool) -> String {
        match self.colour {
            Some(colour) if coloured && !text.is_empty() => colour.paint(text),
            _ => text.to_owned(),
        }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Cell { text: printable(&text.into()), short: None, colour: None }
    }
}

impl Table {
    /// An empty table with these column names.
    pub(crate) fn new(header: &[&'static str]) -> Self {
        Table { header: header.iter().map(|name| Cell::coloured(*name, Colour::Strong)).collect(), ..Table::default() }
    }

    /// An empty table without column names.
    pub(crate) fn without_header() -> Self {
        Table::default()
    }

    /// This table with each line moved to the right by as many spaces.
    pub(crate) fn indented(self, indent: usize) -> Self {
        Table { indent, ..self }
    }

    /// This table with as many of its last columns moved below their rows if it is too wide: texts that explain the row.
    pub(crate) fn folding(self, last: usize) -> Self {
        Table { movable: Movable { last, ..self.movable }, ..self }
    }

    /// This table with its first column moved above the rows if it is too wide: names that may be long, and are copied.
    pub(crate) fn leading(self) -> Self {
        Table { movable: Movable { first: true, ..self.movable }, ..self }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Adds a row with a name and a value.
    pub(crate) fn field(&mut self, name: &str, value: impl Into<Cell>) {
        self.row([Cell::coloured(name, Colour::Faint), value.into()]);
    }

    /// Whether there are no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// How wide it is where nothing limits it.
    pub(crate) fn width(&self) -> usize {
        self.indent + Layout::of(&self.header, &self.rows, Movable::default(), None).width()
    }

    /// The table as text; if there is a `width`, within as many columns.
    pub(crate) fn render(&self, coloured: bool, width: Option<usize>) -> String {
        let width = width.map(|width| width.saturating_sub(self.indent));
        let layout = Layout::of(&self.header, &self.rows, self.movable, width);
        let mut text = String::new();
        if !self.header.is_empty() {
            text += &self.row_text(&self.header, &layout, coloured);
        }
        for row in &self.rows {
            text += &self.row_text(row, &layout, coloured);
            let folded = row.iter().skip(layout.columns.end).filter(|cell| !cell.is_blank());
            folded.for_each(|cell| text += &self.folded_text(cell, width, coloured));
        }
        text
    }

    /// A row, without the cells below it; cells that do not fit have several lines.
    fn row_text(&self, row: &[Cell], layout: &Layout, coloured: bool) -> String {
        let mut text = String::new();
        let indent = " ".repeat(self.indent);
        for lead in row.iter().take(layout.columns.start) {
            text += &format!("{indent}{}\n", lead.paint(lead.text(false), coloured));
        }
        let cells = row.iter().enumerate().take(layout.columns.end).skip(layout.columns.start);
        let cells: Vec<(&Cell, Vec<String>)> = cells.map(|(at, cell)| (cell, layout.lines(at, cell))).collect();
        let height = cells.iter().map(|(_, lines)| lines.len()).max().unwrap_or(0);
        for line_at in 0..height {
            let mut line = indent.clone();
            // Spaces are only written before the next cell: trailing ones get in the way of copying.
            let mut padding = layout.indent();
            for ((cell, lines), width) in cells.iter().zip(&layout.widths) {
                let part = lines.get(line_at).map_or("", String::as_str);
                if !part.is_empty() {
                    line += &" ".repeat(padding);
                    line += &cell.paint(part, coloured);
                    padding = 0;
                }
                padding += width.saturating_sub(part.chars().count()) + GAP;
            }
            text += &(line + "\n");
        }
        text
    }

    /// A cell below its row.
    fn folded_text(&self, cell: &Cell, width: Option<usize>, coloured: bool) -> String {
        let indent = " ".repeat(self.indent + FOLD_INDENT);
        let lines = wrap(cell.text(false), width.map_or(usize::MAX, |width| width.saturating_sub(FOLD_INDENT)), false);
        lines.iter().map(|line| format!("{indent}{}\n", cell.paint(line, coloured))).collect()
    }
}

/// Text from elsewhere with control characters replaced: it cannot move the cursor, break the line or change its
/// direction.
pub(crate) use redrive_standard::printable;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_with_and_without_colours() {
        let mut table = Table::new(&["NAME", "N"]);
        table.row([Cell::coloured("ab", Colour::Good), "1".into()]);
        table.row(["a-long-name".into(), "22".into()]);
        assert_eq!(table.render(false, None), "NAME         N\nab           1\na-long-name  22\n");
        assert!(table.render(true, None).contains("\x1b[32mab\x1b[0m           1\n"));
    }

    #[test]
    fn a_table_can_be_indented() {
        let mut table = Table::without_header().indented(2);
        table.row(["ab".into(), "1".into()]);
        table.row(["a".into(), "2".into()]);
        assert_eq!(table.render(false, None), "  ab  1\n  a   2\n");
    }

    #[test]
    fn what_is_shown_cannot_move_the_cursor() {
        let mut table = Table::without_header();
        table.field("a", "x\x1b[2J\ny\u{202e}z");
        assert_eq!(table.render(false, None), "a  x\u{fffd}[2J\u{fffd}y\u{fffd}z\n");
    }
    /// A table like that of tasks.
    fn tasks() -> Table {
        let mut table = Table::new(&["TASK", "IN FLIGHT", "ACCEPTED", "REQUEST", "WHY"]).folding(2);
        let accepted = || Cell::from("2026-01-31T12:00:00Z (3m ago)").or_short("3m ago");
        table.row(["01a1e0fa".into(), "1".into(), accepted(), "POST http://a/".into(), "answered 503 in 1 ms".into()]);
        table.row(["01a1e0fb".into(), "0".into(), accepted(), "GET http://b/".into(), "-".into()]);
        table
    }

    #[test]
    fn a_table_that_is_too_wide_becomes_narrower_step_by_step() {
        let wide = "\
TASK      IN FLIGHT  ACCEPTED                       REQUEST         WHY
01a1e0fa  1          2026-01-31T12:00:00Z (3m ago)  POST http://a/  answered 503 in 1 ms
01a1e0fb  0          2026-01-31T12:00:00Z (3m ago)  GET http://b/   -
";
        let with_short_texts = "\
TASK      IN FLIGHT  ACCEPTED  REQUEST         WHY
01a1e0fa  1          3m ago    POST http://a/  answered 503 in 1 ms
01a1e0fb  0          3m ago    GET http://b/   -
";
        let with_a_short_header = "\
TASK      IN      ACCEPTED  REQUEST         WHY
          FLIGHT
01a1e0fa  1       3m ago    POST http://a/  answered 503 in 1 ms
01a1e0fb  0       3m ago    GET http://b/   -
";
        let folded_once = "\
TASK      IN FLIGHT  ACCEPTED  REQUEST
01a1e0fa  1          3m ago    POST http://a/
  answered 503 in 1 ms
01a1e0fb  0          3m ago    GET http://b/
";
        let folded_twice = "\
TASK      IN FLIGHT  ACCEPTED
01a1e0fa  1          3m ago
  POST http://a/
  answered 503 in 1 ms
01a1e0fb  0          3m ago
  GET http://b/
";
        let wrapped = "\
TASK    IN      ACCEPTED
        FLIGHT
01a1e0  1       3m ago
fa
  POST http://a/
  answered 503 in 1 ms
01a1e0  0       3m ago
fb
  GET http://b/
";
        let led = "\
TASK
  IN FLIGHT  ACCEPTED
01a1e0fa
  1          3m ago
  POST http://a/
  answered 503 in 1 ms
01a1e0fb
  0          3m ago
  GET http://b/
";
        assert_eq!(tasks().leading().render(false, Some(22)), led);
        for (widths, expected) in [
            (88..=200, wide),
            (67..=87, with_short_texts),
            (64..=66, with_a_short_header),
            (45..=63, folded_once),
            (29..=41, folded_twice),
            (22..=22, wrapped),
        ] {
            for width in widths {
                assert_eq!(tasks().render(false, Some(width)), expected, "{width}");
                // A word of the last column is not broken.
                let is_too_wide = |line: &str| line.chars().count() > width && !line.ends_with(" ACCEPTED");
                assert!(!expected.lines().any(is_too_wide), "{width}");
            }
        }
        assert_eq!(tasks().render(false, None), wide);
    }

    #[test]
    fn a_value_continues_below_itself_and_a_word_is_not_broken() {
        let mut table = Table::without_header();
        table.field("why", Cell::coloured("503 from http://127.0.0.1:9000/hook twice", Colour::Bad));
        assert_eq!(table.render(false, Some(20)), "why  503 from\n     http://127.0.0.1:9000/hook\n     twice\n");
        assert!(table.render(true, Some(20)).contains("\n     \x1b[31mtwice\x1b[0m\n"));
    }
}

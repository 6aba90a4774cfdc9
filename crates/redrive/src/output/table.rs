//! Aligned columns: the one place where the command line pads text.

use super::Colour;

/// A table: a header and rows of as many cells.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// How many spaces each line begins with.
    indent: usize,
    header: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

/// The spaces between two columns.
const GAP: usize = 2;

/// One cell.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    colour: Option<Colour>,
}

impl Cell {
    /// A cell in a colour.
    pub(crate) fn coloured(text: impl Into<String>, colour: Colour) -> Self {
        Cell { text: printable(&text.into()), colour: Some(colour) }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Cell { text: printable(&text.into()), colour: None }
    }
}

impl Table {
    /// An empty table with these column names.
    pub(crate) fn new(header: &[&'static str]) -> Self {
        Table { header: header.to_vec(), ..Table::default() }
    }

    /// An empty table without column names.
    pub(crate) fn without_header() -> Self {
        Table::default()
    }

    /// This table with each line moved to the right by as many spaces.
    pub(crate) fn indented(self, indent: usize) -> Self {
        Table { indent, ..self }
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

    /// The table as text, a line per row.
    pub(crate) fn render(&self, coloured: bool) -> String {
        let header = self.header.iter().map(|name| Cell::coloured(*name, Colour::Strong)).collect::<Vec<_>>();
        let lines = || Some(&header).into_iter().filter(|header| !header.is_empty()).chain(&self.rows);
        let columns = lines().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|column| lines().filter_map(|row| row.get(column)).map(width).max().unwrap_or(0))
            .collect();
        lines().map(|row| self.render_row(row, &widths, coloured)).collect()
    }

    fn render_row(&self, row: &[Cell], widths: &[usize], coloured: bool) -> String {
        let mut line = " ".repeat(self.indent);
        for (at, cell) in row.iter().enumerate() {
            match cell.colour {
                Some(colour) if coloured => line += &colour.paint(&cell.text),
                _ => line += &cell.text,
            }
            // The last cell is not padded: trailing spaces only get in the way of copying.
            if at + 1 < row.len() {
                let padding = widths.get(at).map_or(0, |width_of_column| width_of_column.saturating_sub(width(cell)));
                line += &" ".repeat(padding + GAP);
            }
        }
        line + "\n"
    }
}

fn width(cell: &Cell) -> usize {
    cell.text.chars().count()
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
        assert_eq!(table.render(false), "NAME         N\nab           1\na-long-name  22\n");
        assert!(table.render(true).contains("\x1b[32mab\x1b[0m           1\n"));
    }

    #[test]
    fn a_table_can_be_indented() {
        let mut table = Table::without_header().indented(2);
        table.row(["ab".into(), "1".into()]);
        table.row(["a".into(), "2".into()]);
        assert_eq!(table.render(false), "  ab  1\n  a   2\n");
    }

    #[test]
    fn what_is_shown_cannot_move_the_cursor() {
        let mut table = Table::without_header();
        table.field("a", "x\x1b[2J\ny\u{202e}z");
        assert_eq!(table.render(false), "a  x\u{fffd}[2J\u{fffd}y\u{fffd}z\n");
    }
}

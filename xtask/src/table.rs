//! Text tables: the first column is aligned to the left, the others to the right.

/// A table of text.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings.
    pub fn new(headings: &[&str]) -> Self {
        Table { rows: vec![headings.iter().map(|heading| (*heading).to_owned()).collect()] }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Prints it.
    pub fn print(&self) {
        for line in self.lines() {
            println!("{line}");
        }
    }

    fn lines(&self) -> Vec<String> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|at| self.rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max())
            .map(Option::unwrap_or_default)
            .collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, &width))| match at {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            });
            format!("  {}", cells.collect::<Vec<_>>().join("   ")).trim_end().to_owned()
        };
        self.rows.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_by_characters_not_bytes() {
        let mut table = Table::new(&["", "µs"]);
        table.row(vec!["a–b".to_owned(), "10".to_owned()]);
        table.row(vec!["c".to_owned(), "5".to_owned()]);
        assert_eq!(table.lines(), ["        µs", "  a–b   10", "  c      5"]);
    }
}

//! How a table fits into the width of a terminal: short texts first, then texts below their rows, then the first column above
//! them, then more lines.
//!
//! Nothing is cut off, whatever the width.

use std::ops::Range;

use super::table::{Cell, GAP};

/// No column gets narrower than this.
const NARROWEST: usize = 6;

/// How far to the right of the first column's cells the others are if that is above them.
pub(super) const BELOW_LEAD: usize = 2;

/// What may move out of a row if the table is too wide.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Movable {
    /// How many of the last columns may move below their row.
    pub(super) last: usize,
    /// Whether the first column may move above its row.
    pub(super) first: bool,
}

/// The columns of a table.
#[derive(Debug)]
pub(super) struct Layout {
    /// The columns that stand side by side.
    pub(super) columns: Range<usize>,
    /// The width of each of them.
    pub(super) widths: Vec<usize>,
    /// Which columns have their short texts.
    short: Vec<bool>,
    /// Whether cells may have more than one line.
    is_wrapped: bool,
}

impl Layout {
    /// The layout of a table within `limit`, if there is one: the first that fits, from the widest to the narrowest.
    pub(super) fn of(header: &[Cell], rows: &[Vec<Cell>], movable: Movable, limit: Option<usize>) -> Self {
        let count = rows.iter().map(Vec::len).chain([header.len()]).max().unwrap_or(0);
        let natural = |short: Vec<bool>| Layout {
            columns: 0..count,
            widths: widths(header, rows, 0..count, &short),
            short,
            is_wrapped: false,
        };
        let mut layout = natural(vec![false; count]);
        let Some(limit) = limit else { return layout };
        // The last columns first: they are the ones that explain.
        for column in (0..count).rev() {
            if layout.fits(limit) {
                return layout;
            }
            layout.short[column] = true;
            layout = natural(layout.short);
        }
        let words: Vec<Cell> = header.iter().map(|name| Cell::from(longest_word(name.text(false)))).collect();
        let last = movable.last.min(count);
        let moves = (0..=last).map(|last| 0..count - last);
        let moves = moves.chain(movable.first.then_some(1.min(count - last)..count - last));
        for columns in moves {
            let narrow = widths(&words, rows, columns.clone(), &layout.short);
            layout = Layout { columns, widths: narrow, is_wrapped: true, ..layout };
            if layout.fits(limit) {
                break;
            }
        }
        let wanted = widths(header, rows, layout.columns.clone(), &layout.short);
        layout.grow(&wanted, limit);
        let room = limit.saturating_sub(layout.indent());
        squeeze(&mut layout.widths, room);
        layout
    }

    /// How far to the right its columns are.
    pub(super) fn indent(&self) -> usize {
        if self.columns.start > 0 { BELOW_LEAD } else { 0 }
    }

    /// The width of a line.
    pub(super) fn width(&self) -> usize {
        self.indent() + self.widths.iter().sum::<usize>() + gaps(&self.widths)
    }

    fn fits(&self, limit: usize) -> bool {
        self.width() <= limit
    }

    /// Gives columns what they want, from the left, where there is room for all of it.
    fn grow(&mut self, wanted: &[usize], limit: usize) {
        let mut room = limit.saturating_sub(self.width());
        for (width, wanted) in self.widths.iter_mut().zip(wanted) {
            let more = wanted.saturating_sub(*width);
            if more <= room {
                *width += more;
                room -= more;
            }
        }
    }

    /// The lines of a cell in this column, which is one of those side by side.
    pub(super) fn lines(&self, column: usize, cell: &Cell) -> Vec<String> {
        let text = cell.text(self.short.get(column).copied().unwrap_or(false));
        match self.widths.get(column - self.columns.start) {
            // A long word in the last column disturbs no other one, and can be copied.
            Some(width) if self.is_wrapped => wrap(text, *width, column + 1 < self.columns.end),
            _ => vec![text.to_owned()],
        }
    }
}

/// What these columns need.
fn widths(header: &[Cell], rows: &[Vec<Cell>], columns: Range<usize>, short: &[bool]) -> Vec<usize> {
    let lines = || [header].into_iter().chain(rows.iter().map(Vec::as_slice));
    let width = |column: usize| {
        lines().filter_map(|row| row.get(column)).map(|cell| cell.text(short[column])).map(length).max()
    };
    columns.map(|column| width(column).unwrap_or(0)).collect()
}

fn length(text: &str) -> usize {
    text.chars().count()
}

fn gaps(widths: &[usize]) -> usize {
    widths.len().saturating_sub(1) * GAP
}

/// Makes the widest columns as narrow as they must be.
fn squeeze(widths: &mut [usize], limit: usize) {
    let room = limit.saturating_sub(gaps(widths));
    let total = |cap: usize, widths: &[usize]| widths.iter().map(|width| (*width).min(cap)).sum::<usize>();
    let widest = widths.iter().copied().max().unwrap_or(0);
    let cap = (NARROWEST..=widest).rev().find(|cap| total(*cap, widths) <= room).unwrap_or(NARROWEST);
    let spare = room.saturating_sub(total(cap, widths));
    let mut spare = Some(spare);
    for width in widths.iter_mut().rev().filter(|width| **width > cap) {
        *width = (*width).min(cap + spare.take().unwrap_or(0));
    }
}

fn longest_word(text: &str) -> &str {
    text.split(' ').max_by_key(|word| length(word)).unwrap_or_default()
}

/// The lines of a text within `width`. A longer word has a line of its own, or is broken if it `may_break`.
pub(crate) fn wrap(text: &str, width: usize, may_break: bool) -> Vec<String> {
    let width = width.max(1);
    let mut lines = vec![String::new()];
    let mut room = width;
    for word in text.split(' ') {
        let pieces = if may_break { pieces(word, width) } else { vec![word.to_owned()] };
        for (at, piece) in pieces.iter().enumerate() {
            let length = length(piece);
            let Some(line) = lines.last_mut() else { continue };
            let gap = usize::from(at == 0 && !line.is_empty());
            if at == 0 && (line.is_empty() || length + gap <= room) {
                *line += &" "[..gap];
                *line += piece;
                room = room.saturating_sub(length + gap);
            } else {
                room = width.saturating_sub(length);
                lines.push(piece.clone());
            }
        }
    }
    lines
}

/// A word in pieces of at most `width` characters; an empty word is one piece.
fn pieces(word: &str, width: usize) -> Vec<String> {
    let characters: Vec<char> = word.chars().collect();
    match characters.is_empty() {
        true => vec![String::new()],
        false => characters.chunks(width).map(|chunk| chunk.iter().collect()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_wrapped_at_spaces_and_in_the_middle_of_words_only_if_it_must() {
        for (text, width, may_break, expected) in [
            ("", 5, true, &[""][..]),
            ("a b c", 5, false, &["a b c"]),
            ("a b c d", 5, false, &["a b c", "d"]),
            ("abcdefgh ij", 3, true, &["abc", "def", "gh", "ij"]),
            ("abcdefg h ij", 3, true, &["abc", "def", "g h", "ij"]),
            ("a abcdefgh ij", 3, false, &["a", "abcdefgh", "ij"]),
            ("ä ö ü", 3, true, &["ä ö", "ü"]),
        ] {
            assert_eq!(wrap(text, width, may_break), expected, "{text:?} {width}");
        }
    }

    #[test]
    fn the_widest_columns_become_narrower() {
        for (widths, limit, expected) in [
            ([10, 40, 20], 60, [10, 26, 20]),
            ([10, 40, 20], 44, [10, 15, 15]),
            ([10, 40, 20], 45, [10, 15, 16]),
            ([3, 4, 5], 2, [3, 4, 5]),
            ([30, 40, 20], 2, [6, 6, 6]),
        ] {
            let mut squeezed = widths;
            squeeze(&mut squeezed, limit);
            assert_eq!(squeezed, expected, "{widths:?} within {limit}");
        }
    }
}

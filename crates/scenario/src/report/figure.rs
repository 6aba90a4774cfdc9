//! Figures: a picture or several, what they show, and the same in a table.

use super::picture::Size;
use super::table::Table;

/// A whole row of the page.
pub(super) const ROW: f64 = 1040.0;
/// A column of it where there are two, and where there are three. A telephone's whole page is about as wide as the
/// latter.
const HALF: f64 = 508.0;
const THIRD: f64 = 331.0;

/// The same picture for wide pages and for narrow ones; the page shows the one that fits.
pub(super) fn in_both_sizes(id: &str, wide: Size, narrow: Size, draw: impl Fn(&str, Size) -> String) -> String {
    if wide == narrow {
        return draw(id, wide);
    }
    both(&draw(id, wide), &draw(&format!("{id}-narrow"), narrow))
}

/// A picture over the whole row. Where that is narrow it has only letters for the contenders; `names` say who is who.
pub(super) fn whole_row(id: &str, names: &[String], draw: impl Fn(&str, Size) -> String) -> String {
    let wide = draw(id, Size { width: ROW, height: 330.0 });
    let narrow = draw(&format!("{id}-narrow"), Size { width: THIRD, height: 270.0 });
    let names: String = names.iter().map(|name| format!("<li>{name}</li>")).collect();
    both(&wide, &format!("{narrow}<ul class=\"key-line\">{names}</ul>"))
}

fn both(wide: &str, narrow: &str) -> String {
    format!("<div class=\"wide\">{wide}</div><div class=\"narrow\">{narrow}</div>")
}

/// How many columns so many panels take, and how large each is.
pub(super) fn panels(count: usize) -> (usize, Size) {
    match count {
        0 | 1 => (1, Size { width: ROW, height: 260.0 }),
        2 | 4 => (2, Size { width: HALF, height: 230.0 }),
        _ => (3, NARROW_PANEL),
    }
}

/// A panel where there is little room.
pub(super) const NARROW_PANEL: Size = Size { width: THIRD, height: 216.0 };

/// A figure with its numbers, which are collapsed at first.
pub(super) fn figure(pictures: &str, caption: &str, numbers: Table) -> String {
    format!(
        "<figure>\n{pictures}<figcaption>{caption}</figcaption>\n<details><summary>The numbers as a table</summary>\n\
         {}</details>\n</figure>\n",
        numbers.finish()
    )
}

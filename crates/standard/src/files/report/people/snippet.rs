//! A line of a file with a part of it underlined.
//!
//! The underline is laid out in the columns of a terminal, which are not characters: a tab is several, a letter of an
//! East Asian script is two, a combining mark is none.

use std::ops::Range;

use super::paint::{Colour, Paint};
use crate::files::source::{Location, Source};
use crate::printable::{is_control_like, printable};

/// How many columns a tab takes.
const TAB: usize = 4;

/// How many characters of a long line are shown: a document may be one line of megabytes.
const MAX_SHOWN: usize = 120;

/// How many characters are shown before the underlined part, where the line is cut.
const BEFORE: usize = 40;

/// `--> file:line:column`, the line, the underline, and notes below it.
pub(super) fn snippet(
    location: &Location,
    whose: &str,
    colour: Colour,
    paint: Paint,
    notes: impl Iterator<Item = (&'static str, String)>,
) -> String {
    let place = location.line_range();
    let number = place.map(|place| place.line.to_string()).unwrap_or_default();
    let margin = " ".repeat(number.len() + 1);
    let frame = |text: &str| paint.over(text, Colour::Frame);
    let mut text = format!("{margin}{} {}{whose}\n", frame("-->"), printable(&location.to_string()));
    if let (Some(place), Some(span)) = (place, &location.span) {
        let Shown { line, before, underlined } = shown(&location.source, place.line, span);
        let under = paint.over(&"^".repeat(underlined), colour);
        let bar = frame("|");
        text.push_str(&format!("{margin} {bar}\n"));
        text.push_str(&format!("{}{bar} {line}\n", frame(&format!(" {number} "))));
        text.push_str(&format!("{margin} {bar} {}{under}\n", " ".repeat(before)));
    }
    for (name, note) in notes {
        text.push_str(&format!("{margin} {} {}: {note}\n", frame("="), paint.over(name, Colour::Strong)));
    }
    text
}

/// A line as it is shown, with how many columns are before the underlined part and how many that has.
struct Shown {
    line: String,
    before: usize,
    underlined: usize,
}

/// What is shown of a line whose bytes in `span` are underlined; what goes on below is underlined to the line's end.
fn shown(source: &Source, number: usize, span: &Range<usize>) -> Shown {
    let line = source.line(number);
    let first = source.line_start(number);
    let start = source.boundary(span.start).saturating_sub(first).min(line.len());
    let end = source.boundary(span.end).saturating_sub(first).clamp(start, line.len());
    let is_long = line.chars().nth(MAX_SHOWN).is_some();
    let from = if is_long { last_characters(&line[..start], BEFORE) } else { 0 };
    let to = if is_long { from + first_characters(&line[from..], MAX_SHOWN) } else { line.len() };
    let (left, right) = (if from > 0 { "…" } else { "" }, if to < line.len() { "…" } else { "" });
    let text: String = line[from..to].chars().map(laid_out).collect();
    Shown {
        line: format!("{left}{text}{right}").trim_end().to_owned(),
        before: left.chars().count() + columns(&line[from..start]),
        underlined: columns(&line[start..end.min(to)]).max(1),
    }
}

/// The byte at which the last `count` characters begin.
fn last_characters(text: &str, count: usize) -> usize {
    text.char_indices().rev().take(count).last().map_or(text.len(), |(at, _)| at)
}

/// The byte at which the first `count` characters end.
fn first_characters(text: &str, count: usize) -> usize {
    text.char_indices().nth(count).map_or(text.len(), |(at, _)| at)
}

fn columns(text: &str) -> usize {
    text.chars().map(width).sum()
}

fn laid_out(letter: char) -> String {
    match letter {
        '\t' => " ".repeat(TAB),
        letter => printable(letter.encode_utf8(&mut [0; 4])),
    }
}

/// How many columns of a terminal a character takes.
fn width(letter: char) -> usize {
    const NONE: [(u32, u32); 7] = [
        (0x0300, 0x036f),
        (0x1ab0, 0x1aff),
        (0x1dc0, 0x1dff),
        (0x200b, 0x200f),
        (0x20d0, 0x20ff),
        (0xfe00, 0xfe0f),
        (0xfe20, 0xfe2f),
    ];
    const TWO: [(u32, u32); 9] = [
        (0x1100, 0x115f),
        (0x2e80, 0x303e),
        (0x3041, 0xa4cf),
        (0xac00, 0xd7a3),
        (0xf900, 0xfaff),
        (0xfe30, 0xfe6f),
        (0xff00, 0xff60),
        (0x1f300, 0x1faff),
        (0x20000, 0x3fffd),
    ];
    let is_in =
        |ranges: &[(u32, u32)]| ranges.iter().any(|(first, last)| (*first..=*last).contains(&u32::from(letter)));
    match letter {
        '\t' => TAB,
        // What is not shown itself is shown as one character.
        _ if is_control_like(letter) => 1,
        _ if is_in(&NONE) => 0,
        _ if is_in(&TWO) => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, part: &str) -> (String, String) {
        let source = Source::try_new("f", text.as_bytes().to_vec()).unwrap();
        let start = source.text().find(part).unwrap();
        let location = source.location(Some(start..start + part.len()));
        let text = snippet(&location, "", Colour::Bad, Paint { coloured: false }, std::iter::empty());
        let lines: Vec<&str> = text.lines().collect();
        (lines[2].to_owned(), lines[3].to_owned())
    }

    #[test]
    fn the_underline_is_below_what_it_is_about() {
        for (text, part, expected) in [
            ("a = 1", "1", [" 1 | a = 1", "   |     ^"]),
            ("\ta = 1\r\n", "1", [" 1 |     a = 1", "   |         ^"]),
            ("日 = \"本日\"", "\"本日\"", [" 1 | 日 = \"本日\"", "   |      ^^^^^^"]),
            ("e\u{301} = 1", "1", [" 1 | e\u{301} = 1", "   |     ^"]),
            ("a = \"\"\"x\ny\"\"\"", "\"\"\"x\ny\"\"\"", [" 1 | a = \"\"\"x", "   |     ^^^^"]),
            ("a = \"\x1b[2J\"", "a", [" 1 | a = \"\u{fffd}[2J\"", "   | ^"]),
            ("a = \"\u{200e}x\"", "x", [" 1 | a = \"\u{fffd}x\"", "   |       ^"]),
            ("a = \"\u{202e}x\"", "x", [" 1 | a = \"\u{fffd}x\"", "   |       ^"]),
            ("\u{feff}a = 1", "a", [" 1 | a = 1", "   | ^"]),
        ] {
            assert_eq!(lines(text, part), (expected[0].into(), expected[1].into()), "{text:?}");
        }
    }

    #[test]
    fn of_a_long_line_the_part_around_the_underline_is_shown() {
        let text = format!("{{{}\"here\": 1,{}}}", "\"a\": 1,".repeat(1000), "\"b\": 2,".repeat(1000));
        let (line, underline) = lines(&text, "\"here\"");
        assert!(line.starts_with(" 1 | …") && line.ends_with('…'), "{line}");
        assert_eq!(line.chars().count(), 5 + 2 + MAX_SHOWN);
        let at = line.chars().position(|letter| letter == 'h').unwrap() - 1;
        assert_eq!(underline, format!("   | {}^^^^^^", " ".repeat(at - 5)));
    }

    #[test]
    fn a_span_within_a_character_breaks_nothing() {
        let source = Source::try_new("f", "日本".into()).unwrap();
        for span in [1..2, 2..4, 4..5, 5..99, 99..99] {
            let text = snippet(
                &source.location(Some(span.clone())),
                "",
                Colour::Bad,
                Paint { coloured: false },
                [].into_iter(),
            );
            assert!(text.contains(" 1 | 日本\n"), "{span:?}: {text}");
        }
    }

    #[test]
    fn an_underline_at_the_end_of_a_line_is_still_there() {
        let source = Source::try_new("f", b"abc\nd".to_vec()).unwrap();
        let location = source.location(Some(3..3));
        let text = snippet(&location, "", Colour::Bad, Paint { coloured: false }, std::iter::empty());
        assert_eq!(text, "  --> f:1:4\n   |\n 1 | abc\n   |    ^\n");
    }
}

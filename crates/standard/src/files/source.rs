//! A file's text, and locations in it, with lines and columns as editors count them.

use std::fmt;
use std::ops::Range;
use std::path::MAIN_SEPARATOR;
use std::sync::Arc;

use crate::files::problem::Problem;

/// The largest file that is read. Policies are written by hand and are much smaller.
pub const MAX_BYTES: usize = 4 * 1024 * 1024;

/// The text of a file, with its name as it was given.
#[derive(PartialEq, Eq)]
pub struct Source {
    name: String,
    text: String,
    line_starts: Vec<usize>,
    /// How many characters there are before each [`STRIDE`] bytes.
    characters: Vec<usize>,
}

/// The distance of the marks from which columns are counted: a document may be one line of megabytes.
const STRIDE: usize = 1024;

/// The byte order mark that some editors write first.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// A part of a file, or the file as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The file.
    pub source: Arc<Source>,
    /// The bytes; nothing if it is about the whole file.
    pub span: Option<Range<usize>>,
}

/// The lines and columns of a part of a file. Lines and columns count from 1, columns in Unicode characters; the end
/// column is the one after the last character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineRange {
    /// The line of the first character.
    pub line: usize,
    /// The column of the first character.
    pub column: usize,
    /// The line of the last character.
    pub end_line: usize,
    /// The column after the last character.
    pub end_column: usize,
}

impl Source {
    /// The file `name` with these bytes; a problem if they are too many or not text.
    pub fn try_new(name: impl Into<String>, bytes: Vec<u8>) -> Result<Arc<Source>, Problem> {
        let name = name.into();
        if bytes.len() > MAX_BYTES {
            return Err(Source::unreadable(name, format!("the file is larger than {} MiB", MAX_BYTES >> 20)));
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Source::of(name, text)),
            Err(error) => {
                let mark =
                    if error.as_bytes().starts_with(BYTE_ORDER_MARK.as_bytes()) { BYTE_ORDER_MARK.len() } else { 0 };
                let valid = error.utf8_error().valid_up_to() - mark;
                let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                let at = Some(valid..valid + '\u{fffd}'.len_utf8());
                let location = Source::of(name, text).location(at);
                Err(Problem::new(location, "the file is not UTF-8 text: this byte is not part of a character"))
            }
        }
    }

    /// The problem of a file that could not be read at all.
    pub fn unreadable(name: impl Into<String>, why: impl Into<String>) -> Problem {
        Problem::new(Source::of(name.into(), String::new()).location(None), why)
    }

    fn of(name: String, text: String) -> Arc<Source> {
        // A byte order mark says how the file is encoded and is no character of it: columns do not count it.
        let text = text.strip_prefix(BYTE_ORDER_MARK).map(str::to_owned).unwrap_or(text);
        let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let characters = text.as_bytes().chunks(STRIDE).scan(0, |before, chunk| {
            let here = *before;
            *before += characters_in(chunk);
            Some(here)
        });
        let characters = characters.collect();
        Arc::new(Source { name, text, line_starts, characters })
    }

    /// The name of the file, as it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name as a path with slashes, without `.` and empty parts: `./a.toml` and `a.toml` are the same file.
    pub fn path(&self) -> String {
        let slashed = if MAIN_SEPARATOR == '\\' { self.name.replace('\\', "/") } else { self.name.clone() };
        let parts = slashed.split('/').enumerate().filter(|(at, part)| *part != "." && (*at == 0 || !part.is_empty()));
        let path = parts.map(|(_, part)| part).collect::<Vec<_>>().join("/");
        if path.is_empty() { slashed } else { path }
    }

    /// The whole text, without a byte order mark.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text of a line, counted from 1, without its end.
    pub fn line(&self, line: usize) -> &str {
        let start = self.line_starts.get(line - 1).copied().unwrap_or(self.text.len());
        let end = self.line_starts.get(line).copied().unwrap_or(self.text.len());
        self.text[start..end].trim_end_matches(['\r', '\n'])
    }

    /// The lines and columns of these bytes. A span that is empty, or that would end before a line does, covers one
    /// column at least.
    pub fn line_range(&self, span: &Range<usize>) -> LineRange {
        let (line, column) = self.line_and_column(span.start);
        let (end_line, end_column) = self.line_and_column(span.end.max(span.start));
        let end_column = if (end_line, end_column) == (line, column) { column + 1 } else { end_column };
        LineRange { line, column, end_line, end_column }
    }

    /// The byte at which a line begins; lines count from 1.
    pub(crate) fn line_start(&self, line: usize) -> usize {
        self.line_starts.get(line.saturating_sub(1)).copied().unwrap_or(self.text.len())
    }

    /// A part of this file.
    pub fn location(self: &Arc<Self>, span: Option<Range<usize>>) -> Location {
        Location { source: Arc::clone(self), span }
    }

    fn line_and_column(&self, offset: usize) -> (usize, usize) {
        let offset = self.boundary(offset);
        let line = self.line_starts.partition_point(|start| *start <= offset);
        let start = self.line_starts[line - 1];
        // The characters of the line's end are not in any column that can be shown.
        let offset = offset.min(start + self.line(line).len());
        (line, self.characters_before(offset) - self.characters_before(start) + 1)
    }

    fn characters_before(&self, offset: usize) -> usize {
        let mark = (offset / STRIDE).min(self.characters.len().saturating_sub(1));
        let before = self.characters.get(mark).copied().unwrap_or(0);
        before + characters_in(&self.text.as_bytes()[(mark * STRIDE).min(offset)..offset])
    }

    /// The nearest byte at or before `offset` at which a character begins.
    pub(crate) fn boundary(&self, offset: usize) -> usize {
        let offset = offset.min(self.text.len());
        (0..=offset).rev().find(|at| self.text.is_char_boundary(*at)).unwrap_or(0)
    }
}

/// How many characters begin in these bytes.
fn characters_in(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| (**byte & 0b1100_0000) != 0b1000_0000).count()
}

/// The name and the size, not the text.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({:?}, {} bytes)", self.name, self.text.len())
    }
}

impl Location {
    /// Its lines and columns; nothing for a file as a whole.
    pub fn line_range(&self) -> Option<LineRange> {
        self.span.as_ref().map(|span| self.source.line_range(span))
    }
}

/// `file:line:column`, as editors and terminals understand it.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.source.name())?;
        match self.line_range() {
            Some(place) => write!(f, ":{}:{}", place.line, place.column),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Arc<Source> {
        Source::try_new("f", text.as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn lines_and_columns_count_characters_from_one() {
        // text, what is looked for, line, column, end line, end column
        for (text, part, expected) in [
            ("a = 1\nb = 2\n", "2", (2, 5, 2, 6)),
            ("a = 1\r\nb = 2\r\n", "2", (2, 5, 2, 6)),
            ("\u{feff}a = 1", "a", (1, 1, 1, 2)),
            ("\u{feff}a = 1", "1", (1, 5, 1, 6)),
            ("ä = \"日本\"\n", "\"日本\"", (1, 5, 1, 9)),
            ("\ta = 1", "a", (1, 2, 1, 3)),
            ("a = \"\"\"x\ny\"\"\"\n", "\"\"\"x\ny\"\"\"", (1, 5, 2, 5)),
            ("a\n", "\n", (1, 2, 2, 1)),
        ] {
            let source = source(text);
            let start = source.text().find(part).unwrap();
            let place = source.line_range(&(start..start + part.len()));
            let found = (place.line, place.column, place.end_line, place.end_column);
            assert_eq!(found, expected, "{text:?}");
        }
    }

    #[test]
    fn columns_of_a_long_line_are_counted_from_its_beginning() {
        let text = format!("ä\n{}x\n", "aü日😀".repeat(2_000));
        let source = source(&text);
        for repetition in [0, 1, 100, 102, 1_999, 2_000] {
            let at = 3 + repetition * 10;
            assert_eq!(source.line_range(&(at..at + 1)).column, repetition * 4 + 1, "{repetition}");
        }
    }

    #[test]
    fn an_empty_or_impossible_span_still_has_a_place() {
        let source = source("ä\r\nb");
        for (span, expected) in [
            (0..0, (1, 1, 1, 2)),
            (1..1, (1, 1, 1, 2)),
            (3..3, (1, 2, 1, 3)),
            (5..5, (2, 2, 2, 3)),
            (99..120, (2, 2, 2, 3)),
        ] {
            let place = source.line_range(&span);
            assert_eq!((place.line, place.column, place.end_line, place.end_column), expected, "{span:?}");
        }
        assert_eq!((source.line(1), source.line(2), source.line(3)), ("ä", "b", ""));
    }

    #[test]
    fn what_is_no_text_is_a_problem_at_its_place() {
        let problem = Source::try_new("f.toml", b"a = 1\nb = \"\xff\"\n".to_vec()).unwrap_err();
        assert_eq!(problem.to_string(), "f.toml:2:6: the file is not UTF-8 text: this byte is not part of a character");
        let problem = Source::try_new("f.toml", b"\xef\xbb\xbfb = \"\xff\"\n".to_vec()).unwrap_err();
        assert_eq!(problem.to_string(), "f.toml:1:6: the file is not UTF-8 text: this byte is not part of a character");
        let problem = Source::try_new("f.toml", vec![b' '; MAX_BYTES + 1]).unwrap_err();
        assert_eq!(problem.to_string(), "f.toml: the file is larger than 4 MiB");
        assert!(Source::try_new("f.toml", vec![b' '; MAX_BYTES]).is_ok());
    }

    #[test]
    fn a_path_is_the_same_however_it_is_written() {
        for (name, expected) in [
            ("a.toml", "a.toml"),
            ("./a.toml", "a.toml"),
            (".//a/./b//c.toml", "a/b/c.toml"),
            ("/etc//a.toml", "/etc/a.toml"),
            ("../a.toml", "../a.toml"),
            ("-", "-"),
        ] {
            assert_eq!(Source::try_new(name, Vec::new()).unwrap().path(), expected, "{name}");
        }
    }
}

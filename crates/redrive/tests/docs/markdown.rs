//! The fenced blocks of a document, in order, with the markers before them.
//!
//! A marker is an HTML comment on the line before the fence. It is invisible to readers of the rendered page:
//! `<!-- run: NAME -->` names a block that a test treats in a special way, `<!-- not run: REASON -->` leaves one out.

/// The languages of blocks that hold commands.
const COMMANDS: [&str; 3] = ["sh", "console", "sql"];

/// A block of commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) language: String,
    pub(crate) text: String,
    /// The line of its first command, from 1.
    pub(crate) line: usize,
    pub(crate) marker: Marker,
}

/// What the document says about running a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Marker {
    /// There is no marker: the block is run.
    None,
    /// The block is run, and a test refers to it by this name.
    Named(String),
    /// The block is not run; the document says why.
    NotRun,
}

/// The blocks of commands of a document.
///
/// # Errors
///
/// Markers without a name or a reason, markers that are not before a block of commands, blocks of commands that do not
/// say their language, and blocks without an end.
pub(crate) fn blocks(document: &str) -> Result<Vec<Block>, String> {
    let mut blocks = Vec::new();
    let mut marker = Marker::None;
    let mut lines = document.lines().enumerate().map(|(at, line)| (at + 1, line.trim_end()));
    while let Some((at, line)) = lines.next() {
        let Some(language) = line.trim_start().strip_prefix("```") else {
            if marker != Marker::None {
                return Err(format!("line {at}: a marker must be on the line before a block of commands"));
            }
            marker = marker_of(line).map_err(|wrong| format!("line {at}: {wrong}"))?;
            continue;
        };
        let mut text = String::new();
        loop {
            let (_, line) = lines.next().ok_or_else(|| format!("line {at}: the block has no end"))?;
            if line.trim_start() == "```" {
                break;
            }
            text = text + line + "\n";
        }
        let (language, line) = (language.to_owned(), at + 1);
        let marker = std::mem::replace(&mut marker, Marker::None);
        if COMMANDS.contains(&language.as_str()) {
            blocks.push(Block { language, text, line, marker });
        } else if text.starts_with("$ ") {
            return Err(format!("line {at}: a block that shows a command must be a `console` block"));
        } else if marker != Marker::None {
            return Err(format!("line {at}: only blocks of {} have markers", COMMANDS.join(", ")));
        }
    }
    Ok(blocks)
}

fn marker_of(line: &str) -> Result<Marker, String> {
    let comment = line.trim_start().strip_prefix("<!--").and_then(|rest| rest.strip_suffix("-->")).map(str::trim);
    let Some(comment) = comment else { return Ok(Marker::None) };
    match comment.split_once(':').map(|(kind, rest)| (kind, rest.trim())) {
        Some(("run" | "not run", "")) => Err("a marker needs a name or a reason".into()),
        Some(("run", name)) => Ok(Marker::Named(name.to_owned())),
        Some(("not run", _)) => Ok(Marker::NotRun),
        None if ["run", "not run"].contains(&comment) => Err("a marker needs a name or a reason".into()),
        _ => Ok(Marker::None),
    }
}

/// A command of a `console` block, and what it prints.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Command<'a> {
    pub(crate) script: String,
    pub(crate) expected: Vec<&'a str>,
}

impl Block {
    /// The commands of a `console` block: lines that begin with `$ `, and the lines after one that ends with `\`.
    pub(crate) fn commands(&self) -> Vec<Command<'_>> {
        let mut commands: Vec<Command<'_>> = Vec::new();
        let mut is_continued = false;
        for line in self.text.lines() {
            match (line.strip_prefix("$ "), commands.last_mut()) {
                (None, Some(last)) if is_continued => last.script = format!("{}\n{line}", last.script),
                (Some(script), _) => commands.push(Command { script: script.to_owned(), expected: Vec::new() }),
                (None, Some(last)) => last.expected.push(line),
                (None, None) => panic!("line {}: a console block begins with `$ `: {line}", self.line),
            }
            is_continued = (is_continued || line.starts_with("$ ")) && line.ends_with('\\');
        }
        commands
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(language: &str, text: &str, line: usize, marker: Marker) -> Block {
        Block { language: language.into(), text: text.into(), line, marker }
    }

    #[test]
    fn blocks_of_commands_are_found_with_their_markers() {
        let document = "# Title\n\n```sh\na\nb\n```\n\ntext\n<!-- run: first -->\n```console\n$ c\n```\n```toml\nx = 1\n```\n\
                        <!-- a comment: of another kind -->\n<!-- not run: takes an hour -->\n```sql\nSELECT 1;\n```\n";
        let expected = [
            block("sh", "a\nb\n", 4, Marker::None),
            block("console", "$ c\n", 11, Marker::Named("first".into())),
            block("sql", "SELECT 1;\n", 19, Marker::NotRun),
        ];
        assert_eq!(blocks(document).unwrap(), expected);
    }

    #[test]
    fn what_would_leave_a_block_out_in_silence_is_an_error() {
        for (document, wrong) in [
            ("<!-- not run: -->\n```sh\na\n```\n", "line 1: a marker needs a name or a reason"),
            ("<!-- not run -->\n```sh\na\n```\n", "line 1: a marker needs a name or a reason"),
            ("<!-- run: x -->\n\n```sh\na\n```\n", "line 2: a marker must be on the line before a block of commands"),
            ("<!-- not run: x -->\n```toml\na\n```\n", "line 2: only blocks of sh, console, sql have markers"),
            ("```\n$ a\n```\n", "line 1: a block that shows a command must be a `console` block"),
            ("```sh\na\n", "line 1: the block has no end"),
        ] {
            assert_eq!(blocks(document).unwrap_err(), wrong, "{document}");
        }
    }

    #[test]
    fn a_command_has_its_continuations_and_its_output() {
        let block = block("console", "$ a \\\n    b\nx\n\n…\n$ c\n", 1, Marker::None);
        let expected = [
            Command { script: "a \\\n    b".into(), expected: vec!["x", "", "…"] },
            Command { script: "c".into(), expected: vec![] },
        ];
        assert_eq!(block.commands(), expected);
    }
}

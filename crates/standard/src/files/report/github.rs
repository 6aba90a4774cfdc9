//! For GitHub Actions: a workflow command for each finding, which becomes an annotation of its line.

use super::{Level, in_short};
use crate::files::source::Location;
use crate::files::verdict::{LocatedFinding, Verdict};
use crate::printable::printable;
use crate::rules::Permission;

/// The verdict as workflow commands. Approved findings get no annotation.
pub fn github(verdict: &Verdict) -> String {
    let problems = verdict
        .problems
        .iter()
        .map(|problem| command(Level::Error, &problem.location, "could not read", &problem.wrong));
    let open = verdict.findings.iter().filter(|found| !found.finding.is_permitted());
    problems.chain(open.map(annotation)).collect()
}

fn annotation(found: &LocatedFinding) -> String {
    let check = found.finding.check;
    let title = format!("{} {} ({})", check.rule, check.id, check.gate.action());
    let mut message = format!("{}: {}", found.subject, in_short(&found.finding));
    let why_not = found.finding.permission.as_ref().and_then(Permission::why_not);
    message.extend(why_not.map(|why_not| format!(" {why_not}.")));
    command(Level::of(check.gate), &found.location, &title, &message)
}

fn command(level: Level, location: &Location, title: &str, message: &str) -> String {
    let level = match level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Note => "notice",
    };
    let mut properties = vec![format!("file={}", property(&location.source.path()))];
    if let Some(place) = location.line_range() {
        properties.push(format!("line={}", place.line));
        // Columns only mean something there if they are of one line.
        if place.line == place.end_line {
            properties.push(format!("col={}", place.column));
        }
        properties.push(format!("endLine={}", place.end_line));
        if place.line == place.end_line {
            properties.push(format!("endColumn={}", place.end_column));
        }
    }
    properties.push(format!("title={}", property(title)));
    format!("::{level} {}::{}\n", properties.join(","), escaped(message))
}

/// A message ends with its line, and a log is read in terminals, too.
fn escaped(text: &str) -> String {
    printable(text).replace('%', "%25")
}

/// A property ends with a comma, and all of them with colons.
fn property(text: &str) -> String {
    escaped(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::source::Source;

    #[test]
    fn what_would_end_a_command_is_escaped() {
        let source = Source::try_new("a,b:c%.toml", b"x = 1\ny = 2\n".to_vec()).unwrap();
        for (span, expected) in [
            (
                Some(4..5),
                "::error file=a%2Cb%3Ac%25.toml,line=1,col=5,endLine=1,endColumn=6,title=a%2C b%3A c::100%25\u{fffd}\u{fffd}\u{fffd}: x, y\n",
            ),
            (
                Some(4..7),
                "::error file=a%2Cb%3Ac%25.toml,line=1,endLine=2,title=a%2C b%3A c::100%25\u{fffd}\u{fffd}\u{fffd}: x, y\n",
            ),
            (None, "::error file=a%2Cb%3Ac%25.toml,title=a%2C b%3A c::100%25\u{fffd}\u{fffd}\u{fffd}: x, y\n"),
        ] {
            assert_eq!(command(Level::Error, &source.location(span), "a, b: c", "100%\r\n\u{202e}: x, y"), expected);
        }
    }
}

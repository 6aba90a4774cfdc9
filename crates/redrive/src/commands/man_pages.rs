//! `redrive man-pages`: the help of every command as manual pages.
//!
//! One page per command, `redrive-tasks-list.1` for `redrive tasks list`. The sections come from the command line, so that
//! a page says what `--help` says.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::cli;
use crate::exit::Exit;
use crate::output::Output;

const EXAMPLES: &str = "\
Examples:
  redrive man-pages ~/.local/share/man/man1
  redrive man-pages pages";

const VERSION: &str = concat!("Redrive ", env!("CARGO_PKG_VERSION"));

/// The longest line, in bytes, that is a heading of its own.
const LONGEST_HEADING: usize = 40;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The directory for the pages; it is made if it does not exist
    directory: PathBuf,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let directory = &args.directory;
    fs::create_dir_all(directory).with_context(|| format!("could not make {}", directory.display()))?;
    let mut command = cli::command().disable_help_subcommand(true);
    // Gives every command the name of its page: redrive-tasks-list.
    command.build();
    let count = write_pages(&command, directory)?;
    Output::standard().line(format!("{count} pages in {}", directory.display()))?;
    Ok(Exit::Done)
}

/// Writes the page of a command and those of its subcommands. Returns how many there are.
fn write_pages(command: &Command, directory: &Path) -> anyhow::Result<usize> {
    let mut count = 1;
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        count += write_pages(subcommand, directory)?;
    }
    // No date: the same version gives the same pages. A blank keeps its place among the words of the title.
    let man = Man::new(command.clone()).date(" ").source(VERSION).manual("Redrive");
    let file = directory.join(man.get_filename());
    fs::write(&file, page(command, &man)?).with_context(|| format!("could not write {}", file.display()))?;
    Ok(count)
}

fn page(command: &Command, man: &Man) -> anyhow::Result<Vec<u8>> {
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    name_section(command).to_writer(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    last_sections(&after).to_writer(&mut page)?;
    Ok(page)
}

/// The line that `whatis` and `apropos` show: one sentence, without the program's name in front.
fn name_section(command: &Command) -> Roff {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let first = about.lines().next().unwrap_or_default().trim_end_matches('.');
    let first = first.strip_prefix("Redrive: ").unwrap_or(first);
    let name = command.get_display_name().unwrap_or(command.get_name());
    let mut roff = Roff::new();
    roff.control("SH", ["NAME"]);
    roff.text([roman(format!("{name} - {first}"))]);
    roff
}

/// The end of a help as sections: a short line that ends in a colon is a heading, and what follows keeps its lines.
fn last_sections(after_help: &str) -> Roff {
    let mut roff = Roff::new();
    let mut previous = String::new();
    for block in after_help.split("\n\n") {
        let (first, rest) = block.split_once('\n').unwrap_or((block, ""));
        let (heading, text) = match first.strip_suffix(':') {
            Some(heading) if heading.starts_with("Exit codes") => ("EXIT STATUS".to_owned(), rest),
            Some(heading) if heading.len() <= LONGEST_HEADING => (heading.to_uppercase(), rest),
            _ => ("NOTES".to_owned(), block),
        };
        match heading == previous {
            true => roff.control("PP", []),
            false => roff.control("SH", [heading.as_str()]),
        };
        previous = heading;
        // Examples are commands and tables: their lines must not be joined.
        roff.control("nf", []);
        for line in text.lines() {
            roff.text([roman(line)]);
        }
        roff.control("fi", []);
    }
    roff
}

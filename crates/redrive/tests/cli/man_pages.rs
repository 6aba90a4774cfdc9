//! `redrive man-pages`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use redrive::cli;

use super::world::{Program, redrive};

#[test]
fn every_command_has_a_page_with_its_examples() {
    let directory = tempfile::tempdir().unwrap();
    let pages = write_pages(directory.path());
    let mut expected = BTreeSet::new();
    visit(&cli::command(), "", &mut |name, command| {
        let page =
            fs::read_to_string(pages.join(format!("{name}.1"))).unwrap_or_else(|error| panic!("{name}: {error}"));
        for section in [".SH NAME", ".SH SYNOPSIS", ".SH OPTIONS", ".SH EXAMPLES", ".SH \"EXIT STATUS\""] {
            assert!(page.lines().any(|line| line == section), "{name} has no {section}:\n{page}");
        }
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        // `man` writes a hyphen of a command with a backslash, so that it is not a typographic one.
        let example = help.lines().find(|line| line.starts_with("  redrive ")).unwrap().replace('-', "\\-");
        assert!(page.contains(example.trim()), "{name} does not show {example}");
        expected.insert(format!("{name}.1"));
    });
    let written: BTreeSet<_> = fs::read_dir(&pages).unwrap().map(|file| file_name(&file.unwrap())).collect();
    assert_eq!(written, expected);
}

#[test]
fn man_renders_every_page_without_a_warning() {
    let directory = tempfile::tempdir().unwrap();
    for file in fs::read_dir(write_pages(directory.path())).unwrap() {
        let file = file.unwrap();
        let mut man = Command::new("man");
        man.args(["--warnings", "-E", "UTF-8", "-l"]).arg(file.path()).env("MANWIDTH", "100").env("LC_ALL", "C.UTF-8");
        let rendered = Program::start(man).end().with(0);
        assert_eq!(rendered.stderr, "", "{}", file_name(&file));
        assert!(rendered.stdout.contains("EXIT STATUS"), "{}", rendered.stdout);
    }
}

fn write_pages(directory: &Path) -> std::path::PathBuf {
    Program::start(redrive(directory, &["man-pages", "man/man1"])).end().with(0).says(&["pages in man/man1"]);
    directory.join("man/man1")
}

fn visit(command: &clap::Command, prefix: &str, see: &mut impl FnMut(&str, &clap::Command)) {
    let name = format!("{prefix}{}", command.get_name());
    see(&name, command);
    for inner in command.get_subcommands() {
        visit(inner, &format!("{name}-"), see);
    }
}

fn file_name(file: &fs::DirEntry) -> String {
    file.file_name().to_string_lossy().into_owned()
}

//! What `--help` promises.

use std::collections::BTreeSet;

use clap::Command;
use redrive::cli;
use redrive_core::{Outcome, Reason};

#[test]
fn every_command_has_examples_and_clap_accepts_all_of_them() {
    let mut lines = Vec::new();
    collect(&cli::command(), &mut lines);
    assert!(lines.len() > 25, "{lines:#?}");
    for line in lines {
        let words = words(&line);
        if let Err(error) = cli::command().try_get_matches_from(&words) {
            panic!("{line}\n{words:?}\n{error}");
        }
    }
}

#[test]
fn every_help_lists_the_exit_codes_and_fits_a_terminal() {
    walk(&cli::command(), &mut |command| {
        let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        // What asks no server has only a few.
        let codes = match command.get_name() {
            "lint" => &["0", "1", "2"][..],
            "simulate" => &["0", "2", "130"],
            _ => &["0", "1", "2", "3", "4", "5", "6", "78", "130"],
        };
        for code in codes {
            assert!(after.contains(&format!("\n  {code} ")), "{}: {code}", command.get_name());
        }
        for line in after.lines() {
            assert!(line.chars().count() <= 98, "{}: {line}", command.get_name());
        }
    });
}

#[test]
fn every_reason_and_every_outcome_is_in_a_help() {
    let help = |name: &str| {
        let command = cli::command();
        let tasks = command.find_subcommand("tasks").unwrap();
        tasks.find_subcommand(name).unwrap().get_after_help().map(ToString::to_string).unwrap_or_default()
    };
    let has = |text: &str, name: &str| text.split([' ', ',', ';', '.', '\n']).any(|word| word == name);
    for reason in Reason::ALL.into_iter().filter(|reason| *reason != Reason::Cancelled) {
        assert!(has(&help("list"), reason.as_str()), "{}", reason.as_str());
    }
    for outcome in Outcome::ALL {
        assert!(has(&help("attempts"), outcome.as_str()), "{}", outcome.as_str());
    }
}

#[test]
fn no_two_settings_share_a_flag_with_a_command() {
    walk(&cli::command(), &mut |command| {
        let names: Vec<_> = command.get_arguments().filter_map(|argument| argument.get_long()).collect();
        let distinct: BTreeSet<_> = names.iter().collect();
        assert_eq!(names.len(), distinct.len(), "{}: {names:?}", command.get_name());
    });
    cli::command().debug_assert();
}

fn walk(command: &Command, visit: &mut impl FnMut(&Command)) {
    visit(command);
    command.get_subcommands().for_each(|inner| walk(inner, visit));
}

fn collect(command: &Command, lines: &mut Vec<String>) {
    walk(command, &mut |command| {
        let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let examples: Vec<_> = after
            .lines()
            .map(str::trim)
            .filter(|line| line.starts_with("redrive ") || line.starts_with("REDRIVE_"))
            .map(str::to_owned)
            .collect();
        assert!(!examples.is_empty(), "{} has no examples", command.get_name());
        lines.extend(examples);
    });
}

/// The words of a line as a shell would see them, up to a comment or a redirection, without variables in front.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![];
    let mut word: Option<String> = None;
    let mut quote = None;
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), close) if open == close => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            (None, '#' | '<' | '>' | '|') if word.is_none() => break,
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words.into_iter().skip_while(|word| word.starts_with("REDRIVE_")).collect()
}

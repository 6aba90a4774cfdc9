//! How the same request is sent again without making a second task.

use std::io::IsTerminal;

use redrive_core::IdempotencyKey;
use redrive_server::wire::Secrets;

use crate::cli;

/// The longest command that is printed.
const LONGEST: usize = 400;

/// What to do to repeat this command with the key that was made for it.
///
/// The command itself is only printed for the person who typed it: what a script sends must not get into its log.
pub(super) fn advice(key: &IdempotencyKey, server: Option<&str>) -> String {
    let words: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let command =
        if std::io::stderr().is_terminal() { command(&cli::program(), &words, key.as_str(), server) } else { None };
    let command = command.unwrap_or_else(|| format!("the same command and --key {key}"));
    format!("if contact is lost, repeat it with: {command}")
}

/// The command line with the key, to be copied into a shell; nothing if it is long, has a secret in it, or reads standard
/// input. The server is named: the shell that it is copied into may have another one in a variable.
fn command(program: &str, words: &[String], key: &str, server: Option<&str>) -> Option<String> {
    let secrets = Secrets::default();
    let has_secret = |word: &String| {
        let is_header =
            word.split_once(':').is_some_and(|(name, _)| !name.contains('/') && secrets.is_secret(name.trim()));
        is_header || secrets.mask(word) != word.as_str()
    };
    let reads_input = |word: &String| ["-", "@-"].contains(&word.as_str()) || word.ends_with("=-") || word == "-d-";
    if words.iter().any(|word| has_secret(word) || reads_input(word) || word.chars().any(char::is_control)) {
        return None;
    }
    let names_server = words.iter().any(|word| word == "--server" || word.starts_with("--server="));
    let server = server.filter(|_| !names_server).map(|server| format!("--server {}", quote(server)));
    if server.as_ref().is_some_and(|server| server.contains("***@")) {
        return None;
    }
    let added = server.into_iter().chain([format!("--key {}", quote(key))]);
    // Behind `--` there are no options.
    let options = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let (before, after) = words.split_at(options);
    let quoted: Vec<String> =
        before.iter().map(|word| quote(word)).chain(added).chain(after.iter().map(|word| quote(word))).collect();
    let command = format!("{} {}", quote(program), quoted.join(" "));
    (command.len() <= LONGEST).then_some(command)
}

/// A word as a POSIX shell reads it.
fn quote(word: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_./:=@,+%".contains(character);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Option<String> {
        command("redrive", &words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>(), "k-1", None)
    }

    #[test]
    fn a_command_is_quoted_for_a_shell() {
        for (words, expected) in [
            (&["send", "http://127.0.0.1:9000/", "--wait"][..], "redrive send http://127.0.0.1:9000/ --wait --key k-1"),
            (&["send", "http://a/?b=c&d=e", "-d", "it's"], r"redrive send 'http://a/?b=c&d=e' -d 'it'\''s' --key k-1"),
            (
                &["send", "http://a/", "-d", "", "-H", "X-One: $HOME"],
                "redrive send http://a/ -d '' -H 'X-One: $HOME' --key k-1",
            ),
            (&["send", "-d", "x", "--", "http://a/"], "redrive send -d x --key k-1 -- http://a/"),
        ] {
            assert_eq!(of(words).as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_command_names_its_server_once_and_shows_no_password() {
        let with = |words: &[&str], server| {
            let words: Vec<_> = words.iter().map(|&word| word.to_owned()).collect();
            command("redrive", &words, "k-1", Some(server))
        };
        for (words, server, expected) in [
            (&["send", "http://a/"][..], "http://b:1", Some("redrive send http://a/ --server http://b:1 --key k-1")),
            (&["send", "http://a/", "--server", "b"], "b", Some("redrive send http://a/ --server b --key k-1")),
            (&["send", "http://a/", "--server=b"], "b", Some("redrive send http://a/ --server=b --key k-1")),
            (&["send", "http://a/"], "http://***@b:1", None),
        ] {
            assert_eq!(with(words, server).as_deref(), expected, "{words:?}");
        }
    }

    #[test]
    fn a_command_with_a_secret_or_an_input_is_not_printed() {
        let long = "x".repeat(LONGEST);
        for words in [
            &["send", "http://a/", "-H", "Authorization: Bearer 5f2b"][..],
            &["send", "http://a/", "-HX-Api-Key: 5f2b"],
            &["send", "http://user:pass@a/"],
            &["send", "http://a/?token=5f2b"],
            &["send", "http://a/", "--server", "https://user:pass@b/"],
            &["send", "http://a/", "-d", "-"],
            &["send", "http://a/", "--json-body=-"],
            &["send", "http://a/", "-d", "two\nlines"],
            &["send", "http://a/", "-d", &long],
        ] {
            assert_eq!(of(words), None, "{words:?}");
        }
    }
}

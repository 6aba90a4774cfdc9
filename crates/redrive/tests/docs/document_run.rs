//! One document, block by block, in one shell.
//!
//! Ports that documents name (8620, 8621, 9000) stand for free ones: they are replaced in commands, and put back in what is
//! printed. So are other texts that a test names, such as the address of a database.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Instant;

use redrive_testbed::{free_port, wait_until};

use super::compare::{Exactness, compare};
use super::markdown::{Block, Marker};
use super::read;
use super::shell::{OnError, Shell, is_tour};

/// The ports of the service, of a second node and of a target, as documents have them.
const PORTS: [&str; 3] = ["8620", "8621", "9000"];
/// Commands whose output is the same every time.
const REPEATABLE: [&str; 2] = ["redrive simulate", "redrive lint"];
/// Placeholder for the id of the last task that was accepted.
const TASK_ID: &str = "ID";
/// Placeholder for the last stored body that was printed.
const BODY: &str = "sha256:…";

/// A document of which a part has been run.
pub(crate) struct DocumentRun {
    path: &'static str,
    blocks: VecDeque<Block>,
    pub(crate) shell: Shell,
    /// Texts of the document, each with its replacement.
    replaced: Vec<(String, String)>,
    task: Option<String>,
    body: Option<String>,
    /// The words of a shell that run SQL blocks.
    psql: Option<String>,
}

/// A command that runs in the background: the file with its output, and how many lines were compared.
pub(crate) struct Running {
    printed: PathBuf,
    seen: usize,
}

impl DocumentRun {
    /// The document at `path`, with nothing run yet.
    pub(crate) fn new(path: &'static str) -> DocumentRun {
        let blocks = read(path).into_iter().filter(|block| block.marker != Marker::NotRun).collect();
        let replaced = PORTS.map(|port| (port.to_owned(), free_port().to_string())).into();
        let shell = Shell::start();
        let mut run = DocumentRun { path, blocks, shell, replaced, task: None, body: None, psql: None };
        run.setup("export REDRIVE_LISTEN=127.0.0.1:8620 REDRIVE_SERVER=http://127.0.0.1:8620 TARGET_PORT=9000");
        run
    }

    /// Replaces `text` by `here` in commands.
    pub(crate) fn replace(&mut self, text: &str, here: &str) {
        self.replaced.push((text.to_owned(), here.to_owned()));
    }

    /// Redirects requests for example.com to the target's port.
    pub(crate) fn send_to_target(&mut self) {
        let target = format!("http://127.0.0.1:{}", self.port("9000"));
        self.replace("https://example.com", &target);
    }

    /// The port that stands for `port` of the document.
    pub(crate) fn port(&self, port: &str) -> u16 {
        self.here(port).parse().expect("a port of the document")
    }

    /// Names the database that SQL blocks are run in, as the operator of the server.
    pub(crate) fn use_database(&mut self, name: &str) {
        self.psql = Some(format!("psql {name}"));
    }

    /// Names the database that SQL blocks are run in, and the role that the document names for them.
    pub(crate) fn use_database_as(&mut self, role: &str, password: &str, name: &str) {
        self.psql = Some(format!("PGUSER={role} PGPASSWORD={password} psql {name}"));
    }

    /// Runs a preparation or a check, with the document's ports and addresses.
    pub(crate) fn setup(&mut self, script: &str) -> String {
        self.run_script(script, OnError::Stop).unwrap_or_else(|wrong| panic!("{script}\n{wrong}"))
    }

    /// Runs all blocks before the one of this name, and returns that one.
    pub(crate) fn run_until(&mut self, name: &str) -> Block {
        loop {
            let block = self.blocks.pop_front();
            let block = block.unwrap_or_else(|| panic!("{} has no block named {name:?} here", self.path));
            if block.marker == Marker::Named(name.to_owned()) {
                return block;
            }
            self.run_plain(&block);
        }
    }

    /// Runs all other blocks.
    pub(crate) fn run_rest(mut self) {
        while let Some(block) = self.blocks.pop_front() {
            self.run_plain(&block);
        }
    }

    fn run_plain(&mut self, block: &Block) {
        let Block { line, marker, .. } = block;
        assert_eq!(*marker, Marker::None, "{}:{line}: no test refers to a block of this name here", self.path);
        self.run_block(block);
    }

    /// Runs one block, and returns what it printed.
    pub(crate) fn run_block(&mut self, block: &Block) -> String {
        let place = format!("{}:{}", self.path, block.line);
        let begun = Instant::now();
        let printed = self.run_block_at(block, &place);
        if is_tour() {
            let first = block.text.lines().next().unwrap_or_default();
            eprintln!("{:6.1} s  {place}  {first}", begun.elapsed().as_secs_f64());
        }
        printed
    }

    fn run_block_at(&mut self, block: &Block, place: &str) -> String {
        match block.language.as_str() {
            "sql" => {
                let psql = self.psql.clone().expect("a database for SQL blocks");
                let script = format!("{psql} <<'END OF SQL'\n{}END OF SQL\n", block.text);
                self.run_script(&script, OnError::Stop).unwrap_or_else(|wrong| panic!("{place}: {wrong}"))
            }
            "sh" => self.run_script(&block.text, OnError::Stop).unwrap_or_else(|wrong| panic!("{place}: {wrong}")),
            _ => self.run_console(block, place),
        }
    }

    fn run_console(&mut self, block: &Block, place: &str) -> String {
        let mut all = String::new();
        for command in block.commands() {
            let printed =
                self.run_script(&command.script, OnError::Continue).unwrap_or_else(|wrong| panic!("{place}: {wrong}"));
            let is_repeatable = REPEATABLE.iter().any(|start| command.script.starts_with(start));
            let exactness = if is_repeatable { Exactness::Exact } else { Exactness::Varying };
            compare(&command.expected, &printed, exactness)
                .unwrap_or_else(|wrong| panic!("{place}: $ {}\n{wrong}", command.script));
            all += &printed;
        }
        all
    }

    /// Starts the one command of a block, and waits until it has printed what the block shows.
    pub(crate) fn begin(&mut self, block: &Block) -> Running {
        let commands = block.commands();
        let [command] = commands.as_slice() else { panic!("line {}: one command was expected", block.line) };
        let printed = self.shell.begin(&self.here(&command.script));
        let count = command.expected.len();
        wait_until("the command has printed what the block shows", || lines(&printed).len() >= count);
        let shown = lines(&printed)[..count].join("\n");
        self.compare_part(block, &command.expected, &shown);
        self.note_ids(&shown);
        Running { printed, seen: count }
    }

    /// Waits until the document's `redrive target` has printed a request with this text.
    pub(crate) fn wait_for_arrival(&mut self, text: &str) {
        self.setup(&format!("until grep -qF -e '{text}' \"$target_log\"; do sleep 0.05; done"));
    }

    /// Waits until a command in the background has printed the last line that `block` shows, the rest of its output.
    pub(crate) fn finish(&mut self, running: &Running, block: &Block, last: &str) {
        wait_until("the command has ended", || {
            lines(&running.printed).last().is_some_and(|line| line.starts_with(last))
        });
        let shown = lines(&running.printed)[running.seen..].join("\n");
        self.compare_part(block, &block.text.lines().collect::<Vec<_>>(), &shown);
    }

    fn compare_part(&self, block: &Block, expected: &[&str], shown: &str) {
        compare(expected, &self.in_document(shown), Exactness::Varying)
            .unwrap_or_else(|wrong| panic!("{}:{}: {wrong}", self.path, block.line));
    }

    fn run_script(&mut self, script: &str, on_error: OnError) -> Result<String, String> {
        let script = self.here(script);
        assert!(is_local(&script), "{}: this would leave the machine:\n{script}", self.path);
        let printed = self.shell.run(&script, on_error)?;
        let printed = self.in_document(&printed);
        self.note_ids(&printed);
        Ok(printed)
    }

    /// Remembers what later commands refer to.
    fn note_ids(&mut self, printed: &str) {
        for line in printed.lines() {
            let words =
                || line.split(|character: char| !(character.is_ascii_alphanumeric() || "-:".contains(character)));
            self.task = words().skip_while(|word| *word != "accepted").nth(1).map(str::to_owned).or(self.task.take());
            self.body = words().find(|word| word.starts_with("sha256:")).map(str::to_owned).or(self.body.take());
        }
    }

    /// A command as it is run.
    fn here(&self, script: &str) -> String {
        let mut script = script.to_owned();
        for (text, here) in &self.replaced {
            script = replace_words(&script, text, here);
        }
        for (text, here) in [(TASK_ID, &self.task), (BODY, &self.body)] {
            if let Some(here) = here {
                script = replace_words(&script, text, here);
            }
        }
        script
    }

    /// Output as the document has it.
    fn in_document(&self, printed: &str) -> String {
        self.replaced.iter().fold(printed.to_owned(), |text, (document, here)| replace_words(&text, here, document))
    }
}

impl Drop for DocumentRun {
    fn drop(&mut self) {
        assert!(self.blocks.is_empty() || std::thread::panicking(), "{}: not all blocks were run", self.path);
    }
}

/// Whether all addresses in a script are on this machine.
fn is_local(script: &str) -> bool {
    script.split("://").skip(1).all(|rest| {
        let authority = rest.split(['/', '\'', '"', ' ', '\n', '?']).next().unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default().split(':').next().unwrap_or_default();
        ["", "$PWD", "127.0.0.1", "localhost"].contains(&host)
    })
}

fn lines(file: &PathBuf) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap();
    // A line that is still being written does not count.
    text.rsplit_once('\n').map_or_else(Vec::new, |(whole, _)| whole.lines().map(str::to_owned).collect())
}

/// Replaces a text where it is not a part of a longer word or number.
fn replace_words(text: &str, from: &str, to: &str) -> String {
    let is_of_word = |character: Option<char>| character.is_some_and(|it| it.is_alphanumeric() || it == '_');
    let mut result = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(from) {
        let (before, after) = (&rest[..at], &rest[at + from.len()..]);
        let is_part = is_of_word(from.chars().next()) && is_of_word(before.chars().next_back())
            || is_of_word(from.chars().next_back()) && is_of_word(after.chars().next());
        result = result + before + if is_part { from } else { to };
        rest = after;
    }
    result + rest
}

//! The file of servers: TOML, with the line of every mistake.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use redrive_standard::nearest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::client::Address;
use crate::config::{Origin, Problem};
use crate::exit::{Exit, ExitError};

/// The keys of the file, and of a server.
const KEYS: [&str; 2] = ["default", "servers"];
const SERVER_KEYS: [&str; 5] = ["url", "user", "password", "password_file", "extra_ca"];

/// The most bytes of a file with a password.
const LONGEST_PASSWORD: u64 = 4_096;

/// The servers of the file.
#[derive(Debug, Clone)]
pub(crate) struct ServersFile {
    pub(crate) path: PathBuf,
    pub(crate) default: Option<String>,
    pub(crate) servers: BTreeMap<String, NamedServer>,
    /// Whether there is a password in the file itself.
    pub(crate) has_password: bool,
    /// Whether other users of the machine may read it.
    pub(crate) others_may_read: bool,
}

/// A server.
#[derive(Debug, Clone)]
pub(crate) struct NamedServer {
    pub(crate) address: Address,
    pub(crate) extra_ca: Vec<PathBuf>,
    /// The user, and the file with the password.
    login: Option<(String, PathBuf)>,
}

impl NamedServer {
    /// A server that is given by its URL.
    pub(crate) fn of(address: Address) -> Self {
        NamedServer { address, extra_ca: Vec::new(), login: None }
    }

    /// The server, with the password of the file that it names.
    pub(super) fn with_password_read(self) -> anyhow::Result<Self> {
        let Some((user, file)) = &self.login else { return Ok(self) };
        let address = self.address.clone().with_user(user, &password(file)?).map_err(|wrong| {
            ExitError::of(
                Exit::BadConfiguration,
                format!("the user {user} or the password in {}: {wrong}", file.display()),
            )
        })?;
        Ok(NamedServer { address, ..self })
    }
}

/// The first line of the file.
fn password(file: &Path) -> anyhow::Result<String> {
    use std::io::Read;
    let wrong = |why: String| {
        ExitError::of(Exit::BadConfiguration, format!("the password in {} cannot be read: {why}", file.display()))
    };
    let mut text = String::new();
    let read = std::fs::File::open(file).and_then(|open| open.take(LONGEST_PASSWORD + 1).read_to_string(&mut text));
    let length = read.map_err(|error| wrong(error.to_string()))?;
    if length as u64 > LONGEST_PASSWORD {
        return Err(wrong(format!("the file has more than {LONGEST_PASSWORD} bytes")));
    }
    match text.lines().next() {
        Some(password) if !password.is_empty() => Ok(password.to_owned()),
        _ => Err(wrong("its first line is empty".to_owned())),
    }
}

impl ServersFile {
    /// Reads the file; nothing if it does not exist.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Option<Self>> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                let message = format!("the file of servers {} cannot be read: {error}", path.display());
                return Err(ExitError::of(Exit::BadConfiguration, message));
            }
        };
        let mode = std::fs::metadata(path).with_context(|| format!("cannot look at {}", path.display()))?.permissions();
        let file = parse(path, &text).map_err(|problems| {
            let lines: String = problems.iter().map(|problem| format!("\n  {problem}")).collect();
            ExitError::of(Exit::BadConfiguration, format!("the file of servers is not valid:{lines}"))
        })?;
        Ok(Some(ServersFile { others_may_read: mode.mode() & 0o077 != 0, ..file }))
    }

    /// The server that the file says is the default.
    pub(super) fn default_server(&self) -> Option<&NamedServer> {
        self.servers.get(self.default.as_ref()?)
    }
}

/// Whether this can be the name of a server. An address with a port, or a URL, cannot.
pub(super) fn is_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !text.is_empty() && text.len() <= 100 && text.chars().all(is_plain)
}

fn parse(path: &Path, text: &str) -> Result<ServersFile, Vec<Problem>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader { path, text, problems: Vec::new(), has_password: false };
    let file = if errors.is_empty() { reader.file(table.get_ref()) } else { None };
    for error in errors {
        reader.problem(error.span().map_or(0, |span| span.start), format!("is not TOML: {}", error.message()));
    }
    match file {
        Some(file) if reader.problems.is_empty() => Ok(file),
        _ => Err(reader.problems),
    }
}

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    problems: Vec<Problem>,
    has_password: bool,
}

impl Reader<'_> {
    fn problem(&mut self, offset: usize, wrong: String) {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let origin = Origin::File { path: self.path.to_owned(), line: Some(before.matches('\n').count() + 1) };
        self.problems.push(Problem { origin, about: None, wrong });
    }

    fn file(&mut self, table: &DeTable<'_>) -> Option<ServersFile> {
        self.report_unknown_keys(table, &KEYS, "");
        let mut servers = BTreeMap::new();
        if let Some(named) = self.table(table, "servers") {
            for (name, server) in named {
                let (at, name) = (name.span().start, name.get_ref().to_string());
                if !is_name(&name) {
                    self.problem(at, format!("the name {name:?} must consist of letters, digits, '.', '_' and '-'"));
                } else if let DeValue::Table(server) = server.get_ref() {
                    servers.extend(self.server(at, &name, server).map(|server| (name, server)));
                } else {
                    self.problem(at, format!("{name} must be a section: [servers.{name}]"));
                }
            }
        }
        let default = self.string(table, "default");
        if let Some(default) =
            default.as_ref().filter(|default| self.problems.is_empty() && !servers.contains_key(*default))
        {
            let at = table.get("default").map_or(0, |value| value.span().start);
            self.problem(at, format!("default = {default:?}: there is no section [servers.{default}]"));
        }
        let (path, has_password) = (self.path.to_owned(), self.has_password);
        Some(ServersFile { path, default, servers, has_password, others_may_read: false })
    }

    fn server(&mut self, at: usize, name: &str, table: &DeTable<'_>) -> Option<NamedServer> {
        self.report_unknown_keys(table, &SERVER_KEYS, &format!("servers.{name}."));
        let (user, password) = (self.string(table, "user"), self.string(table, "password"));
        let password_file = self.string(table, "password_file").map(|file| self.relative(&file));
        let extra_ca = self.strings(table, "extra_ca").iter().map(|file| self.relative(file)).collect();
        let url = self.string(table, "url");
        if url.is_none() && !table.contains_key("url") {
            self.problem(at, format!("servers.{name} must have a url"));
        }
        let address = url?.parse::<Address>();
        let mut address = address.map_err(|wrong| self.problem(place(table, "url"), format!("url {wrong}"))).ok()?;
        // A password in the URL is one in the file, too.
        self.has_password |= password.is_some() || address.authorization.is_some();
        if address.authorization.is_some() && user.is_some() {
            self.problem(place(table, "user"), "there is a user in the url already".to_owned());
        }
        let login = match (user, password, password_file) {
            (Some(_), Some(_), Some(_)) => {
                self.problem(place(table, "password_file"), "there is a password already".to_owned());
                None
            }
            (Some(user), None, Some(file)) => Some((user, file)),
            (Some(user), password, None) => {
                let named = address.with_user(&user, &password.unwrap_or_default());
                address = named.map_err(|wrong| self.problem(place(table, "user"), wrong)).ok()?;
                None
            }
            (None, None, None) => None,
            (None, ..) => {
                self.problem(at, format!("servers.{name} has a password and no user"));
                None
            }
        };
        Some(NamedServer { address, extra_ca, login })
    }

    fn report_unknown_keys(&mut self, table: &DeTable<'_>, keys: &[&str], section: &str) {
        for name in table.keys().filter(|name| !keys.contains(&name.get_ref().as_ref())) {
            let key = name.get_ref();
            let hint = match nearest(key, keys.iter().copied()) {
                Some(meant) => format!("did you mean {meant}?"),
                None => format!("there are {}", keys.join(", ")),
            };
            self.problem(name.span().start, format!("{section}{key} means nothing here; {hint}"));
        }
    }

    fn table<'t>(&mut self, table: &'t DeTable<'_>, key: &str) -> Option<&'t DeTable<'t>> {
        match table.get(key)?.get_ref() {
            DeValue::Table(inner) => Some(inner),
            _ => {
                self.problem(place(table, key), format!("{key} must be sections: [{key}.NAME]"));
                None
            }
        }
    }

    fn string(&mut self, table: &DeTable<'_>, key: &str) -> Option<String> {
        match table.get(key)?.get_ref() {
            DeValue::String(text) => Some(text.to_string()),
            _ => {
                self.problem(place(table, key), format!("{key} must be a text in quotes"));
                None
            }
        }
    }

    fn strings(&mut self, table: &DeTable<'_>, key: &str) -> Vec<String> {
        let Some(value) = table.get(key) else { return Vec::new() };
        let texts: Option<Vec<String>> = match value.get_ref() {
            DeValue::Array(items) => items.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect(),
            DeValue::String(text) => Some(vec![text.to_string()]),
            _ => None,
        };
        texts.unwrap_or_else(|| {
            self.problem(place(table, key), format!("{key} must be a list of texts in quotes"));
            Vec::new()
        })
    }

    /// A path, relative to the directory of the file; `~/` is the user's home.
    fn relative(&self, path: &str) -> PathBuf {
        match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
            (Some(rest), Some(home)) => Path::new(&home).join(rest),
            _ => self.path.parent().unwrap_or(Path::new("")).join(path),
        }
    }
}

/// Where the value of this key begins.
fn place(table: &DeTable<'_>, key: &str) -> usize {
    table.get(key).map_or(0, |value: &Spanned<DeValue<'_>>| value.span().start)
}

#[cfg(test)]
mod tests {
    use super::super::EXAMPLE;
    use super::*;

    fn parsed(text: &str) -> Result<ServersFile, Vec<String>> {
        let problems = |problems: Vec<Problem>| problems.iter().map(Problem::to_string).collect();
        parse(Path::new("/etc/s.toml"), text).map_err(problems)
    }

    #[test]
    fn the_example_is_what_it_says() {
        let file = parsed(EXAMPLE).unwrap();
        let urls: Vec<_> = file.servers.iter().map(|(name, of)| (name.as_str(), of.address.to_string())).collect();
        assert_eq!(
            urls,
            [
                ("local", "http://127.0.0.1:8620".into()),
                ("production", "https://example.com:443/redrive".into()),
                ("staging", "https://redrive.staging.example.com:443".into()),
            ]
        );
        assert_eq!(file.servers["staging"].extra_ca, [Path::new("/etc/staging-ca.pem")]);
        assert_eq!(file.servers["production"].login, Some(("anna".into(), "/etc/production.password".into())));
        assert_eq!((file.default.as_deref(), file.has_password), (Some("local"), false));
    }

    #[test]
    fn a_password_in_the_file_is_sent_and_not_shown() {
        for text in [
            "[servers.a]\nurl = 'http://h'\nuser = 'anna'\npassword = 's@cret'",
            "[servers.a]\nurl = 'http://anna:s%40cret@h'",
        ] {
            let file = parsed(text).unwrap();
            let sent = file.servers["a"].address.authorization.as_ref().unwrap();
            assert_eq!(sent.to_str().unwrap(), "Basic YW5uYTpzQGNyZXQ=");
            assert!(file.has_password && !format!("{file:?}").contains("cret"), "{file:?}");
        }
    }

    #[test]
    fn a_mistake_is_named_with_its_line() {
        for (text, expected) in [
            ("default = 'a'", "/etc/s.toml:1: default = \"a\": there is no section [servers.a]"),
            ("\ndefalt = 'a'", "/etc/s.toml:2: defalt means nothing here; did you mean default?"),
            ("[servers.a]\nurl = 'localhost:1'", "/etc/s.toml:2: url must be a URL such as http://127.0.0.1:8620"),
            ("[servers.a]\nuser = 'b'", "/etc/s.toml:1: servers.a must have a url"),
            ("[servers.a]\nurl = 7", "/etc/s.toml:2: url must be a text in quotes"),
            (
                "[servers.a]\nurl = 'http://h'\nurls = 1",
                "/etc/s.toml:3: servers.a.urls means nothing here; did you mean url?",
            ),
            ("[servers.'a b']\nurl = 'http://h'", "/etc/s.toml:1: the name \"a b\" must consist of letters"),
            ("servers = 1", "/etc/s.toml:1: servers must be sections: [servers.NAME]"),
            ("[servers]\na = 1", "/etc/s.toml:2: a must be a section: [servers.a]"),
            ("[servers.a]\nurl = 'http://h'\npassword = 'x'", "/etc/s.toml:1: servers.a has a password and no user"),
            ("[servers.a]\nurl = 'http://u@h'\nuser = 'x'", "/etc/s.toml:3: there is a user in the url already"),
            (
                "[servers.a]\nurl = 'http://h'\nuser = 'x'\npassword = 'x'\npassword_file = 'y'",
                "/etc/s.toml:5: there is a password already",
            ),
            ("[servers.a]\nurl = 'http://h'\nextra_ca = [1]", "/etc/s.toml:3: extra_ca must be a list of texts"),
            ("[servers.a", "/etc/s.toml:1: is not TOML: "),
        ] {
            let problems = parsed(text).unwrap_err();
            assert!(problems.len() == 1 && problems[0].starts_with(expected), "{text}: {problems:?}");
        }
    }

    #[test]
    fn a_name_is_no_url_and_no_address() {
        for (text, expected) in [
            ("staging", true),
            ("eu-1.prod_2", true),
            ("", false),
            ("localhost:8620", false),
            ("http://a", false),
            ("a/b", false),
        ] {
            assert_eq!(is_name(text), expected, "{text:?}");
        }
    }
}

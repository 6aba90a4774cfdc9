//! The servers that client commands may talk to: by URL, or by a name in the user's file of servers.
//!
//! The file is read only if it is needed: for a name, or to find the default where no server is chosen.
//!
//! Not here: the configuration of the service (`config`).

mod file;

pub(crate) use file::{NamedServer, ServersFile};

use std::path::PathBuf;
use std::str::FromStr;

use redrive_standard::nearest;

use crate::client::Address;
use crate::exit::{Exit, ExitError};
use crate::output::notice;

/// The server if none is chosen and the file names no default.
pub(crate) const DEFAULT_SERVER: &str = "http://127.0.0.1:8620";

/// The variable with a server's URL or name.
pub(crate) const SERVER_VARIABLE: &str = "REDRIVE_SERVER";

/// The variable with the path of the file.
const FILE_VARIABLE: &str = "REDRIVE_SERVERS";

/// What the file looks like.
pub(crate) const EXAMPLE: &str = include_str!("example.toml");

/// The server that the user chose.
#[derive(Debug, Clone)]
pub(crate) enum ServerChoice {
    /// None: an empty variable counts as not set.
    Default,
    /// By its URL.
    Url(Address),
    /// By its name in the file.
    Name(String),
}

impl FromStr for ServerChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(ServerChoice::Default);
        }
        if file::is_name(text) {
            return Ok(ServerChoice::Name(text.to_owned()));
        }
        let url = text.parse().map(ServerChoice::Url);
        url.map_err(|wrong: String| format!("{wrong}, or the name of a server in {}", shown_path()))
    }
}

/// A server, and how it was chosen.
#[derive(Debug, Clone)]
pub(crate) struct ChosenServer {
    pub(crate) server: NamedServer,
    /// What follows `--server` to choose it again; nothing if it is the default.
    pub(crate) flag: Option<String>,
}

/// The server that was chosen, or else the default of the file, or else [`DEFAULT_SERVER`].
pub(crate) fn resolve(choice: Option<&ServerChoice>) -> anyhow::Result<ChosenServer> {
    match choice {
        Some(ServerChoice::Url(address)) => {
            let url = address.to_string();
            let flag = (Some(&url) != default_url().as_ref()).then_some(url);
            Ok(ChosenServer { server: NamedServer::of(address.clone()), flag })
        }
        Some(ServerChoice::Name(name)) => {
            let file = ServersFile::read(&path()?)?.ok_or_else(|| no_file(name))?;
            let server = file.servers.get(name).cloned().ok_or_else(|| unknown(&file, name))?;
            warn_of_readers(&file);
            Ok(ChosenServer { server: server.with_password_read()?, flag: Some(name.clone()) })
        }
        None | Some(ServerChoice::Default) => {
            let file = path().ok().map(|path| ServersFile::read(&path)).transpose()?.flatten();
            let Some(server) = file.as_ref().and_then(ServersFile::default_server) else { return built_in() };
            file.iter().for_each(warn_of_readers);
            Ok(ChosenServer { server: server.clone().with_password_read()?, flag: None })
        }
    }
}

/// The URL of commands that are given no server; nothing if that cannot be known.
fn default_url() -> Option<String> {
    let file = path().ok().and_then(|path| ServersFile::read(&path).transpose()).transpose().ok()?;
    let default = file.as_ref().and_then(ServersFile::default_server);
    Some(default.map_or_else(|| DEFAULT_SERVER.to_owned(), |server| server.address.to_string()))
}

/// The choice that this text is. The text is not repeated: it may have a password.
pub(crate) fn choice(text: &str, given_by: &str) -> anyhow::Result<ServerChoice> {
    text.parse().map_err(|wrong| ExitError::of(Exit::Usage, format!("{given_by} {wrong}")))
}

/// The server of commands that are given none: that of the variable, or the default.
pub(crate) fn without_flag() -> anyhow::Result<ChosenServer> {
    let given = std::env::var(SERVER_VARIABLE).unwrap_or_default();
    resolve(Some(&choice(&given, SERVER_VARIABLE)?))
}

fn built_in() -> anyhow::Result<ChosenServer> {
    let address = DEFAULT_SERVER.parse().map_err(anyhow::Error::msg)?;
    Ok(ChosenServer { server: NamedServer::of(address), flag: None })
}

/// The path of the file, whether or not it exists: what the variable says, or else the place of the user's configuration.
pub(crate) fn path() -> anyhow::Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let configuration = || variable("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
    let home = || variable("HOME").map(|home| home.join(".config"));
    let in_configuration = || configuration().or_else(home).map(|directory| directory.join("redrive/servers.toml"));
    variable(FILE_VARIABLE).or_else(in_configuration).ok_or_else(|| {
        let message = format!("the file of servers has no place: set {FILE_VARIABLE} or HOME");
        ExitError::of(Exit::BadConfiguration, message)
    })
}

fn shown_path() -> String {
    path().map_or_else(|_| FILE_VARIABLE.to_owned(), |path| path.display().to_string())
}

fn no_file(name: &str) -> anyhow::Error {
    let message = format!(
        "there is no server {name}: {} does not exist; `redrive servers --example` prints one\n\
         (a URL begins with http:// or https://)",
        shown_path()
    );
    ExitError::of(Exit::BadConfiguration, message)
}

fn unknown(file: &ServersFile, name: &str) -> anyhow::Error {
    let names = || file.servers.keys().map(String::as_str);
    let meant = nearest(name, names()).map(|meant| format!("did you mean {meant}? ")).unwrap_or_default();
    let known = names().collect::<Vec<_>>().join(", ");
    let known = match known.as_str() {
        "" => "it names none".to_owned(),
        // It has just been said.
        only if meant.contains(&format!(" {only}?")) => String::new(),
        many => format!("it names {many}"),
    };
    let message = format!(
        "there is no server {name} in {}; {}\n(a URL begins with http:// or https://)",
        file.path.display(),
        format!("{meant}{known}").trim_end()
    );
    ExitError::of(Exit::BadConfiguration, message)
}

/// A file with a password should be its owner's alone.
fn warn_of_readers(file: &ServersFile) {
    if file.has_password && file.others_may_read {
        let path = file.path.display();
        notice(format!("warning: {path} has a password and can be read by other users: chmod 600 {path}"));
    }
}

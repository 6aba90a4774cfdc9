//! Problems of a configuration, and the origin of a value.

use std::fmt;
use std::path::PathBuf;

use serde_json::{Value, json};

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The setting was not given.
    Default,
    /// The configuration file.
    File {
        /// The path of the file.
        path: PathBuf,
        /// The line, from 1; nothing if it is about the file as a whole.
        line: Option<usize>,
    },
    /// An environment variable.
    Variable(String),
    /// A flag, without its dashes.
    Flag(&'static str),
    /// The value was lowered to fit the limit of open files.
    OpenFiles,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { path, line: Some(line) } => write!(f, "{}:{line}", path.display()),
            Origin::File { path, line: None } => write!(f, "{}", path.display()),
            Origin::Variable(name) => f.write_str(name),
            Origin::Flag(name) => write!(f, "--{name}"),
            Origin::OpenFiles => f.write_str("the limit of open files"),
        }
    }
}

impl Origin {
    /// The origin for programs.
    pub fn to_json(&self) -> Value {
        match self {
            Origin::Default => json!({"kind": "default"}),
            Origin::File { path, line } => json!({"kind": "file", "path": path, "line": line}),
            Origin::Variable(name) => json!({"kind": "environment", "variable": name}),
            Origin::Flag(name) => json!({"kind": "flag", "flag": format!("--{name}")}),
            Origin::OpenFiles => json!({"kind": "open-files"}),
        }
    }
}

/// A problem of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where the value was given.
    pub origin: Origin,
    /// Which setting, and the value that was given; nothing if the source as a whole is wrong.
    pub about: Option<(String, String)>,
    /// What is wrong and what would be right.
    pub wrong: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.origin)?;
        if let Some((key, value)) = &self.about {
            write!(f, "{key} = {value}: ")?;
        }
        f.write_str(&self.wrong)
    }
}

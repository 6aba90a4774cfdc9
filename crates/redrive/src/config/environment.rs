//! The environment of the process: its `REDRIVE_` and `OTEL_` variables and its limit of open files.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use redrive_standard::nearest;
use rustix::process::{Resource, getrlimit};

use super::given::Given;
use super::load::{GivenValue, Layer};
use super::{Origin, Problem, SETTINGS};

const PREFIX: &str = "REDRIVE_";

/// The standard variables of OpenTelemetry.
const OTEL_PREFIX: &str = "OTEL_";

/// Names the configuration file.
const CONFIG: &str = "REDRIVE_CONFIG";

/// Variables that are no settings of the service.
const OTHERS: [&str; 3] = [CONFIG, "REDRIVE_OUTBOX_FROM", "REDRIVE_SERVER"];

/// The variables whose names begin with `REDRIVE_` or `OTEL_`. An empty one counts as not set, as compose files and shells
/// have it.
#[derive(Clone, Default)]
pub struct Environment {
    pub(super) variables: BTreeMap<String, OsString>,
    pub(super) otel: BTreeMap<String, OsString>,
    /// How many files this process may open at once after it has raised its limit; no number if there is no limit.
    pub(super) open_files: Option<u64>,
}

impl Environment {
    /// The environment of this process.
    pub fn of_this_process() -> Self {
        let variables = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        Environment { open_files: getrlimit(Resource::Nofile).maximum, ..variables.collect() }
    }

    /// The configuration file that is named here.
    pub(super) fn config_file(&self) -> Option<(&Path, Origin)> {
        self.variables.get(CONFIG).map(|path| (Path::new(path), Origin::Variable(CONFIG.into())))
    }

    /// The value of a variable of OpenTelemetry, if it is set.
    pub(super) fn otel(&self, name: &str) -> Option<&OsStr> {
        self.otel.get(name).map(OsString::as_os_str)
    }

    pub(super) fn layer(&self) -> Layer {
        let mut layer = Layer::default();
        for setting in &SETTINGS {
            let Some(value) = self.variables.get(setting.variable) else { continue };
            let origin = Origin::Variable(setting.variable.to_owned());
            match value.to_str() {
                Some(text) => layer.values.push(GivenValue { setting, given: Given::Plain(text.to_owned()), origin }),
                None => layer.problems.push(Problem { origin, about: None, wrong: "must be UTF-8".into() }),
            }
        }
        layer
    }

    /// A warning for each variable that is not a setting. Not an error: it may be for another version.
    pub fn warnings(&self) -> Vec<String> {
        let known = || SETTINGS.iter().map(|setting| setting.variable).chain(OTHERS);
        let unknown = self.variables.keys().filter(|name| !known().any(|known| known == name.as_str()));
        unknown
            .map(|name| match nearest(name, known()) {
                Some(meant) => format!("the environment variable {name} is not a setting; did you mean {meant}?"),
                None => format!(
                    "the environment variable {name} is not a setting; `redrive config --json` lists all variables"
                ),
            })
            .collect()
    }
}

impl<N: Into<String>, V: Into<OsString>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        let set = variables.filter(|(_, value)| !value.is_empty());
        let (ours, others): (BTreeMap<_, _>, BTreeMap<_, _>) = set.partition(|(name, _)| name.starts_with(PREFIX));
        let otel = others.into_iter().filter(|(name, _)| name.starts_with(OTEL_PREFIX)).collect();
        Environment { variables: ours, otel, open_files: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_variable_is_named_with_its_nearest_neighbour() {
        let environment: Environment = [
            ("REDRIVE_LISTN", "x"),
            ("REDRIVE_SERVER", "x"),
            ("REDRIVE_STORE", "memory"),
            ("REDRIVE_EMPTY", ""),
            ("HOME", "/"),
        ]
        .into_iter()
        .collect();
        assert_eq!(
            environment.warnings(),
            ["the environment variable REDRIVE_LISTN is not a setting; did you mean REDRIVE_LISTEN?"]
        );
    }
}

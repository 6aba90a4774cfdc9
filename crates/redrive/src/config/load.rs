//! Merges the layers: default, file, environment, flags; each overrides the one before.

use super::address::{HIDDEN, masked};
use super::given::Given;
use super::{
    Config, Environment, Flags, Origin, Problem, SETTINGS, Setting, alerts, cross_check, file, open_files, traces,
};

/// The values of one source.
#[derive(Debug, Clone, Default)]
pub(super) struct Layer {
    pub(super) values: Vec<GivenValue>,
    pub(super) problems: Vec<Problem>,
}

impl Layer {
    pub(super) fn problem(problem: Problem) -> Self {
        Layer { values: Vec::new(), problems: vec![problem] }
    }
}

/// A value of one setting, and where it came from.
#[derive(Clone)]
pub(super) struct GivenValue {
    pub(super) setting: &'static Setting,
    pub(super) given: Given,
    pub(super) origin: Origin,
}

impl std::fmt::Debug for GivenValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} = {}", self.origin, self.setting.key, self.given)
    }
}

/// A configuration, where its values came from, and its problems.
#[derive(Debug)]
pub struct Loaded {
    /// The effective configuration. An invalid value is left out.
    pub config: Config,
    /// Where each setting's value came from, in the order of [`SETTINGS`].
    pub origins: Vec<Origin>,
    /// Errors: with any of these the configuration must not be used.
    pub problems: Vec<Problem>,
    /// Warnings: the service starts all the same.
    pub warnings: Vec<String>,
    /// How many files the service may open at once; no number if there is no limit.
    pub open_files: Option<u64>,
    /// What turned the export of traces on or off.
    pub traces: Origin,
}

/// Reads all sources.
pub fn load(flags: &Flags, environment: &Environment) -> Loaded {
    let named = flags.config_file().or_else(|| environment.config_file());
    let file = named.map_or_else(Layer::default, |(path, named_by)| file::read(path, &named_by));
    let mut loaded = Loaded {
        config: Config::default(),
        origins: vec![Origin::Default; SETTINGS.len()],
        problems: Vec::new(),
        warnings: environment.warnings(),
        open_files: None,
        traces: Origin::Default,
    };
    for layer in [file, environment.layer(), flags.layer.clone()] {
        loaded.put(layer);
    }
    loaded.put_traces(traces::read(environment));
    // Values that are wrong by themselves would be reported twice.
    if loaded.problems.is_empty() {
        loaded.problems = cross_check::problems(&loaded);
    }
    if loaded.problems.is_empty() {
        open_files::fit(&mut loaded, environment.open_files);
    }
    loaded.config.engine.guards = loaded.config.guards.settings(loaded.config.engine.lane_concurrency);
    loaded
}

impl Loaded {
    /// Where this setting's value came from.
    pub fn origin(&self, key: &str) -> Origin {
        let at = SETTINGS.iter().position(|setting| setting.key == key);
        at.and_then(|at| self.origins.get(at)).cloned().unwrap_or(Origin::Default)
    }

    fn put_traces(&mut self, traces: traces::Traces) {
        self.problems.extend(traces.problems);
        self.config.traces = traces.export;
        self.config.engine.traces = traces.options;
        self.traces = traces.origin;
    }

    fn put(&mut self, layer: Layer) {
        self.problems.extend(layer.problems);
        for GivenValue { setting, given, origin } in layer.values {
            match (setting.read)(&mut self.config, &given) {
                Ok(()) => {
                    let at = SETTINGS.iter().position(|other| other.key == setting.key);
                    if let Some(place) = at.and_then(|at| self.origins.get_mut(at)) {
                        *place = origin;
                    }
                }
                Err(wrong) => {
                    let about = Some((setting.key.to_owned(), shown(setting, &given)));
                    self.problems.push(Problem { origin, about, wrong });
                }
            }
        }
    }
}

/// A value that was given, without the secrets that may be in it.
fn shown(setting: &Setting, given: &Given) -> String {
    match setting.key {
        // The whole address of a sink may be a secret.
        key if key == alerts::SINKS.key => HIDDEN.into(),
        _ => masked(&given.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command, FromArgMatches};

    use super::*;

    fn flags(words: &[&str]) -> Flags {
        let command = Flags::augment_args(Command::new("test").no_binary_name(true));
        Flags::from_arg_matches(&command.get_matches_from(words)).unwrap()
    }

    fn environment(variables: &[(&str, &str)]) -> Environment {
        variables.iter().copied().collect()
    }

    #[test]
    fn a_flag_wins_over_a_variable_and_a_variable_over_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("r.toml");
        std::fs::write(&path, "listen = \"a:1\"\nstore = \"memory\"\n[log]\nlevel = \"warn\"\n").unwrap();
        let loaded = load(
            &flags(&["--config", path.to_str().unwrap(), "--listen", "c:3"]),
            &environment(&[("REDRIVE_LISTEN", "b:2"), ("REDRIVE_LOG_LEVEL", "debug")]),
        );
        assert_eq!(loaded.problems, []);
        assert_eq!((loaded.config.listen.as_str(), loaded.origin("listen")), ("c:3", Origin::Flag("listen")));
        assert_eq!(loaded.config.log_level, "debug");
        assert_eq!(loaded.origin("log.level"), Origin::Variable("REDRIVE_LOG_LEVEL".into()));
        assert_eq!(loaded.origin("store"), Origin::File { path, line: Some(2) });
        assert_eq!(loaded.origin("data_dir"), Origin::Default);
    }

    #[test]
    fn all_problems_are_found_at_once() {
        let loaded = load(
            &flags(&["--store", "mongo", "--lane-concurrency", "0"]),
            &environment(&[("REDRIVE_LISTEN", "nowhere"), ("REDRIVE_ENGINE_LEASE_MARGIN", "5")]),
        );
        let problems: Vec<_> = loaded.problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            problems,
            [
                "REDRIVE_LISTEN: listen = \"nowhere\": must be HOST:PORT, such as 127.0.0.1:8620, [::1]:8620 or localhost:0",
                "REDRIVE_ENGINE_LEASE_MARGIN: engine.lease_margin = \"5\": must be a duration such as 500ms, 30s, 15m, 24h or 7d",
                "--store: store = \"mongo\": must be sqlite, memory or postgres://user:password@host:5432/database",
                "--lane-concurrency: engine.lane_concurrency = \"0\": must be a whole number from 1 to 100000",
            ]
        );
    }

    #[test]
    fn values_that_contradict_each_other_are_both_named() {
        let loaded =
            load(&flags(&["--lane-concurrency", "50"]), &environment(&[("REDRIVE_ENGINE_MAX_IN_FLIGHT", "10")]));
        let problems: Vec<_> = loaded.problems.iter().map(ToString::to_string).collect();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with("REDRIVE_ENGINE_MAX_IN_FLIGHT: engine.max_in_flight = 10: "), "{problems:?}");
    }
}

//! The settings as flags, made from the table.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};

use super::given::Given;
use super::load::{GivenValue, Layer};
use super::{Config, Origin, SETTINGS};

const CONFIG: &str = "config";

/// The heading of the settings in a help; those of a section of the file have its name as well.
const HEADING: &str = "Settings";

/// The flags that were given.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    config_file: Option<PathBuf>,
    pub(super) layer: Layer,
}

impl Flags {
    /// The configuration file that a flag names.
    pub(super) fn config_file(&self) -> Option<(&Path, Origin)> {
        self.config_file.as_deref().map(|path| (path, Origin::Flag(CONFIG)))
    }
}

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        let defaults = Config::default();
        let config = Arg::new(CONFIG)
            .long(CONFIG)
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .help("The configuration file [default: none] [env: REDRIVE_CONFIG]");
        SETTINGS.iter().fold(command.next_help_heading(HEADING).arg(config), |command, setting| {
            let heading =
                setting.place().0.map_or_else(|| HEADING.to_owned(), |section| format!("{HEADING} in [{section}]"));
            let (meaning, default) = (capitalised(setting.meaning), setting.readable(&defaults));
            let help = format!("{meaning} [default: {default}] [env: {}]", setting.variable);
            let action = if setting.repeats { ArgAction::Append } else { ArgAction::Set };
            command.arg(
                Arg::new(setting.flag)
                    .long(setting.flag)
                    .value_name(setting.value_name)
                    .action(action)
                    .allow_hyphen_values(true)
                    .help_heading(heading)
                    .help(help),
            )
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut layer = Layer::default();
        for setting in &SETTINGS {
            let Some(values) = matches.get_many::<String>(setting.flag) else { continue };
            let mut values: Vec<String> = values.cloned().collect();
            let given = match setting.repeats {
                true => Given::Many(values),
                false => Given::Plain(values.pop().unwrap_or_default()),
            };
            layer.values.push(GivenValue { setting, given, origin: Origin::Flag(setting.flag) });
        }
        Ok(Flags { config_file: matches.get_one::<PathBuf>(CONFIG).cloned(), layer })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn capitalised(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

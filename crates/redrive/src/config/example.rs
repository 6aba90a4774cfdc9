//! A configuration file with every setting at its default, to start one's own from.

use super::{Config, SETTINGS, Setting};

const HEADER: &str = "\
# Redrive's configuration: every setting at its default.
# A flag wins over an environment variable, a variable over this file.
# Use it with `redrive serve --config FILE` or REDRIVE_CONFIG=FILE.
";

/// The file.
pub fn example() -> String {
    let defaults = Config::default();
    let mut text = HEADER.to_owned();
    let mut current = None;
    for setting in &SETTINGS {
        let (section, name) = setting.place();
        let heading = match section {
            Some(section) if current != Some(section) => format!("\n[{section}]"),
            _ => String::new(),
        };
        current = section;
        let Setting { meaning, variable, flag, .. } = setting;
        let value = setting.written(&defaults);
        text += &format!("{heading}\n# {meaning}\n# {variable}, --{flag}\n{name} = {value}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::file;
    use super::*;

    #[test]
    fn the_example_has_every_setting_and_reads_back_as_the_defaults() {
        let layer = file::parse(Path::new("example.toml"), &example());
        assert_eq!(layer.problems, []);
        assert_eq!(layer.values.len(), SETTINGS.len());
        let mut config = Config::default();
        // Different from the defaults, so that every value has to come from the file.
        (config.listen, config.log_level, config.engine.max_in_flight) = ("x:1".into(), "off".into(), 1);
        for said in layer.values {
            assert_eq!((said.setting.read)(&mut config, &said.given), Ok(()), "{said:?}");
        }
        assert_eq!(config, Config::default());
    }
}

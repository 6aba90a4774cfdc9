//! The configuration file: TOML, read with the line of every value.

use std::path::Path;

use redrive_standard::nearest;
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use super::given::{FRACTION, Given};
use super::load::{GivenValue, Layer};
use super::{Origin, Problem, SETTINGS, Setting};

/// Reads the file at `path`, which `named_by` named; a file that cannot be read is a problem, not a missing layer.
pub(super) fn read(path: &Path, named_by: &Origin) -> Layer {
    match std::fs::read_to_string(path) {
        Ok(text) => parse(path, &text),
        Err(error) => {
            let origin = Origin::File { path: path.to_owned(), line: None };
            let wrong = format!("the file that {named_by} names cannot be read: {error}");
            Layer::problem(Problem { origin, about: None, wrong })
        }
    }
}

pub(super) fn parse(path: &Path, text: &str) -> Layer {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader { path, text, layer: Layer::default() };
    if errors.is_empty() {
        reader.table(None, table.get_ref());
    }
    for error in errors {
        let origin = reader.at(error.span().map_or(0, |span| span.start));
        let wrong = format!("is not TOML: {}", error.message());
        reader.layer.problems.push(Problem { origin, about: None, wrong });
    }
    reader.layer
}

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    layer: Layer,
}

impl Reader<'_> {
    fn table(&mut self, section: Option<&str>, table: &DeTable<'_>) {
        for (name, value) in table {
            let key = section.map_or_else(
                || name.get_ref().to_string(),
                |section| format!("{section}.{name}", name = name.get_ref()),
            );
            let origin = self.at(name.span().start);
            match (Setting::find(&key), value.get_ref()) {
                (Some(setting), _) => {
                    self.layer.values.push(GivenValue { setting, given: self.given(value), origin });
                }
                (None, DeValue::Table(inner)) if section.is_none() && is_section(&key) => self.table(Some(&key), inner),
                (None, _) => {
                    let wrong = if is_section(&key) { format!("must be a section: [{key}]") } else { unknown(&key) };
                    let written = self.written(value);
                    self.layer.problems.push(Problem { origin, about: Some((key, written)), wrong });
                }
            }
        }
    }

    fn given(&self, value: &Spanned<DeValue<'_>>) -> Given {
        let other = |kind| Given::Other { kind, written: self.written(value) };
        match value.get_ref() {
            DeValue::String(text) => Given::Quoted(text.to_string()),
            DeValue::Integer(number) => whole(number).map_or_else(|| other("a number that is too large"), Given::Whole),
            DeValue::Array(items) => {
                let texts: Option<Vec<_>> =
                    items.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect();
                texts.map_or_else(|| other("a list of something else"), Given::Many)
            }
            DeValue::Float(_) => other(FRACTION),
            DeValue::Boolean(truth) => Given::Truth(*truth),
            DeValue::Datetime(_) => other("a date"),
            DeValue::Table(table) => Given::Section(
                table.iter().map(|(name, value)| (name.get_ref().to_string(), self.given(value))).collect(),
            ),
        }
    }

    fn written(&self, value: &Spanned<DeValue<'_>>) -> String {
        match value.get_ref() {
            DeValue::Table(_) => "{…}".into(),
            _ => self.text.get(value.span()).unwrap_or_default().to_owned(),
        }
    }

    fn at(&self, offset: usize) -> Origin {
        let before = self.text.get(..offset).unwrap_or(self.text);
        Origin::File { path: self.path.to_owned(), line: Some(before.matches('\n').count() + 1) }
    }
}

fn whole(number: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}

fn is_section(name: &str) -> bool {
    SETTINGS.iter().any(|setting| setting.place().0 == Some(name))
}

/// The error for an unknown key, with the key that was probably meant: a typo, or the right name in another section.
fn unknown(key: &str) -> String {
    let name = key.rsplit('.').next().unwrap_or(key);
    let meant = SETTINGS
        .iter()
        .find(|setting| setting.place().1 == name)
        .map(|setting| setting.key)
        .or_else(|| nearest(key, SETTINGS.iter().map(|setting| setting.key)));
    match meant {
        Some(meant) => format!("there is no such setting; did you mean {meant}?"),
        None => "there is no such setting; `redrive config --example` lists all settings".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        parse(Path::new("r.toml"), text).problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn values_come_with_their_lines() {
        let layer = parse(Path::new("r.toml"), "listen = \"a:1\"\n\n[engine]\nlane_concurrency = 0x10\n");
        let said: Vec<_> =
            layer.values.iter().map(|said| (said.setting.key, said.given.clone(), said.origin.to_string())).collect();
        assert_eq!(layer.problems, []);
        assert!(said.contains(&("listen", Given::Quoted("a:1".into()), "r.toml:1".into())), "{said:?}");
        assert!(said.contains(&("engine.lane_concurrency", Given::Whole(16), "r.toml:4".into())), "{said:?}");
    }

    #[test]
    fn an_unknown_key_names_the_one_that_was_meant() {
        for (text, expected) in [
            ("listn = 1", "r.toml:1: listn = 1: there is no such setting; did you mean listen?"),
            (
                "\nretention = \"9d\"",
                "r.toml:2: retention = \"9d\": there is no such setting; did you mean engine.retention?",
            ),
            ("engine = 3", "r.toml:1: engine = 3: must be a section: [engine]"),
            ("[engine]\n[engine.retention]", ""),
            (
                "[colours]\nred = 1",
                "r.toml:1: colours = {…}: there is no such setting; `redrive config --example` lists all settings",
            ),
        ] {
            let expected: Vec<&str> = Some(expected).filter(|text| !text.is_empty()).into_iter().collect();
            assert_eq!(problems(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_not_toml_is_named_with_its_line() {
        let problems = problems("listen = \"a:1\"\nstore = sqlite\n");
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with("r.toml:2: is not TOML: "), "{problems:?}");
    }
}

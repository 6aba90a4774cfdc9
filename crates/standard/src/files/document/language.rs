//! Which language a file is in.

use std::path::Path;

/// A language that documents are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// TOML.
    Toml,
    /// JSON.
    Json,
    /// YAML 1.2 with its core schema.
    Yaml,
}

impl Language {
    /// The language of a file, by its extension; by its content where that says nothing.
    pub fn of(name: &str, text: &str) -> Language {
        let extension = Path::new(name).extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        match extension.to_ascii_lowercase().as_str() {
            "toml" => Language::Toml,
            "json" => Language::Json,
            "yaml" | "yml" => Language::Yaml,
            _ => by_content(text),
        }
    }
}

/// The first line that says anything decides: its shape is never the same in two of the languages, as long as the
/// document is a table.
fn by_content(text: &str) -> Language {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let Some(first) = lines.next() else { return Language::Toml };
    if let Some(rest) = first.strip_prefix('{') {
        // A table in braces whose first key is not in double quotes is YAML's.
        let key = std::iter::once(rest).chain(lines).find_map(|line| line.trim_start().chars().next());
        return if matches!(key, None | Some('"' | '}')) { Language::Json } else { Language::Yaml };
    }
    if let Some(rest) = first.strip_prefix('[') {
        // A header, `[policies.a]` or `[[policies]]`, or else a list, which JSON has on its own.
        let is_header = rest.trim_start_matches('[').trim_end_matches(']').chars().all(is_key);
        return if is_header && !rest.is_empty() { Language::Toml } else { Language::Json };
    }
    if first.starts_with("---") || first.starts_with('%') {
        return Language::Yaml;
    }
    match first.split(['"', '\'']).step_by(2).find_map(|outside| outside.find(['=', ':']).map(|at| &outside[at..])) {
        Some(rest) if rest.starts_with('=') => Language::Toml,
        _ => Language::Yaml,
    }
}

fn is_key(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '"' | '\'' | ' ' | ':' | '#' | '[' | ']')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_decides_and_else_the_content() {
        for (name, text, expected) in [
            ("a.toml", "{}", Language::Toml),
            ("a.JSON", "a = 1", Language::Json),
            ("x/a.yml", "a = 1", Language::Yaml),
            ("a.yaml", "", Language::Yaml),
            ("-", "", Language::Toml),
            ("-", "# a comment\n\n  {\"a\": 1}", Language::Json),
            ("-", "{", Language::Json),
            ("-", "{ }", Language::Json),
            ("-", "{\n  \"a\": 1", Language::Json),
            ("-", "{a: 1}", Language::Yaml),
            ("-", "# {\n{\n  a: {b: 1}}", Language::Yaml),
            ("-", "{'a': 1}", Language::Yaml),
            ("-", "{ # comment", Language::Yaml),
            ("-", "[{}]", Language::Json),
            ("-", "[", Language::Json),
            ("-", "[[policies]]\na = 1", Language::Toml),
            ("-", "[policies.\"a:b\"] # first", Language::Toml),
            ("-", "policyId = \"a:b\"", Language::Toml),
            ("-", "\"a:b\" = 1", Language::Toml),
            ("-", "policies:\n  - a", Language::Yaml),
            ("-", "\"a=b\": 1", Language::Yaml),
            ("-", "--- # first", Language::Yaml),
            ("-", "%YAML 1.2", Language::Yaml),
            ("-", "- a", Language::Yaml),
            ("policies.conf", "a.b = 1", Language::Toml),
        ] {
            assert_eq!(Language::of(name, text), expected, "{name}: {text}");
        }
    }
}

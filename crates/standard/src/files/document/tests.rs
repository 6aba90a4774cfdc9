//! The three languages say the same, and each value is found where it is written.

use serde_json::json;

use super::*;

fn source(name: &str, text: &str) -> Arc<Source> {
    Source::try_new(name, text.as_bytes().to_vec()).unwrap()
}

fn problems(name: &str, text: &str) -> Vec<String> {
    read(&source(name, text)).unwrap_err().iter().map(ToString::to_string).collect()
}

const TOML: &str = r#"
[[policies]]
policyId = "ä日"  # wide
backoffType = "fixed"
codes = [404, 503]

[[policies]]
policyId = "b"
nested = { deep = [{ x = 1.5, y = true }] }
until = 2027-01-31
"#;

const YAML: &str = r#"# ümlaut 日本
policies:
  - policyId: "ä日"  # wide ü
    backoffType: fixed
    codes: [404, 503]

  - policyId: b
    nested:
      deep:
        - x: 1.5
          y: true
    until: 2027-01-31
"#;

const JSON: &str = r#"{
  "policies": [
    {"policyId": "\u00e4日", "backoffType": "fixed", "codes": [404, 503]},
    {"policyId": "b", "nested": {"deep": [{"x": 1.5, "y": true}]}, "until": "2027-01-31"}
  ]
}"#;

fn field(name: &str) -> Step {
    Step::Field(name.into())
}

#[test]
fn the_same_document_in_three_languages_is_the_same_tree() {
    let expected = json!({"policies": [
        {"policyId": "ä日", "backoffType": "fixed", "codes": [404, 503]},
        {"policyId": "b", "nested": {"deep": [{"x": 1.5, "y": true}]}, "until": "2027-01-31"},
    ]});
    for (name, text) in [("a.toml", TOML), ("a.yaml", YAML), ("a.json", JSON)] {
        assert_eq!(read(&source(name, text)).unwrap().to_json(), expected, "{name}");
        let crlf = text.replace('\n', "\r\n");
        assert_eq!(read(&source(name, &crlf)).unwrap().to_json(), expected, "{name} with CRLF");
    }
}

#[test]
fn a_path_finds_what_it_speaks_of_in_every_language() {
    let first = || vec![field("policies"), Step::Index(0)];
    let second = || vec![field("policies"), Step::Index(1)];
    let with = |mut path: Vec<Step>, steps: &[Step]| {
        path.extend_from_slice(steps);
        path
    };
    // path, what it finds in TOML, YAML, JSON
    let cases = [
        (with(first(), &[field("codes"), Step::Item("503".into())]), ["503"; 3]),
        (with(first(), &[field("codes"), Step::Index(0)]), ["404"; 3]),
        (with(first(), &[field("codes")]), ["[404, 503]"; 3]),
        (with(first(), &[field("backoff")]), ["\"fixed\"", "fixed", "\"fixed\""]),
        (with(first(), &[field("maxAttempts")]), ["\"ä日\"", "\"ä日\"", "\"\\u00e4日\""]),
        (with(second(), &[field("nested")]), ["nested", "nested", "\"nested\""]),
        (with(second(), &[field("nested"), field("deep"), Step::Index(0), field("x")]), ["1.5"; 3]),
        (with(second(), &[field("nested"), field("no"), field("way")]), ["nested", "nested", "\"nested\""]),
        (with(second(), &[field("until")]), ["2027-01-31", "2027-01-31", "\"2027-01-31\""]),
    ];
    for (path, expected) in &cases {
        for ((name, text), expected) in [("a.toml", TOML), ("a.yaml", YAML), ("a.json", JSON)].into_iter().zip(expected)
        {
            for text in [text.to_owned(), text.replace('\n', "\r\n"), format!("\u{feff}{text}")] {
                let source = source(name, &text);
                let span = read(&source).unwrap().span_at(path).unwrap();
                assert_eq!(&source.text()[span], *expected, "{name} {path:?} in {text:?}");
            }
        }
    }
}

#[test]
fn what_a_path_cannot_find_is_shown_by_the_nearest_value_around_it() {
    for (name, text, path, expected) in [
        ("a.toml", "[policies.a]\nx = 1", vec![field("policies"), field("a"), field("y")], "a"),
        ("a.toml", "[[policies]]\nx = 1", vec![field("policies"), Step::Index(0), field("y")], "[[policies]]"),
        ("a.toml", "x = [1]", vec![field("x"), Step::Index(9)], "[1]"),
        ("a.yaml", "a:\n  b:\n", vec![field("a"), field("b"), field("c")], "b"),
        ("a.yaml", "a: &x\n  b: 1\nc: *x\n", vec![field("c"), field("b")], "1"),
        ("a.yaml", "a: &x 5\nc: *x\n", vec![field("c")], "*x"),
        ("a.yaml", "a: |\n  one\n  two\nb: 1", vec![field("b")], "1"),
    ] {
        let source = source(name, text);
        let span = read(&source).unwrap().span_at(&path).unwrap();
        assert_eq!(&source.text()[span], expected, "{text:?} {path:?}");
    }
}

#[test]
fn a_syntax_error_has_its_line_and_column_and_says_what_is_wrong() {
    for (name, text, expected) in [
        ("a.toml", "a = 1\nb = sqlite\n", "a.toml:2:5: this is not TOML: "),
        ("a.toml", "a = 1\na = 2\n", "a.toml:2:1: this is not TOML: duplicate key"),
        ("a.toml", "a = nan", "a.toml:1:5: this number cannot be used"),
        ("a.toml", "a = 99999999999999999999", "a.toml:1:5: this number cannot be used"),
        ("a.json", "{\"ä\": 1,\n \"b\" 2}", "a.json:2:6: this is not JSON: expected `:`"),
        ("a.json", "", "a.json:1:1: this is not JSON: there is nothing in it"),
        ("a.json", "{\"a\": 1, \"a\": 2}", "a.json:1:10: the key \"a\" is there twice"),
        ("a.json", "{\"a\": \"\\ud800\"}", "a.json:1:7: this cannot be used: "),
        ("a.json", "{\"a\": 1e999}", "a.json:1:7: this cannot be used: number out of range"),
        ("a.json", "{} {}", "a.json:1:4: this is not JSON: trailing characters"),
        ("a.yaml", "a: 1\na: 2\n", "a.yaml:2:1: the key \"a\" is there twice"),
        ("a.yaml", "a: 1\n---\nb: 2\n", "a.yaml:2:1: there is a second document here"),
        ("a.yaml", "1: a\n", "a.yaml:1:1: a key must be text, not a number"),
        ("a.yaml", "? [a]\n: b\n", "a.yaml:1:3: a key must be text, not a list"),
        ("a.yaml", "a: &a [*a]\n", "a.yaml:1:8: this alias stands for a value that it is itself a part of"),
        ("a.yaml", "a: *b\n", "a.yaml:1:4: this is not YAML: "),
        ("a.yaml", "a: [1\nb: 2\n", "a.yaml:2:2: this is not YAML: "),
        ("a.yaml", "a: .nan", "a.yaml:1:4: .nan is a number that cannot be used here"),
        ("a.yaml", "a: !env X", "a.yaml:1:4: the tag !env is not supported"),
        ("a.yaml", "b: &b {c: 1}\na:\n  <<: *b\n", "a.yaml:3:3: YAML 1.2 has no merge keys"),
    ] {
        let problems = problems(name, text);
        assert!(problems[0].starts_with(expected), "{text:?}\n{problems:?}\n{expected}");
    }
}

#[test]
fn the_syntax_errors_of_a_toml_file_are_named_up_to_a_number() {
    let two = problems("a.toml", "a = sqlite\nb = 2\nc = [1,\n");
    assert!(two.len() >= 2, "{two:?}");
    assert_eq!(problems("a.toml", &"a = b\n".repeat(1_000)).len(), 20);
}

#[test]
fn a_tree_has_bounds() {
    let deep = |open: &str, close: &str, depth: usize| format!("{}{}", open.repeat(depth), close.repeat(depth));
    for (name, text) in [
        ("a.json", format!("{{\"a\": {}}}", deep("[", "]", MAX_DEPTH + 1))),
        ("a.yaml", format!("a: {}", deep("[", "]", MAX_DEPTH + 1))),
        ("a.toml", format!("a = {}", deep("[", "]", MAX_DEPTH + 1))),
        ("a.yaml", format!("a: &a {}\nb: {}*a{}\n", deep("[", "]", 40), "[".repeat(30), "]".repeat(30))),
        ("a.yaml", format!("a: {}x", "- ".repeat(MAX_DEPTH + 1)).replacen("a: ", "a:\n ", 1)),
    ] {
        assert_eq!(problems(name, &text).len(), 1, "{name}");
        assert!(problems(name, &text)[0].contains("more than 64 deep"), "{:?}", problems(name, &text));
    }
    let shallow = format!("{{\"a\": {}}}", deep("[", "]", MAX_DEPTH));
    assert!(read(&source("a.json", &shallow)).is_ok());
    let many = format!("{{\"a\": [{}1]}}", "1,".repeat(MAX_VALUES));
    assert!(problems("a.json", &many)[0].contains("more than 100000 values"));
    let depths = format!("{{\"a\": {}}}", deep("[", "]", 50_000));
    assert_eq!(problems("a.json", &depths).len(), 1);
}

#[test]
fn aliases_that_multiply_are_stopped() {
    let mut laughs = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let uses = vec![format!("*a{}", level - 1); 10].join(", ");
        laughs.push_str(&format!("a{level}: &a{level} [{uses}]\n"));
    }
    let problems = problems("a.yaml", &laughs);
    assert!(problems[0].contains("more than 100000 values"), "{problems:?}");
}

#[test]
fn aliases_of_one_long_text_are_stopped_before_they_are_copied() {
    let long = format!("a: &a \"{}\"\nb: [{}*a]\n", "x".repeat(100_000), "*a, ".repeat(9_999));
    let problems = problems("a.yaml", &long);
    assert!(problems[0].contains("more than 8 MiB of text"), "{problems:?}");
    // The text itself, its copy for the aliases, and 81 of those: one more than fits.
    assert!(problems[0].starts_with(&format!("a.yaml:2:{}:", 5 + 4 * 81)), "{problems:?}");
    let keys = format!("a: &a {{{}: 1}}\nb: [{}*a]\n", "x".repeat(100_000), "*a, ".repeat(9_999));
    assert!(self::problems("a.yaml", &keys)[0].contains("more than 8 MiB of text"));
}

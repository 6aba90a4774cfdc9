//! SARIF output against what the published schema (2.1.0) requires and allows of the objects that we write.

use redrive_standard::files::{Source, judge, report};
use redrive_standard::rules::Check;
use serde_json::Value;

use super::TODAY;
use super::formats::verdict;

/// What the schema says of one kind of object: the properties that it must have, those that it may have of which we
/// write some, and for those that hold objects again which kind that is (`[]` for lists of them).
struct Kind {
    name: &'static str,
    required: &'static [&'static str],
    allowed: &'static [&'static str],
    holds: &'static [(&'static str, &'static str)],
}

const SCHEMA: &[Kind] = &[
    Kind { name: "log", required: &["version", "runs"], allowed: &["$schema"], holds: &[("runs", "run[]")] },
    Kind {
        name: "run",
        required: &["tool"],
        allowed: &["columnKind", "invocations", "results"],
        holds: &[("tool", "tool"), ("invocations", "invocation[]"), ("results", "result[]")],
    },
    Kind { name: "tool", required: &["driver"], allowed: &[], holds: &[("driver", "toolComponent")] },
    Kind {
        name: "toolComponent",
        required: &["name"],
        allowed: &["version", "semanticVersion", "rules", "notifications"],
        holds: &[("rules", "reportingDescriptor[]"), ("notifications", "reportingDescriptor[]")],
    },
    Kind {
        name: "reportingDescriptor",
        required: &["id"],
        allowed: &["name", "shortDescription", "fullDescription", "help", "defaultConfiguration", "properties"],
        holds: &[
            ("shortDescription", "multiformatMessageString"),
            ("fullDescription", "multiformatMessageString"),
            ("help", "multiformatMessageString"),
            ("defaultConfiguration", "reportingConfiguration"),
        ],
    },
    Kind { name: "multiformatMessageString", required: &["text"], allowed: &["markdown"], holds: &[] },
    Kind { name: "reportingConfiguration", required: &[], allowed: &["level"], holds: &[] },
    Kind {
        name: "invocation",
        required: &["executionSuccessful"],
        allowed: &["toolExecutionNotifications"],
        holds: &[("toolExecutionNotifications", "notification[]")],
    },
    Kind {
        name: "notification",
        required: &["message"],
        allowed: &["descriptor", "level", "locations"],
        holds: &[("message", "message"), ("descriptor", "reportingDescriptorReference"), ("locations", "location[]")],
    },
    // One of index, guid and id must be there.
    Kind { name: "reportingDescriptorReference", required: &["id"], allowed: &["index"], holds: &[] },
    Kind {
        name: "result",
        required: &["message"],
        allowed: &["ruleId", "ruleIndex", "level", "locations", "partialFingerprints", "suppressions"],
        holds: &[("message", "message"), ("locations", "location[]"), ("suppressions", "suppression[]")],
    },
    // One of text and id must be there.
    Kind { name: "message", required: &["text"], allowed: &[], holds: &[] },
    Kind { name: "suppression", required: &["kind"], allowed: &["status", "justification"], holds: &[] },
    Kind {
        name: "location",
        required: &[],
        allowed: &["physicalLocation"],
        holds: &[("physicalLocation", "physicalLocation")],
    },
    // One of artifactLocation and address must be there.
    Kind {
        name: "physicalLocation",
        required: &["artifactLocation"],
        allowed: &["region"],
        holds: &[("artifactLocation", "artifactLocation"), ("region", "region")],
    },
    Kind { name: "artifactLocation", required: &[], allowed: &["uri"], holds: &[] },
    Kind { name: "region", required: &[], allowed: &["startLine", "startColumn", "endLine", "endColumn"], holds: &[] },
];

fn conforms(value: &Value, kind: &str, path: &str) {
    if let Some(item) = kind.strip_suffix("[]") {
        let items = value.as_array().unwrap_or_else(|| panic!("{path} must be a list"));
        items.iter().enumerate().for_each(|(at, value)| conforms(value, item, &format!("{path}[{at}]")));
        return;
    }
    let kind = SCHEMA.iter().find(|known| known.name == kind).unwrap();
    let fields = value.as_object().unwrap_or_else(|| panic!("{path} must be an object"));
    for required in kind.required {
        assert!(fields.contains_key(*required), "{path} must have {required}");
    }
    for (name, value) in fields {
        let known = kind.required.contains(&name.as_str()) || kind.allowed.contains(&name.as_str());
        assert!(known, "{path} must not have {name}");
        match kind.holds.iter().find(|(held, _)| held == name) {
            Some((_, inner)) => conforms(value, inner, &format!("{path}.{name}")),
            None if name == "level" => assert!(is_one_of(value, &["none", "note", "warning", "error"]), "{path}"),
            None if name == "uri" => assert!(is_reference(value.as_str().unwrap()), "{path}: {value}"),
            None if name.ends_with("Line") || name.ends_with("Column") => {
                assert!(value.as_u64().unwrap() > 0, "{path}")
            }
            None => assert!(!value.is_null(), "{path}.{name} must not be null"),
        }
    }
}

fn is_one_of(value: &Value, names: &[&str]) -> bool {
    value.as_str().is_some_and(|value| names.contains(&value))
}

/// Characters that a URI reference may have, roughly.
fn is_reference(text: &str) -> bool {
    text.chars().all(|letter| letter.is_ascii_graphic() && !"\"<>\\^`{|} ".contains(letter))
}

fn log() -> Value {
    serde_json::from_str(&report::sarif(&verdict(), "1.2.3").unwrap()).unwrap()
}

#[test]
fn the_log_has_all_that_the_schema_requires_and_nothing_that_it_does_not_know() {
    let log = log();
    conforms(&log, "log", "log");
    assert_eq!((&log["version"], &log["runs"][0]["columnKind"]), (&"2.1.0".into(), &"unicodeCodePoints".into()));
    let clean = judge(vec![Source::try_new("a.toml", b"policyId = \"a\"".to_vec())], TODAY.parse().unwrap());
    let clean: Value = serde_json::from_str(&report::sarif(&clean, "1.2.3").unwrap()).unwrap();
    conforms(&clean, "log", "log");
    let run = &clean["runs"][0];
    assert_eq!((&run["results"], &run["invocations"][0]["executionSuccessful"]), (&Value::Array(vec![]), &true.into()));
}

#[test]
fn every_result_points_to_its_rule_and_its_place() {
    let log = log();
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), Check::ALL.len() + 1);
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), 10);
    for result in results {
        let rule = &rules[usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap()];
        assert_eq!((&rule["id"], &rule["defaultConfiguration"]["level"]), (&result["ruleId"], &result["level"]));
        let region = &result["locations"][0]["physicalLocation"]["region"];
        assert!(region["endColumn"].as_u64() > Some(0), "{result}");
    }
    let uris: Vec<_> =
        results.iter().map(|result| &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]).collect();
    assert!(uris.contains(&&"policies.toml".into()) && uris.contains(&&"shop%20services.yaml".into()), "{uris:?}");
}

#[test]
fn what_is_approved_is_suppressed_and_what_could_not_be_read_is_a_failed_run() {
    let log = log();
    let run = &log["runs"][0];
    let suppressed: Vec<_> = run["results"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|result| !result["suppressions"].as_array().unwrap().is_empty())
        .map(|result| result["suppressions"][0]["justification"].as_str().unwrap())
        .collect();
    assert_eq!(suppressed, ["approved by Integration Architecture Board until 2027-01-31"]);
    let invocation = &run["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], false);
    assert_eq!(invocation["toolExecutionNotifications"].as_array().unwrap().len(), 2);
    let results = run["results"].as_array().unwrap().iter();
    let unread: Vec<_> = results.filter(|result| result["ruleId"] == "could-not-read").collect();
    let prints: Vec<_> = unread.iter().map(|result| result["partialFingerprints"]["redriveLint/v1"].as_str()).collect();
    assert_eq!(unread.len(), 2);
    assert_ne!(prints[0], prints[1]);
}

#[test]
fn a_path_is_the_same_however_the_file_was_named() {
    const TEXT: &[u8] = b"polcies = 3\n[[policies]]\npolicyId = \"a\"\nbackoff = \"fixed\"";
    let log = |name: &str| {
        let files = vec![Source::try_new(name, TEXT.to_vec())];
        report::sarif(&judge(files, TODAY.parse().unwrap()), "1.2.3").unwrap()
    };
    assert_eq!(log("a/b.toml"), log("./a//./b.toml"));
    assert_ne!(log("a/b.toml"), log("b.toml"));
}

//! What matters most in the container file, checked without a container engine. `cargo xtask interop hadolint` checks more.

use std::fs;

use crate::binaries;

/// The instructions of the last stage, which is the image, as (name, rest); lines that continue are joined.
fn image() -> Vec<(String, String)> {
    let text = read("deploy/Dockerfile").replace("\\\n", " ");
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let all: Vec<(String, String)> = lines
        .map(|line| line.split_once(' ').unwrap())
        .map(|(name, rest)| (name.to_owned(), rest.to_owned()))
        .collect();
    let last_stage = all.iter().rposition(|(name, _)| name == "FROM").unwrap();
    all[last_stage..].to_vec()
}

fn of(instructions: &[(String, String)], name: &str) -> String {
    let found: Vec<_> = instructions.iter().filter(|(known, _)| known == name).map(|(_, rest)| rest.as_str()).collect();
    assert_eq!(found.len(), 1, "{name} in {instructions:#?}");
    found[0].to_owned()
}

fn read(path: &str) -> String {
    fs::read_to_string(binaries::workspace_root().join(path)).unwrap()
}

#[test]
fn the_image_is_built_with_the_oldest_compiler_that_the_workspace_supports_and_runs_on_the_same_debian() {
    let manifest = read("Cargo.toml");
    let version = manifest.lines().find_map(|line| line.strip_prefix("rust-version = \"")?.strip_suffix('"')).unwrap();
    let container = read("deploy/Dockerfile");
    assert!(container.contains(&format!("\nFROM rust:{version}-bookworm AS build\n")), "{container}");
    // A newer C library than the image's would be missing at run time.
    assert_eq!(of(&image(), "FROM"), "debian:bookworm-slim");
}

#[test]
fn the_image_runs_the_service_without_a_shell_and_not_as_root() {
    let image = image();
    let (user, group) = { of(&image, "USER") }.split_once(':').map(|(u, g)| (u.to_owned(), g.to_owned())).unwrap();
    for number in [user, group] {
        assert!(number.parse::<u32>().unwrap() >= 10_000, "{number} may be a user of the host");
        assert!(of(&image, "RUN").contains(&number), "{number} is not made by RUN");
    }
    // The exec form: with a shell in between, SIGTERM would not reach the service.
    assert_eq!([of(&image, "ENTRYPOINT"), of(&image, "CMD")], [r#"["redrive"]"#, r#"["serve"]"#]);
    assert!(of(&image, "HEALTHCHECK").ends_with(r#" CMD ["redrive", "nodes"]"#));
}

#[test]
fn the_image_contains_no_secret() {
    let text = read("deploy/Dockerfile").to_lowercase();
    for word in ["password", "secret", "token", "aws_", "postgres://"] {
        assert!(!text.contains(word), "{word} is in deploy/Dockerfile");
    }
}

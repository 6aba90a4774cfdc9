//! The package of the dev build: what is in it, and that it is the same every time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::deb::{Compression, VERSION};
use super::source_date::SourceDate;
use super::{binaries, licences, make, tool, unit};

/// 2020-01-01, before every build.
const DATE: SourceDate = SourceDate(1_577_836_800);

/// What is installed beside the manual pages: mode, owner, path.
const INSTALLED: &[&str] = &[
    "-rw-r----- root/root ./etc/redrive/redrive.env",
    "-rw-r--r-- root/root ./lib/systemd/system/redrive.service",
    "-rwxr-xr-x root/root ./usr/bin/redrive",
    "-rw-r--r-- root/root ./usr/share/bash-completion/completions/redrive",
    "-rw-r--r-- root/root ./usr/share/doc/redrive/changelog.Debian.gz",
    "-rw-r--r-- root/root ./usr/share/doc/redrive/changelog.gz",
    "-rw-r--r-- root/root ./usr/share/doc/redrive/copyright",
    "-rw-r--r-- root/root ./usr/share/doc/redrive/licences-of-crates.gz",
    "-rw-r--r-- root/root ./usr/share/fish/vendor_completions.d/redrive.fish",
    "-rw-r--r-- root/root ./usr/share/lintian/overrides/redrive",
    "-rw-r--r-- root/root ./usr/share/zsh/vendor-completions/_redrive",
];

#[test]
fn the_package_installs_the_program_with_its_unit_configuration_pages_and_completions() {
    let directory = tempfile::tempdir().unwrap();
    let package = package(directory.path());
    let listing = printed(Command::new("dpkg-deb").arg("-c").arg(&package).env("TZ", "UTC"));
    let (pages, others): (Vec<&str>, Vec<&str>) =
        listing.lines().filter(|line| !line.ends_with('/')).partition(|line| line.contains("./usr/share/man/man1/"));
    let without_size_and_time = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[3..5], ["2020-01-01", "00:00"], "{line}");
        [words[0], words[1], words[5]].join(" ")
    };
    assert_eq!(others.iter().map(without_size_and_time).collect::<Vec<_>>(), INSTALLED);
    for page in ["redrive.1.gz", "redrive-serve.1.gz", "redrive-tasks-list.1.gz"] {
        assert!(pages.iter().any(|line| line.ends_with(&format!("man1/{page}"))), "{page} is not in\n{listing}");
    }

    let field = |name: &str| printed(Command::new("dpkg-deb").arg("-f").arg(&package).arg(name));
    assert_eq!([field("Package"), field("Version")], ["redrive", VERSION]);
    let depends = field("Depends");
    assert!(depends.starts_with("adduser, ca-certificates, libc6 (>= "), "{depends}");

    let root = directory.path().join("installed");
    printed(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&root));
    let program = root.join("usr/bin/redrive");
    assert_eq!(printed(Command::new(&program).arg("--version")), concat!("redrive ", env!("CARGO_PKG_VERSION")));
    let script = root.join("usr/share/bash-completion/completions/redrive");
    printed(Command::new("bash").arg("-n").arg(script));
    let unit = fs::read_to_string(root.join("lib/systemd/system/redrive.service")).unwrap();
    for line in ["ExecStart=/usr/bin/redrive serve", "User=redrive", "EnvironmentFile=-/etc/redrive/redrive.env"] {
        assert!(unit.lines().any(|known| known == line), "{line} is not in\n{unit}");
    }
    every_setting_of_the_configuration_is_known(&program, &root.join("etc/redrive/redrive.env"));
}

#[test]
fn the_package_keeps_its_configuration_at_upgrades_and_its_scripts_are_valid() {
    let directory = tempfile::tempdir().unwrap();
    let package = package(directory.path());
    let parts = directory.path().join("control");
    printed(Command::new("dpkg-deb").arg("-e").arg(&package).arg(&parts));
    assert_eq!(fs::read_to_string(parts.join("conffiles")).unwrap(), "/etc/redrive/redrive.env\n");
    for script in ["postinst", "prerm", "postrm"] {
        printed(Command::new("sh").arg("-n").arg(parts.join(script)));
        let text = fs::read_to_string(parts.join(script)).unwrap();
        let text = text.lines().filter(|line| !line.trim_start().starts_with('#')).collect::<Vec<_>>().join("\n");
        for starting in ["systemctl start", "systemctl enable", "invoke start", "invoke restart", "helper enable"] {
            assert!(!text.contains(starting), "{script} starts the service unasked: {starting}");
        }
    }
}

#[test]
fn the_licences_of_the_crates_in_the_program_are_known_and_those_of_other_crates_are_not_among_them() {
    let text = licences::text().unwrap();
    let (list, texts) = text.split_once(&"-".repeat(80)).unwrap();
    for name in ["tokio", "rustls", "libsqlite3-sys", "clap_mangen"] {
        assert!(list.lines().any(|line| line.starts_with(&format!("{name} "))), "{name} is not in\n{list}");
    }
    for name in ["redrive", "tempfile", "s3s"] {
        assert!(
            !list.lines().any(|line| line.starts_with(&format!("{name} "))),
            "{name} is not in the program\n{list}"
        );
    }
    assert!(texts.contains("Tokio Contributors") && texts.contains("Permission is hereby granted, free of charge"));
}

#[test]
fn the_same_program_makes_the_same_package() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let read = |directory: &Path| fs::read(package(directory)).unwrap();
    assert!(read(one.path()) == read(two.path()), "two packages of the same program differ");
}

#[test]
fn a_unit_without_a_line_that_the_package_changes_is_an_error() {
    let error = unit::for_the_package("[Service]\nExecStart=/usr/local/bin/redrive serve\n").unwrap_err();
    assert!(error.to_string().contains("\"DynamicUser=yes\""), "{error}");
}

/// Every line that is commented out in the configuration is a setting that the program takes.
fn every_setting_of_the_configuration_is_known(program: &Path, file: &Path) {
    let text = fs::read_to_string(file).unwrap();
    let settings: Vec<(&str, &str)> = text
        .lines()
        .filter_map(|line| line.strip_prefix('#')?.split_once('='))
        .filter(|(name, _)| !name.contains(' '))
        .collect();
    assert!(settings.len() >= 5, "{settings:?}");
    let shown = printed(binaries::redrive(program).arg("config").envs(settings.iter().copied()));
    for (name, _) in settings.iter().filter(|(name, _)| name.starts_with("REDRIVE_")) {
        assert!(shown.contains(name), "{name} has no effect:\n{shown}");
    }
}

/// The package of the dev build that lies beside this test.
fn package(directory: &Path) -> PathBuf {
    let out = directory.join("dist");
    fs::create_dir(&out).unwrap();
    make(&built(), &out, DATE, Compression::None).unwrap()
}

fn built() -> PathBuf {
    let directory = std::env::current_exe().unwrap().parent().and_then(Path::parent).unwrap().to_owned();
    let program = directory.join("redrive");
    assert!(program.is_file(), "build it first: cargo build -p redrive ({})", program.display());
    program
}

fn printed(command: &mut Command) -> String {
    tool::line(command).unwrap()
}

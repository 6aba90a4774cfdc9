//! The Debian package, made of a tree by `dpkg-deb`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::licences;
use super::source_date::SourceDate;
use super::tool;
use super::tree::Tree;
use crate::binaries;

/// The version of the program and the revision of its packaging.
pub(super) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-1");
/// There is no address for bug reports yet; `.invalid` never is one.
const MAINTAINER: &str = "The Redrive authors <redrive@redrive.invalid>";
const DESCRIPTION: &str = "durable retry service for HTTP requests
 Redrive stores HTTP requests and retries them with backoff and jitter until
 they are delivered or their attempts or time run out. It survives crashes,
 sends the same idempotency key with every attempt, and keeps what could not be
 delivered.
 .
 The service is installed but not started: systemctl enable --now redrive";

/// How the package is compressed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Compression {
    /// Small, for users.
    Xz,
    /// Quick, for tests.
    #[cfg_attr(not(test), expect(dead_code, reason = "only tests are in a hurry"))]
    None,
}

/// Installs what Debian wants in every package, the licence and two changelogs, and the licences of the crates.
pub(super) fn install_documents(tree: &mut Tree, date: SourceDate) -> Result<()> {
    let sources = binaries::workspace_root();
    let debian = sources.join("deploy/debian");
    tree.install_file("usr/share/doc/redrive/copyright", 0o644, &debian.join("copyright"))?;
    tree.install_file("usr/share/lintian/overrides/redrive", 0o644, &debian.join("lintian-overrides"))?;
    tree.install("usr/share/doc/redrive/changelog.gz", 0o644, &tool::gzip(&sources.join("CHANGELOG.md"))?)?;
    let entry = format!(
        "redrive ({VERSION}) unstable; urgency=medium\n\n  * New version; its changes are in changelog.gz.\n\n -- {MAINTAINER}  {}\n",
        date.as_mail_date()?
    );
    install_compressed(tree, "usr/share/doc/redrive/changelog.Debian.gz", &entry)?;
    install_compressed(tree, "usr/share/doc/redrive/licences-of-crates.gz", &licences::text()?)
}

/// Installs a text, compressed. `gzip` reads files only: the text is one beside the tree for a moment.
fn install_compressed(tree: &mut Tree, path: &str, text: &str) -> Result<()> {
    let plain = tree.root().with_extension("text");
    fs::write(&plain, text).with_context(|| format!("writing {}", plain.display()))?;
    let compressed = tool::gzip(&plain)?;
    fs::remove_file(&plain).with_context(|| format!("removing {}", plain.display()))?;
    tree.install(path, 0o644, &compressed)
}

/// Builds the package in the directory `out` and returns its path.
pub(super) fn build(tree: &mut Tree, out: &Path, date: SourceDate, compression: Compression) -> Result<PathBuf> {
    let architecture = tool::line(Command::new("dpkg").arg("--print-architecture"))?;
    let depends = shared_libraries(&tree.root().join("usr/bin/redrive"), out)?;
    let sums = tool::output(Command::new("md5sum").args(tree.unchanging_paths()).current_dir(tree.root()))?;
    tree.write("DEBIAN/control", 0o644, control(&architecture, &depends, tree.kibibytes()).as_bytes())?;
    tree.write("DEBIAN/md5sums", 0o644, &sums)?;
    tree.write("DEBIAN/conffiles", 0o644, b"/etc/redrive/redrive.env\n")?;
    for script in ["postinst", "prerm", "postrm"] {
        let from = binaries::workspace_root().join("deploy/debian").join(script);
        tree.write(&format!("DEBIAN/{script}"), 0o755, &fs::read(&from).with_context(|| format!("reading {script}"))?)?;
    }
    tree.finish(date)?;

    let package = out.join(format!("redrive_{VERSION}_{architecture}.deb"));
    let mut dpkg_deb = Command::new("dpkg-deb");
    // With several threads xz cuts its input into blocks, and the result would depend on the machine.
    dpkg_deb.args(["--root-owner-group", "--threads-max=1"]).arg(match compression {
        Compression::Xz => "-Zxz",
        Compression::None => "-Znone",
    });
    dpkg_deb.arg("--build").arg(tree.root()).arg(&package).env("SOURCE_DATE_EPOCH", date.0.to_string());
    tool::output(&mut dpkg_deb)?;
    Ok(package)
}

/// The packages with the shared libraries that the program needs, in the versions that have all of its symbols.
fn shared_libraries(program: &Path, out: &Path) -> Result<String> {
    // dpkg-shlibdeps works in the sources of a package: this is the least that it accepts.
    let sources = out.join("shlibdeps");
    fs::create_dir_all(sources.join("debian")).context("making a directory for dpkg-shlibdeps")?;
    fs::write(sources.join("debian/control"), "Source: redrive\n\nPackage: redrive\nArchitecture: any\n")
        .context("writing a file for dpkg-shlibdeps")?;
    let found = tool::line(Command::new("dpkg-shlibdeps").arg("-O").arg(program).current_dir(&sources))?;
    fs::remove_dir_all(&sources).context("removing the directory for dpkg-shlibdeps")?;
    let depends = found.strip_prefix("shlibs:Depends=").context("dpkg-shlibdeps printed something else")?;
    Ok(depends.to_owned())
}

fn control(architecture: &str, libraries: &str, kibibytes: usize) -> String {
    // `adduser` makes the user; authorities are needed as soon as a target is https.
    format!(
        "Package: redrive\n\
         Version: {VERSION}\n\
         Architecture: {architecture}\n\
         Maintainer: {MAINTAINER}\n\
         Installed-Size: {kibibytes}\n\
         Depends: adduser, ca-certificates, {libraries}\n\
         Suggests: postgresql\n\
         Section: net\n\
         Priority: optional\n\
         Description: {DESCRIPTION}\n"
    )
}

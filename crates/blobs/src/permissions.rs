//! Makes files and directories readable for their owner only: bodies may hold secrets.
//!
//! The local object store creates both with the permissions that the process's umask leaves. So directories are created
//! here first, and the permissions of a file are set before it gets its final name; until then it is in a closed
//! directory. A root directory that existed before keeps its permissions.

use std::io;
use std::path::Path;

/// Creates a directory and its missing parents, for the owner only, and syncs them to disk.
pub(crate) fn make_directory(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let missing: Vec<&Path> = directory.ancestors().take_while(|path| is_missing(path)).collect();
    for_the_owner().recursive(true).create(directory)?;
    // The entry of the new directory must be durable too.
    missing.into_iter().rev().filter_map(Path::parent).try_for_each(sync)
}

/// Like [`make_directory`], below `root`, which must exist.
pub(crate) fn make_directory_below(root: &Path, directory: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = directory.ancestors().take_while(|path| *path != root && !path.is_dir()).collect();
    for directory in missing.into_iter().rev() {
        match for_the_owner().create(directory) {
            // Another upload needs it as well.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
        directory.parent().map_or(Ok(()), sync)?;
    }
    Ok(())
}

fn for_the_owner() -> std::fs::DirBuilder {
    let mut builder = std::fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

/// Makes a file readable for its owner only.
pub(crate) fn close_file(file: &Path) -> io::Result<()> {
    close(file, 0o600)
}

/// Makes a directory readable for its owner only, if it exists.
pub(crate) fn close_directory(directory: &Path) -> io::Result<()> {
    if directory.is_dir() { close(directory, 0o700) } else { Ok(()) }
}

fn close(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    if std::fs::metadata(path)?.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

fn is_missing(path: &Path) -> bool {
    !path.as_os_str().is_empty() && !path.exists()
}

fn sync(directory: &Path) -> io::Result<()> {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    std::fs::File::open(directory)?.sync_all()
}

/* Writes down, in order, every change that a process makes to the files below one directory.
 *
 * Loaded before libc (LD_PRELOAD), it stands in front of the calls that change files. The directory is named by
 * RECORDED_DIRECTORY, the log by RECORDED_LOG. One lock is held across the real call and its line in the log, so the
 * order in the log is an order in which the changes took effect. A write to the file `marks` of the directory is a
 * mark: the process's own words between the changes.
 *
 * A record is six numbers of 64 bits (kind, inode, offset, length, bytes of the name, bytes of the data), the name and
 * the data; `recording.rs` reads it. A call that changes a file in a way that is not written down here is logged as
 * unsupported, and the recording is refused: better no answer than a wrong one. Only one process is recorded at a time;
 * rights, owners and times of files are not written down. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind {
    CREATE = 1, MAKE_DIRECTORY, WRITE, RESIZE, ALLOCATE, SYNC, REMOVE, RENAME, MAP, MARK, UNSUPPORTED
};

#define REAL(result, name, ...)                                       \
    static result (*real_##name)(__VA_ARGS__);                        \
    static void find_##name(void) {                                   \
        if (!real_##name) real_##name = dlsym(RTLD_NEXT, #name);      \
    }

REAL(int, openat, int, const char *, int, ...)
REAL(ssize_t, write, int, const void *, size_t)
REAL(ssize_t, writev, int, const struct iovec *, int)
REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t)
REAL(ssize_t, pwritev64, int, const struct iovec *, int, off64_t)
REAL(int, ftruncate64, int, off64_t)
REAL(int, fallocate64, int, int, off64_t, off64_t)
REAL(int, fsync, int)
REAL(int, fdatasync, int)
REAL(int, unlinkat, int, const char *, int)
REAL(int, renameat, int, const char *, int, const char *)
REAL(int, mkdirat, int, const char *, mode_t)
REAL(void *, mmap64, void *, size_t, int, int, int, off64_t)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX];
static size_t root_length;
static int log_file = -1;

static void record(enum kind kind, uint64_t inode, uint64_t offset, uint64_t length, const char *name, const void *data,
                   size_t data_length) {
    uint64_t head[6] = {kind, inode, offset, length, strlen(name), data_length};
    struct iovec parts[3] = {{head, sizeof head}, {(void *)name, strlen(name)}, {(void *)data, data_length}};
    find_writev();
    int before = errno;
    if (real_writev(log_file, parts, 3) != (ssize_t)(sizeof head + strlen(name) + data_length)) abort();
    errno = before;
}

__attribute__((constructor)) static void begin(void) {
    const char *directory = getenv("RECORDED_DIRECTORY"), *log = getenv("RECORDED_LOG");
    if (!directory || !log) return;
    struct stat status;
    find_openat();
    log_file = real_openat(AT_FDCWD, log, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (log_file < 0 || !realpath(directory, root) || stat(root, &status) != 0) abort();
    root_length = strlen(root);
    record(MAKE_DIRECTORY, status.st_ino, 0, 0, "", "", 0);
}

/* What follows the directory in a path, or null if the path leads elsewhere. */
static const char *below(const char *path) {
    if (log_file < 0 || strncmp(path, root, root_length) != 0) return NULL;
    if (path[root_length] == 0) return path + root_length;
    return path[root_length] == '/' ? path + root_length + 1 : NULL;
}

static int path_of(int file, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return 1;
}

/* An open file below the directory: its name there, and its inode. */
static const char *opened(int file, char *path, uint64_t *inode) {
    struct stat status;
    int before = errno;
    const char *name = log_file >= 0 && path_of(file, path) ? below(path) : NULL;
    if (name && fstat(file, &status) != 0) name = NULL;
    if (name) *inode = status.st_ino;
    errno = before;
    return name;
}

/* The name below the directory that a path stands for, whether or not there is something of that name. */
static const char *named(int at, const char *given, char *path) {
    char whole[2 * PATH_MAX], parent[PATH_MAX], copy[2 * PATH_MAX];
    int before = errno;
    const char *name = NULL;
    if (log_file < 0) return NULL;
    if (given[0] == '/') {
        snprintf(whole, sizeof whole, "%s", given);
    } else {
        if (at == AT_FDCWD ? !getcwd(parent, sizeof parent) : !path_of(at, parent)) goto done;
        snprintf(whole, sizeof whole, "%s/%s", parent, given);
    }
    strcpy(copy, whole);
    if (!realpath(dirname(copy), parent)) goto done;
    strcpy(copy, whole);
    const char *directory = strcmp(parent, "/") ? parent : "";
    if (snprintf(path, PATH_MAX, "%s/%s", directory, basename(copy)) < PATH_MAX) name = below(path);
done:
    errno = before;
    return name;
}

static int is_marks(const char *name) { return strcmp(name, "marks") == 0; }

/* Opening */

static int open_recorded(int at, const char *given, int flags, mode_t mode) {
    char path[PATH_MAX];
    struct stat status;
    find_openat();
    int changes = (flags & (O_CREAT | O_TRUNC)) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
    const char *name = changes ? named(at, given, path) : NULL;
    if (!name || is_marks(name)) return real_openat(at, given, flags, mode);
    pthread_mutex_lock(&lock);
    int was_there = access(path, F_OK) == 0;
    int file = real_openat(at, given, flags, mode);
    if (file >= 0 && fstat(file, &status) == 0) {
        if ((flags & O_TMPFILE) == O_TMPFILE) record(UNSUPPORTED, 0, 0, 0, "open with O_TMPFILE", "", 0);
        else if (!was_there) record(CREATE, status.st_ino, 0, 0, name, "", 0);
        else if (flags & O_TRUNC) record(RESIZE, status.st_ino, 0, 0, "", "", 0);
    }
    pthread_mutex_unlock(&lock);
    return file;
}

#define WITH_MODE(last)                                               \
    mode_t mode = 0;                                                  \
    if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) {      \
        va_list more;                                                 \
        va_start(more, last);                                         \
        mode = va_arg(more, mode_t);                                  \
        va_end(more);                                                 \
    }

int open(const char *path, int flags, ...) { WITH_MODE(flags) return open_recorded(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { WITH_MODE(flags) return open_recorded(AT_FDCWD, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { WITH_MODE(flags) return open_recorded(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { WITH_MODE(flags) return open_recorded(at, path, flags, mode); }
int creat(const char *path, mode_t mode) { return open_recorded(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return creat(path, mode); }

/* Writing */

static void wrote(int file, const char *name, uint64_t inode, off64_t at, const void *bytes, ssize_t count) {
    if (count <= 0) return;
    if (is_marks(name)) {
        record(MARK, 0, 0, 0, "", bytes, count);
        return;
    }
    /* Where a plain write went is known only afterwards: the file may have been opened to append. */
    if (at < 0) at = lseek64(file, 0, SEEK_CUR) - count;
    record(WRITE, inode, at, 0, "", bytes, count);
}

static void wrote_parts(int file, const char *name, uint64_t inode, off64_t at, const struct iovec *parts, int count,
                        ssize_t written) {
    char *bytes = malloc(written > 0 ? written : 1);
    ssize_t gathered = 0;
    if (!bytes) abort();
    for (int i = 0; i < count && gathered < written; i++) {
        size_t take = parts[i].iov_len < (size_t)(written - gathered) ? parts[i].iov_len : (size_t)(written - gathered);
        memcpy(bytes + gathered, parts[i].iov_base, take);
        gathered += take;
    }
    wrote(file, name, inode, at, bytes, gathered);
    free(bytes);
}

/* Runs a call on an open file, and its record if the file is below the directory. */
#define RECORDED(type, call, note)                                    \
    char path[PATH_MAX];                                              \
    uint64_t inode;                                                   \
    if (!opened(file, path, &inode)) return call;                     \
    pthread_mutex_lock(&lock);                                        \
    const char *name = opened(file, path, &inode);                    \
    type result = call;                                               \
    if (name) { note; }                                               \
    pthread_mutex_unlock(&lock);                                      \
    return result;

ssize_t write(int file, const void *bytes, size_t count) {
    find_write();
    RECORDED(ssize_t, real_write(file, bytes, count), wrote(file, name, inode, -1, bytes, result))
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t at) {
    find_pwrite64();
    RECORDED(ssize_t, real_pwrite64(file, bytes, count, at), wrote(file, name, inode, at, bytes, result))
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t at) { return pwrite64(file, bytes, count, at); }

ssize_t writev(int file, const struct iovec *parts, int count) {
    find_writev();
    RECORDED(ssize_t, real_writev(file, parts, count), wrote_parts(file, name, inode, -1, parts, count, result))
}

ssize_t pwritev64(int file, const struct iovec *parts, int count, off64_t at) {
    find_pwritev64();
    RECORDED(ssize_t, real_pwritev64(file, parts, count, at), wrote_parts(file, name, inode, at, parts, count, result))
}

ssize_t pwritev(int file, const struct iovec *parts, int count, off_t at) { return pwritev64(file, parts, count, at); }

/* Sizes */

int ftruncate64(int file, off64_t length) {
    find_ftruncate64();
    RECORDED(int, real_ftruncate64(file, length), if (result == 0) record(RESIZE, inode, 0, length, "", "", 0))
}

int ftruncate(int file, off_t length) { return ftruncate64(file, length); }

static void allocated(int mode, uint64_t inode, off64_t at, off64_t length) {
    if (mode == 0) record(ALLOCATE, inode, at, length, "", "", 0);
    else if (mode != FALLOC_FL_KEEP_SIZE) record(UNSUPPORTED, 0, 0, 0, "fallocate with a mode", "", 0);
}

int fallocate64(int file, int mode, off64_t at, off64_t length) {
    find_fallocate64();
    RECORDED(int, real_fallocate64(file, mode, at, length), if (result == 0) allocated(mode, inode, at, length))
}

int fallocate(int file, int mode, off_t at, off_t length) { return fallocate64(file, mode, at, length); }
int posix_fallocate64(int file, off64_t at, off64_t length) { return fallocate64(file, 0, at, length) ? errno : 0; }
int posix_fallocate(int file, off_t at, off_t length) { return posix_fallocate64(file, at, length); }

/* Syncing, of files and of directories */

int fsync(int file) {
    find_fsync();
    RECORDED(int, real_fsync(file), if (result == 0 && !is_marks(name)) record(SYNC, inode, 0, 0, "", "", 0))
}

int fdatasync(int file) {
    find_fdatasync();
    RECORDED(int, real_fdatasync(file), if (result == 0 && !is_marks(name)) record(SYNC, inode, 0, 0, "", "", 0))
}

/* Names */

int unlinkat(int at, const char *given, int flags) {
    char path[PATH_MAX];
    find_unlinkat();
    const char *name = named(at, given, path);
    if (!name) return real_unlinkat(at, given, flags);
    pthread_mutex_lock(&lock);
    int result = real_unlinkat(at, given, flags);
    if (result == 0 && !is_marks(name)) record(REMOVE, 0, 0, 0, name, "", 0);
    pthread_mutex_unlock(&lock);
    return result;
}

int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

int renameat(int from_at, const char *from, int to_at, const char *to) {
    char from_path[PATH_MAX], to_path[PATH_MAX];
    find_renameat();
    const char *from_name = named(from_at, from, from_path), *to_name = named(to_at, to, to_path);
    if (!from_name && !to_name) return real_renameat(from_at, from, to_at, to);
    pthread_mutex_lock(&lock);
    int result = real_renameat(from_at, from, to_at, to);
    if (result == 0 && from_name && to_name) record(RENAME, 0, 0, 0, from_name, to_name, strlen(to_name));
    else if (result == 0) record(UNSUPPORTED, 0, 0, 0, "rename into or out of the directory", "", 0);
    pthread_mutex_unlock(&lock);
    return result;
}

int rename(const char *from, const char *to) { return renameat(AT_FDCWD, from, AT_FDCWD, to); }

int mkdirat(int at, const char *given, mode_t mode) {
    char path[PATH_MAX];
    struct stat status;
    find_mkdirat();
    const char *name = named(at, given, path);
    if (!name) return real_mkdirat(at, given, mode);
    pthread_mutex_lock(&lock);
    int result = real_mkdirat(at, given, mode);
    if (result == 0 && stat(path, &status) == 0) record(MAKE_DIRECTORY, status.st_ino, 0, 0, name, "", 0);
    pthread_mutex_unlock(&lock);
    return result;
}

int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

/* Mapped files change without a call */

void *mmap64(void *wish, size_t length, int protection, int flags, int file, off64_t at) {
    find_mmap64();
    char path[PATH_MAX];
    uint64_t inode;
    void *result = real_mmap64(wish, length, protection, flags, file, at);
    int changes = file >= 0 && (flags & MAP_SHARED) && (protection & PROT_WRITE);
    if (!changes || result == MAP_FAILED || !opened(file, path, &inode)) return result;
    pthread_mutex_lock(&lock);
    record(MAP, inode, 0, 0, "", "", 0);
    pthread_mutex_unlock(&lock);
    return result;
}

void *mmap(void *wish, size_t length, int protection, int flags, int file, off_t at) {
    return mmap64(wish, length, protection, flags, file, at);
}

/* What is not written down is refused, if it happens below the directory. */

static int refuse(const char *call, int at, const char *given) {
    char path[PATH_MAX];
    if (!named(at, given, path)) return 0;
    pthread_mutex_lock(&lock);
    record(UNSUPPORTED, 0, 0, 0, call, "", 0);
    pthread_mutex_unlock(&lock);
    errno = ENOSYS;
    return 1;
}

static int refuse_file(const char *call, int file) {
    char path[PATH_MAX];
    uint64_t inode;
    if (!opened(file, path, &inode)) return 0;
    pthread_mutex_lock(&lock);
    record(UNSUPPORTED, 0, 0, 0, call, "", 0);
    pthread_mutex_unlock(&lock);
    errno = ENOSYS;
    return 1;
}

#define NEXT(result, name, ...) ((result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name))

int linkat(int from_at, const char *from, int to_at, const char *to, int flags) {
    if (refuse("link", to_at, to)) return -1;
    return NEXT(int, linkat, int, const char *, int, const char *, int)(from_at, from, to_at, to, flags);
}

int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

int symlink(const char *target, const char *path) {
    return refuse("symlink", AT_FDCWD, path) ? -1 : NEXT(int, symlink, const char *, const char *)(target, path);
}

int truncate64(const char *path, off64_t length) {
    return refuse("truncate", AT_FDCWD, path) ? -1 : NEXT(int, truncate64, const char *, off64_t)(path, length);
}

int truncate(const char *path, off_t length) { return truncate64(path, length); }

int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags) {
    if (flags == 0) return renameat(from_at, from, to_at, to);
    if (refuse("renameat2", from_at, from) || refuse("renameat2", to_at, to)) return -1;
    return NEXT(int, renameat2, int, const char *, int, const char *, unsigned)(from_at, from, to_at, to, flags);
}

ssize_t pwritev2(int file, const struct iovec *parts, int count, off_t at, int flags) {
    if (refuse_file("pwritev2", file)) return -1;
    return NEXT(ssize_t, pwritev2, int, const struct iovec *, int, off_t, int)(file, parts, count, at, flags);
}

ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t count, unsigned flags) {
    if (refuse_file("copy_file_range", to)) return -1;
    return NEXT(ssize_t, copy_file_range, int, off64_t *, int, off64_t *, size_t, unsigned)(from, from_at, to, to_at,
                                                                                            count, flags);
}

ssize_t sendfile64(int to, int from, off64_t *at, size_t count) {
    if (refuse_file("sendfile", to)) return -1;
    return NEXT(ssize_t, sendfile64, int, int, off64_t *, size_t)(to, from, at, count);
}

ssize_t sendfile(int to, int from, off_t *at, size_t count) { return sendfile64(to, from, (off64_t *)at, count); }

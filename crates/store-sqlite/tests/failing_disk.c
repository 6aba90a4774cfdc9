/* A disk that fails on demand: loaded before libc (LD_PRELOAD), it stands in front of the calls that SQLite makes.
 * While the file named by FAIL_WRITES exists, writes end with "no space left"; while the file named by FAIL_SYNCS
 * exists, syncs end with an input/output error. Only files of a database are concerned. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_set(const char *name) {
    const char *path = getenv(name);
    return path != NULL && access(path, F_OK) == 0;
}

static int is_database(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return strstr(path, "redrive.db") != NULL;
}

static int fails(const char *name, int fd, int error) {
    if (!is_set(name) || !is_database(fd)) return 0;
    errno = error;
    return 1;
}

ssize_t write(int fd, const void *bytes, size_t count) {
    static ssize_t (*real)(int, const void *, size_t);
    if (!real) real = dlsym(RTLD_NEXT, "write");
    return fails("FAIL_WRITES", fd, ENOSPC) ? -1 : real(fd, bytes, count);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
    static ssize_t (*real)(int, const void *, size_t, off_t);
    if (!real) real = dlsym(RTLD_NEXT, "pwrite");
    return fails("FAIL_WRITES", fd, ENOSPC) ? -1 : real(fd, bytes, count, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
    static ssize_t (*real)(int, const void *, size_t, off64_t);
    if (!real) real = dlsym(RTLD_NEXT, "pwrite64");
    return fails("FAIL_WRITES", fd, ENOSPC) ? -1 : real(fd, bytes, count, at);
}

int fsync(int fd) {
    static int (*real)(int);
    if (!real) real = dlsym(RTLD_NEXT, "fsync");
    return fails("FAIL_SYNCS", fd, EIO) ? -1 : real(fd);
}

int fdatasync(int fd) {
    static int (*real)(int);
    if (!real) real = dlsym(RTLD_NEXT, "fdatasync");
    return fails("FAIL_SYNCS", fd, EIO) ? -1 : real(fd);
}

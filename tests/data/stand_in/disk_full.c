/* Stands in for a full disk: loaded before libc, it lets the calls of one program that need space
 * below one folder succeed up to a number, and fails that one and all later ones.
 *   FULL_PROGRAM  name of the program; others are left alone
 *   FULL_BELOW    the folder
 *   FULL_AT       the number of the first call that fails; 0: none
 *   FULL_COUNT    a file elsewhere, which gets the number of calls at the end
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_int calls;
static int active;
static int at;
static const char *below;

__attribute__((constructor)) static void begin(void)
{
    char self[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    const char *program = getenv("FULL_PROGRAM");
    below = getenv("FULL_BELOW");
    if (size < 0 || !program || !below || !getenv("FULL_AT"))
        return;
    self[size] = 0;
    const char *name = strrchr(self, '/');
    active = name && strcmp(name + 1, program) == 0;
    at = atoi(getenv("FULL_AT"));
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("FULL_COUNT");
    char text[32];
    if (!active || !path)
        return;
    int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    int size = snprintf(text, sizeof text, "%d\n", calls);
    if (file >= 0 && syscall(SYS_write, file, text, size) < 0)
        _exit(99);
}

static int full_path(const char *path)
{
    char whole[2 * PATH_MAX];
    if (!active)
        return 0;
    if (path[0] == '/') {
        snprintf(whole, sizeof whole, "%s", path);
    } else {
        char here[PATH_MAX];
        if (!getcwd(here, sizeof here))
            return 0;
        snprintf(whole, sizeof whole, "%s/%s", here, path);
    }
    if (strncmp(whole, below, strlen(below)) != 0)
        return 0;
    int number = ++calls;
    if (at == 0 || number < at)
        return 0;
    errno = ENOSPC;
    return 1;
}

static int full_file(int file)
{
    char link[64], path[PATH_MAX];
    if (!active)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0)
        return 0;
    path[size] = 0;
    /* Pipes and sockets have names without a slash. */
    return path[0] == '/' && full_path(path);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int file, const void *bytes, size_t size)
{
    return full_file(file) ? -1 : REAL(write)(file, bytes, size);
}
ssize_t pwrite(int file, const void *bytes, size_t size, off_t offset)
{
    return full_file(file) ? -1 : REAL(pwrite)(file, bytes, size, offset);
}
ssize_t pwrite64(int file, const void *bytes, size_t size, off64_t offset)
{
    return full_file(file) ? -1 : REAL(pwrite64)(file, bytes, size, offset);
}
ssize_t writev(int file, const struct iovec *parts, int count)
{
    return full_file(file) ? -1 : REAL(writev)(file, parts, count);
}
ssize_t copy_file_range(int in, off64_t *from, int out, off64_t *to, size_t size, unsigned flags)
{
    return full_file(out) ? -1 : REAL(copy_file_range)(in, from, out, to, size, flags);
}
ssize_t sendfile(int out, int in, off_t *offset, size_t size)
{
    return full_file(out) ? -1 : REAL(sendfile)(out, in, offset, size);
}
ssize_t sendfile64(int out, int in, off64_t *offset, size_t size)
{
    return full_file(out) ? -1 : REAL(sendfile64)(out, in, offset, size);
}
int ftruncate(int file, off_t size)
{
    return full_file(file) ? -1 : REAL(ftruncate)(file, size);
}
int ftruncate64(int file, off64_t size)
{
    return full_file(file) ? -1 : REAL(ftruncate64)(file, size);
}
int fsync(int file)
{
    return full_file(file) ? -1 : REAL(fsync)(file);
}
int fdatasync(int file)
{
    return full_file(file) ? -1 : REAL(fdatasync)(file);
}
int mkdir(const char *path, mode_t mode)
{
    return full_path(path) ? -1 : REAL(mkdir)(path, mode);
}
int link(const char *from, const char *to)
{
    return full_path(to) ? -1 : REAL(link)(from, to);
}
int linkat(int there, const char *from, int here, const char *to, int flags)
{
    return full_path(to) ? -1 : REAL(linkat)(there, from, here, to, flags);
}

/* Opening needs space where the file is new. */
static int creates(const char *path, int flags)
{
    return (flags & O_CREAT) && access(path, F_OK) != 0 && full_path(path);
}
#define MODE(flags)                                                                                \
    mode_t mode = 0;                                                                               \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                                                         \
        va_list rest;                                                                              \
        va_start(rest, flags);                                                                     \
        mode = va_arg(rest, mode_t);                                                               \
        va_end(rest);                                                                              \
    }
int open(const char *path, int flags, ...)
{
    MODE(flags)
    return creates(path, flags) ? -1 : REAL(open)(path, flags, mode);
}
int open64(const char *path, int flags, ...)
{
    MODE(flags)
    return creates(path, flags) ? -1 : REAL(open64)(path, flags, mode);
}
int openat(int folder, const char *path, int flags, ...)
{
    MODE(flags)
    return folder == AT_FDCWD && creates(path, flags) ? -1 : REAL(openat)(folder, path, flags, mode);
}

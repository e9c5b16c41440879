/* Makes one call of the system fail, the n-th of its kind: for LD_PRELOAD.
 *
 * ISOLDE_FAULT is "KIND NTH ERROR LASTING". ERROR is a number of errno; 0 means that a write or a
 * read does half of what was asked, which is no error. With LASTING 1, all later calls fail too, as
 * on a full disk. ISOLDE_FAULT_CALLS names a file that gets the number of calls of the kind. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char kind[16];
static long nth;
static int error;
static int lasting;
static char calls_path[4096];
static atomic_long calls;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void begin(void) {
    const char *fault = getenv("ISOLDE_FAULT");
    const char *path = getenv("ISOLDE_FAULT_CALLS");
    if (fault) sscanf(fault, "%15s %ld %d %d", kind, &nth, &error, &lasting);
    if (path) strncpy(calls_path, path, sizeof calls_path - 1);
    /* Programs that this one starts are not meant. */
    unsetenv("LD_PRELOAD");
}

__attribute__((destructor)) static void end(void) {
    char text[32];
    int length = snprintf(text, sizeof text, "%ld", atomic_load(&calls));
    int file = calls_path[0] ? REAL(open)(calls_path, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
    if (file >= 0 && REAL(write)(file, text, length) == length) close(file);
}

/* Whether this call of a kind is the one. */
static int is_hit(const char *called) {
    if (strcmp(kind, called) != 0) return 0;
    long number = atomic_fetch_add(&calls, 1) + 1;
    return nth > 0 && (number == nth || (lasting && number > nth));
}

#define FAIL_IF(called) \
    if (is_hit(called)) { errno = error; return -1; }

#define OPEN(name, before, passed)                                 \
    int name(before const char *path, int flags, ...) {                   \
        va_list more;                                                     \
        va_start(more, flags);                                            \
        mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(more, mode_t) : 0; \
        va_end(more);                                                     \
        FAIL_IF("open")                                                   \
        return REAL(name)(passed path, flags, mode);                      \
    }
#define NOTHING
#define FOLDER int folder,
#define GIVEN folder,
OPEN(open, NOTHING, NOTHING)
OPEN(open64, NOTHING, NOTHING)
OPEN(openat, FOLDER, GIVEN)
OPEN(openat64, FOLDER, GIVEN)

/* Messages have to arrive, or nobody could see that they are there. */
ssize_t write(int file, const void *bytes, size_t length) {
    if (file != STDERR_FILENO && is_hit("write")) {
        if (error) { errno = error; return -1; }
        length = (length + 1) / 2;
    }
    return REAL(write)(file, bytes, length);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    if (file != STDERR_FILENO && is_hit("write")) {
        if (error) { errno = error; return -1; }
        return REAL(write)(file, parts[0].iov_base, (parts[0].iov_len + 1) / 2);
    }
    return REAL(writev)(file, parts, count);
}

ssize_t read(int file, void *bytes, size_t length) {
    if (is_hit("read")) {
        if (error) { errno = error; return -1; }
        length = (length + 1) / 2;
    }
    return REAL(read)(file, bytes, length);
}

/* Not those that are memory and no file: the library of the language ends the program then. */
void *mmap(void *place, size_t length, int access, int flags, int file, off_t at) {
    if (file >= 0 && is_hit("mmap")) { errno = error; return MAP_FAILED; }
    return REAL(mmap)(place, length, access, flags, file, at);
}

void *mmap64(void *place, size_t length, int access, int flags, int file, off64_t at) {
    if (file >= 0 && is_hit("mmap")) { errno = error; return MAP_FAILED; }
    return REAL(mmap64)(place, length, access, flags, file, at);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*start)(void *), void *with) {
    if (is_hit("thread")) return error;
    return REAL(pthread_create)(thread, how, start, with);
}

int rename(const char *from, const char *to) {
    FAIL_IF("rename")
    return REAL(rename)(from, to);
}

int mkdir(const char *path, mode_t mode) {
    FAIL_IF("mkdir")
    return REAL(mkdir)(path, mode);
}

int posix_spawnp(pid_t *child, const char *file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *how, char *const arguments[], char *const variables[]) {
    if (is_hit("spawn")) return error;
    return REAL(posix_spawnp)(child, file, actions, how, arguments, variables);
}

/*
 * Simulates a hanging disk: preloaded, it makes fdatasync wait while the file named by HANGING_DISK exists.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int fdatasync(int file)
{
    static int (*real)(int);
    const char *name = getenv("HANGING_DISK");
    const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};

    while (name && access(name, F_OK) == 0)
        nanosleep(&pause, NULL);
    if (!real)
        real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    if (!real) {
        errno = ENOSYS;
        return -1;
    }
    return real(file);
}

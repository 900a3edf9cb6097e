/*
 * Runs osmo-msc on kernels without SCTP (mostly in containers): preloaded before libsctp, it replaces every SCTP socket with a
 * TCP socket. SCTP preserves message boundaries and TCP does not, so each message is preceded by its length: four octets,
 * big-endian. The other side must do the same.
 *
 * Only the functions that osmo-msc 1.9.0 and its libraries call are implemented. SCTP-specific requests (events, parameters)
 * succeed without effect.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifndef IPPROTO_SCTP
#define IPPROTO_SCTP 132
#endif

static void *next_of(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

int socket(int domain, int type, int protocol)
{
    int (*next)(int, int, int) = next_of("socket");
    if (protocol != IPPROTO_SCTP)
        return next(domain, type, protocol);
    type = (type & (SOCK_NONBLOCK | SOCK_CLOEXEC)) | SOCK_STREAM;
    return next(domain, type, IPPROTO_TCP);
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
    int (*next)(int, int, int, const void *, socklen_t) = next_of("setsockopt");
    return level == IPPROTO_SCTP ? 0 : next(fd, level, name, value, length);
}

int getsockopt(int fd, int level, int name, void *value, socklen_t *length)
{
    int (*next)(int, int, int, void *, socklen_t *) = next_of("getsockopt");
    return level == IPPROTO_SCTP ? 0 : next(fd, level, name, value, length);
}

static socklen_t length_of(const struct sockaddr *address)
{
    return address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* Only the first of several addresses is used. */
int sctp_bindx(int fd, struct sockaddr *addresses, int count, int flags)
{
    (void)count, (void)flags;
    return bind(fd, addresses, length_of(addresses));
}

int sctp_connectx(int fd, struct sockaddr *addresses, int count, void *association)
{
    (void)count, (void)association;
    return connect(fd, addresses, length_of(addresses));
}

int sctp_recvmsg(int fd, void *message, size_t size, struct sockaddr *from, socklen_t *from_length, void *info, int *flags)
{
    uint32_t length;
    ssize_t count = recv(fd, &length, sizeof(length), MSG_PEEK | MSG_DONTWAIT);
    (void)from, (void)from_length;
    if (count <= 0)
        return count;
    if (info)
        memset(info, 0, 32); /* struct sctp_sndrcvinfo */
    if (flags)
        *flags = MSG_EOR;
    length = count == sizeof(length) ? ntohl(length) : 0;
    if (count == sizeof(length) && length <= size) {
        uint32_t head;
        struct iovec both[2] = { { &head, sizeof(head) }, { message, length } };
        struct msghdr whole = { .msg_iov = both, .msg_iovlen = 2 };
        /* A look first: a message is taken whole or left for later. */
        count = recvmsg(fd, &whole, MSG_PEEK | MSG_DONTWAIT);
        if (count == (ssize_t)(sizeof(head) + length)) {
            recvmsg(fd, &whole, MSG_DONTWAIT);
            return length;
        }
    } else if (length > size) {
        errno = EMSGSIZE;
        return -1;
    }
    errno = EAGAIN;
    return -1;
}

int sctp_send(int fd, const void *message, size_t size, const void *info, int flags)
{
    uint32_t length = htonl(size);
    struct iovec both[2] = { { &length, sizeof(length) }, { (void *)message, size } };
    struct msghdr whole = { .msg_iov = both, .msg_iovlen = 2 };
    (void)info;
    ssize_t count = sendmsg(fd, &whole, flags | MSG_NOSIGNAL);
    return count < 0 ? -1 : (int)size;
}

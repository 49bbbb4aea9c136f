// SPDX-License-Identifier: Apache-2.0
#include "core/launch/sockets.h"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

namespace shardscope::launch {

Result<ListeningSocket> listenOnLoopback()
{
    ListeningSocket listening{FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))};
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto *generic = reinterpret_cast<sockaddr *>(&address);
    const int fd = listening.fd.get();
    if (fd < 0 || ::bind(fd, generic, size) != 0 || ::listen(fd, SOMAXCONN) != 0 ||
        ::getsockname(fd, generic, &size) != 0)
        return fail("Can't listen on 127.0.0.1, over which the ranks meet: {}.", std::strerror(errno));
    listening.port = ntohs(address.sin_port);
    return listening;
}

Result<FileDescriptor> listenAtPath(const std::filesystem::path &path)
{
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.native().size() >= sizeof address.sun_path)
        return fail("The socket path {} is too long.", path.string());
    std::memcpy(address.sun_path, path.c_str(), path.native().size());
    FileDescriptor fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    // The run's lock is held by us: whoever made this file is gone.
    ::unlink(path.c_str());
    const mode_t before = ::umask(0177);
    const bool bound = fd.valid() && ::bind(fd.get(), reinterpret_cast<sockaddr *>(&address), sizeof address) == 0;
    const int error = errno;
    ::umask(before);
    if (!bound)
        return fail("Can't make the control socket {}: {}.", path.string(), std::strerror(error));
    if (::listen(fd.get(), 16) != 0)
        return fail("Can't listen at {}: {}.", path.string(), std::strerror(errno));
    return fd;
}

Result<SocketPair> makeSocketPair()
{
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return fail("Can't make a socket to a rank: {}.", std::strerror(errno));
    return SocketPair{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

} // namespace shardscope::launch

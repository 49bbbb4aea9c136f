// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"
#include "core/launch/file_descriptor.h"

#include <filesystem>

namespace shardscope::launch {

/// A socket that listens on 127.0.0.1 at a free port. Rank 0's store inherits it, so no other job can take the port in
/// between.
struct ListeningSocket
{
    FileDescriptor fd;
    int port = 0;
};
Result<ListeningSocket> listenOnLoopback();

/// Listens at a socket path with mode 0600. A file left there by a supervisor that died is replaced.
Result<FileDescriptor> listenAtPath(const std::filesystem::path &path);

/// Two connected ends, both close-on-exec.
struct SocketPair
{
    FileDescriptor ours;
    FileDescriptor theirs;
};
Result<SocketPair> makeSocketPair();

} // namespace shardscope::launch

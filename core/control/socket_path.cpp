// SPDX-License-Identifier: Apache-2.0
#include "core/control/socket_path.h"

#include "core/run/places.h"

#include <sys/un.h>

namespace fs = std::filesystem;

namespace shardscope::control {

/// FNV-1a, 64 bits: the same text for the same path in every program and version.
static std::string hashOf(const std::string &text)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (unsigned char byte : text)
        hash = (hash ^ byte) * 0x100000001b3;
    return fmt::format("{:016x}", hash);
}

Result<fs::path> controlSocketPath(const run::RunFolder &folder)
{
    std::error_code error;
    fs::path real = fs::weakly_canonical(folder.root(), error);
    if (error)
        real = folder.root();
    const std::string file = hashOf(real.string()) + ".sock";
    auto runtime = run::runtimeDirectory();
    if (!runtime)
        return tl::unexpected(runtime.error());
    if ((*runtime / file).native().size() < sizeof(sockaddr_un::sun_path))
        return *runtime / file;
    const fs::path fallback = run::fallbackRuntimeDirectory();
    if (auto made = run::makePrivateFolder(fallback); !made)
        return tl::unexpected(made.error());
    return fallback / file;
}

} // namespace shardscope::control

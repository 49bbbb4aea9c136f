// SPDX-License-Identifier: Apache-2.0
#include "core/run/places.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace shardscope::run {

static fs::path home()
{
    if (const char *home = std::getenv("HOME"); home && *home == '/')
        return home;
    if (const passwd *entry = ::getpwuid(::getuid()); entry && entry->pw_dir && *entry->pw_dir == '/')
        return entry->pw_dir;
    return fmt::format("/tmp/shardscope-{}", ::getuid());
}

static fs::path fromVariable(const char *variable, const char *belowHome)
{
    const char *value = std::getenv(variable);
    return value && *value == '/' ? fs::path(value) : home() / belowHome;
}

fs::path defaultRunsDirectory()
{
    return fromVariable("XDG_DATA_HOME", ".local/share") / "shardscope" / "runs";
}

fs::path cacheDirectory()
{
    return fromVariable("XDG_CACHE_HOME", ".cache") / "shardscope";
}

fs::path configDirectory()
{
    return fromVariable("XDG_CONFIG_HOME", ".config") / "shardscope";
}

Result<> makePrivateFolder(const fs::path &folder)
{
    std::error_code error;
    fs::create_directories(folder.parent_path(), error);
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
        return fail("Can't make {}: {}.", folder.string(), std::strerror(errno));
    // In /tmp somebody else may have been here first: lstat, so that a link of theirs is not followed.
    struct stat info
    {
    };
    if (::lstat(folder.c_str(), &info) != 0)
        return fail("Can't use {}: {}.", folder.string(), std::strerror(errno));
    if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid())
        return fail("{} is not a folder of yours. Remove it, or set XDG_RUNTIME_DIR.", folder.string());
    if ((info.st_mode & 077) != 0 && ::chmod(folder.c_str(), 0700) != 0)
        return fail("Others may enter {}, and that can't be changed: {}.", folder.string(), std::strerror(errno));
    return {};
}

fs::path fallbackRuntimeDirectory()
{
    return fmt::format("/tmp/shardscope-{}", ::getuid());
}

Result<fs::path> runtimeDirectory()
{
    if (const char *runtime = std::getenv("XDG_RUNTIME_DIR"); runtime && *runtime == '/') {
        // Variables survive the session that made their folder (su, containers): then the fallback serves.
        const fs::path folder = fs::path(runtime) / "shardscope";
        if (makePrivateFolder(folder))
            return folder;
    }
    const fs::path folder = fallbackRuntimeDirectory();
    if (auto made = makePrivateFolder(folder); !made)
        return tl::unexpected(made.error());
    return folder;
}

} // namespace shardscope::run

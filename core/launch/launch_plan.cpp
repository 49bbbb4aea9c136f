// SPDX-License-Identifier: Apache-2.0
#include "core/launch/launch_plan.h"

#include "core/base/file.h"

#include <cstdlib>
#include <string_view>
#include <unistd.h>

namespace fs = std::filesystem;

namespace shardscope::launch {

static bool isProgram(const fs::path &path)
{
    std::error_code error;
    return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

Result<fs::path> findWorker()
{
    if (const char *named = std::getenv("SHARDSCOPE_WORKER"); named && *named) {
        if (isProgram(named))
            return absolutePath(named);
        return fail("SHARDSCOPE_WORKER names {}, which is no program. Correct or unset it.", named);
    }
    std::error_code error;
    const fs::path own = fs::read_symlink("/proc/self/exe", error);
    const fs::path beside = own.parent_path() / "shardscope-worker";
    if (!error && isProgram(beside))
        return beside;
    const char *path = std::getenv("PATH");
    std::string_view folders = path ? path : "";
    while (!folders.empty()) {
        const size_t colon = folders.find(':');
        const fs::path candidate = fs::path(folders.substr(0, colon)) / "shardscope-worker";
        if (candidate.is_absolute() && isProgram(candidate))
            return candidate;
        folders.remove_prefix(colon == std::string_view::npos ? folders.size() : colon + 1);
    }
    return fail("shardscope-worker was not found beside {} nor in PATH. Build it (packaging/setup.sh), or name it in "
                "SHARDSCOPE_WORKER.",
                own.string());
}

} // namespace shardscope::launch

// SPDX-License-Identifier: Apache-2.0
#include "real_recordings.h"

#include <cstdlib>
#include <fmt/format.h>
#include <stdexcept>

namespace shardscope::test {

void copyRecording(const std::string &name, const std::filesystem::path &run)
{
    const char *bin = std::getenv("SHARDSCOPE_BIN");
    const std::filesystem::path unpacked =
        std::filesystem::path(bin ? bin : "bin") / ".." / "tests" / "recordings" / name;
    if (!std::filesystem::exists(unpacked / "run.json"))
        throw std::runtime_error(fmt::format("{} is not unpacked; SHARDSCOPE_BIN is the bin folder of a build",
                                             unpacked.lexically_normal().string()));
    std::filesystem::copy(unpacked, run, std::filesystem::copy_options::recursive);
}

} // namespace shardscope::test

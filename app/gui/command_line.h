// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shardscope::gui {

/// shardscope [RUN | FILE]… [--render PAGE --out FILE.png] [--range A..B] [--theme light|dark] [--size WxH]
/// [--scale F]
struct Arguments
{
    std::vector<std::string> paths; ///< run folders, recordings, or names in the runs directory
    std::string render;             ///< "": a window
    std::string out;
    std::string theme; ///< "": as remembered; a picture: light
    int width = 1280;  ///< logical pixels
    int height = 800;
    std::optional<double> scale;
    std::optional<std::pair<int64_t, int64_t>> steps; ///< first and last in a picture; empty: as the page opens
};

/// What a command line asks for, or the exit code where it is over with (help, wrong usage): then all is said.
tl::expected<Arguments, int> readArguments(int argc, char **argv);

/// The pages that can be rendered.
const std::vector<std::string> &renderablePages();

} // namespace shardscope::gui

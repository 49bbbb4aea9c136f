// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/command_line.h"

#include <CLI/CLI.hpp>
#include <cstdio>

namespace shardscope::gui {

static constexpr int kWrongUsage = 2;

const std::vector<std::string> &renderablePages()
{
    static const std::vector<std::string> pages = {"live", "timeline", "memory", "logs"};
    return pages;
}

static bool readSize(const std::string &text, Arguments &arguments)
{
    int used = 0;
    return std::sscanf(text.c_str(), "%dx%d%n", &arguments.width, &arguments.height, &used) == 2 &&
           used == static_cast<int>(text.size()) && arguments.width >= 320 && arguments.height >= 240 &&
           arguments.width <= 16384 && arguments.height <= 16384;
}

/// "120..140", or "120" for one step.
static bool readSteps(const std::string &text, Arguments &arguments)
{
    long long first = 0, last = 0;
    int used = 0, usedByOne = 0;
    const int read = std::sscanf(text.c_str(), "%lld%n..%lld%n", &first, &usedByOne, &last, &used);
    const auto length = static_cast<int>(text.size());
    if (read == 1 && usedByOne == length)
        last = first;
    else if (read != 2 || used != length)
        return false;
    arguments.steps = std::pair<int64_t, int64_t>{first, last};
    return first >= 0 && first <= last;
}

tl::expected<Arguments, int> readArguments(int argc, char **argv)
{
    Arguments arguments;
    std::string size;
    std::string range;
    CLI::App app(
        "The desktop window of Shardscope: launch sharded training, watch it, see where time and memory went.\n"
        "With --render it draws one page of a run into a picture and ends; no display is needed for that.",
        "shardscope");
    app.add_option("RUN", arguments.paths, "Run folders, recordings, or names in the runs directory");
    auto *render = app.add_option("--render", arguments.render, "Draw this page instead of opening a window")
                       ->check(CLI::IsMember(renderablePages()));
    auto *out = app.add_option("--out", arguments.out, "The picture to write")->needs(render);
    render->needs(out);
    app.add_option("--range", range, "Steps FIRST..LAST to draw, not all that the page would show")->needs(render);
    app.add_option("--theme", arguments.theme, "light or dark")->check(CLI::IsMember({"light", "dark"}));
    app.add_option("--size", size, "WxH in logical pixels; default 1280x800");
    app.add_option("--scale", arguments.scale, "Pixels of the screen for a logical one")->check(CLI::Range(0.5, 4.0));
    app.set_version_flag("--version", SHARDSCOPE_VERSION);
    try {
        app.parse(argc, argv);
        if (!size.empty() && !readSize(size, arguments))
            throw CLI::ValidationError("--size", "is WIDTHxHEIGHT, from 320x240 to 16384x16384");
        if (!range.empty() && !readSteps(range, arguments))
            throw CLI::ValidationError("--range", "is FIRST..LAST in steps, such as 120..140");
        if (!arguments.render.empty() && arguments.paths.size() != 1)
            throw CLI::ValidationError("--render", "draws one run: name exactly one");
    } catch (const CLI::ParseError &error) {
        return tl::unexpected(app.exit(error) == 0 ? 0 : kWrongUsage);
    }
    return arguments;
}

} // namespace shardscope::gui

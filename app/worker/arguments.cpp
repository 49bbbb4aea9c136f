// SPDX-License-Identifier: Apache-2.0
#include "app/worker/arguments.h"

#include <CLI/CLI.hpp>

namespace shardscope::worker {

static constexpr const char *kDescription =
    "One rank of a training run. RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT come from the environment, "
    "as "
    "torchrun sets them:\n"
    "  torchrun --no-python --nproc-per-node 2 shardscope-worker run.toml --out RUN_FOLDER\n"
    "On one machine `shardscope-cli run` is the easier way: it starts the ranks and watches them.";

Result<std::variant<Arguments, Information>> parseArguments(int argc, char **argv)
{
    Arguments arguments;
    arguments.commandLine.assign(argv, argv + argc);
    std::string configuration, out;
    CLI::App app(kDescription, "shardscope-worker");
    app.add_option("CONFIG", configuration, "configuration of the run, TOML or JSON (.json)")->required();
    app.add_option("--out", out, "the run's folder, new or empty")->required();
    app.add_option("--set", arguments.assignments, "KEY=VALUE over the configuration; may be repeated")
        ->allow_extra_args(false)
        ->type_name("KEY=VALUE");
    app.add_option("--unit", arguments.rules, "a rule for the parameters that PATTERN matches; may be repeated")
        ->allow_extra_args(false)
        ->type_name("PATTERN:KEY=VALUE");
    app.add_flag("--resume", arguments.resume,
                 "go on in a run folder that is there, from its newest whole checkpoint (a restart by torchrun does)");
    app.set_version_flag("--version", "shardscope-worker " SHARDSCOPE_VERSION);
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success &) {
        std::ostringstream out, error;
        try {
            app.parse(argc, argv);
        } catch (const CLI::Success &success) {
            app.exit(success, out, error);
        }
        return Information{out.str()};
    } catch (const CLI::ParseError &error) {
        return fail("{}\nRun shardscope-worker --help for what it takes.", error.what());
    }
    arguments.configuration = configuration;
    arguments.out = out;
    return arguments;
}

} // namespace shardscope::worker

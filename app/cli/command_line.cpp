// SPDX-License-Identifier: Apache-2.0
#include "app/cli/command_line.h"

#include "app/cli/commands.h"
#include "app/cli/exit_code.h"
#include "core/base/text.h"
#include "core/config/unit_rules.h"

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <unistd.h>

namespace shardscope::cli {

int failWith(int exitCode, const std::string &text)
{
    Output(STDERR_FILENO).result("shardscope-cli: " + text);
    return exitCode;
}

static void addFormat(CLI::App &verb, Format &format)
{
    static const std::map<std::string, Format> names = {{"text", Format::Text}, {"json", Format::Json}};
    CLI::CheckedTransformer known(names);
    known.description(""); // CLI11's own lists the enumeration's numbers too
    verb.add_option("--format", format, "text or json")->transform(known)->type_name("FORMAT");
}

static void addRun(CLI::App &verb, std::string &run)
{
    verb.add_option("RUN", run, "A run's name in the runs directory, or its folder")->required();
}

/// --help of run: all keys, with what they mean and may be.
static std::string keyHelp()
{
    std::string text = "Keys for CONFIG.toml and --set:\n";
    std::string_view section;
    for (const config::Key &key : config::keys()) {
        if (key.section() != section)
            text += fmt::format("  [{}]\n", section = key.section());
        text += fmt::format("    {}\n", config::describe(key));
    }
    text += "Rules for parts of the model, [[unit]] in CONFIG.toml and --unit 'PATTERN:KEY=VALUE[,KEY=VALUE…]'; in "
            "order, the last match wins:\n";
    for (const config::RuleKey &key : config::ruleKeys())
        text += fmt::format("    {}\n", config::describe(key));
    return text;
}

/// --help of set: what may change while the job runs.
static std::string liveKeyHelp()
{
    std::string text = "Keys that may change while the run goes on:\n";
    for (const config::Key &key : config::keys()) {
        if (key.live)
            text += fmt::format("    {}\n", config::describe(key));
    }
    text += "Keys of --unit:\n";
    for (const config::RuleKey &key : config::ruleKeys()) {
        if (key.live() || key.name == "kind" || key.name == "min_parameters")
            text += fmt::format("    {}\n", config::describe(key));
    }
    return text + "A change is in force at one step on all ranks; a resumed run keeps it.\n";
}

static void addRules(CLI::App &verb, std::vector<std::string> &rules)
{
    verb.add_option("--unit", rules, "A rule for the parameters that the pattern matches")
        ->type_name("PATTERN:KEY=VALUE")
        ->allow_extra_args(false);
}

/// An option that is a key of the registry under a shorter name.
static void addKeyOption(CLI::App &verb, RunOptions &options, const char *option, const char *key, const char *help)
{
    verb.add_option_function<std::string>(
            option, [&options, key](const std::string &text) { options.keys.emplace_back(key, text); },
            fmt::format("{} ({})", help, key))
        ->type_name("");
}

static void addRunVerb(CLI::App &app, RunOptions &options)
{
    CLI::App *verb = app.add_subcommand("run", "Start a run, or go on with one, and watch it");
    verb->add_option("CONFIG", options.configuration, "Configuration: TOML, or a run's config.json");
    addKeyOption(*verb, options, "--preset", "model.preset", "Model");
    addKeyOption(*verb, options, "--model", "model.path", "Instead of a preset, a Hugging Face folder");
    addKeyOption(*verb, options, "--data", "data.path", "Text file, folder of text files, or .bin of tokens");
    addKeyOption(*verb, options, "--ranks", "parallel.ranks", "Processes that share the model");
    addKeyOption(*verb, options, "--device", "parallel.device", "auto, cuda or cpu");
    verb->add_flag_callback(
        "--share-device", [&options] { options.keys.emplace_back("parallel.share_device", "true"); },
        "Let several ranks use one GPU (parallel.share_device)");
    addKeyOption(*verb, options, "--strategy", "parallel.strategy", "full, grad_op, none or hybrid");
    addKeyOption(*verb, options, "--steps", "train.steps", "Optimizer steps");
    addKeyOption(*verb, options, "--record", "record.level", "light, full or off");
    verb->add_option("--set", options.assignments, "Any key of those below")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
    addRules(*verb, options.rules);
    verb->add_option("--out", options.out, "Folder of the new run; default: a new one in the runs directory");
    verb->add_option("--resume", options.resume, "Go on with this run from its newest checkpoint")->type_name("RUN");
    addFormat(*verb, options.format);
    verb->footer(keyHelp);
}

/// The verbs' arguments, and what was chosen.
struct Arguments
{
    RunOptions run;
    LogsOptions logs;
    ExportOptions exported;
    SetOptions set;
    std::string name;
    std::string query;
    size_t maxRows = 100'000;
    bool now = false;
    Format format = Format::Text;
};

static void addLookVerbs(CLI::App &app, Arguments &arguments)
{
    CLI::App *status = app.add_subcommand("status", "Say how a run stands; without RUN: all runs");
    status->add_option("RUN", arguments.name, "A run's name in the runs directory, or its folder");
    addFormat(*status, arguments.format);
    CLI::App *attach = app.add_subcommand("attach", "Watch a run that goes on; Ctrl+C leaves it running");
    addRun(*attach, arguments.name);
    addFormat(*attach, arguments.format);
    CLI::App *logs = app.add_subcommand("logs", "Print what the ranks wrote");
    addRun(*logs, arguments.logs.run);
    logs->add_option("--rank", arguments.logs.rank, "Only this rank's");
    logs->add_option("--attempt", arguments.logs.attempt, "Of this attempt; default: the last one");
    logs->add_flag("-f,--follow", arguments.logs.follow, "Go on until the run ends");
}

static void addControlVerbs(CLI::App &app, Arguments &arguments)
{
    const std::pair<const char *, const char *> verbs[] = {{"pause", "Let a run wait between two steps"},
                                                           {"unpause", "Let a paused run go on"},
                                                           {"checkpoint", "Write a checkpoint and go on"},
                                                           {"stop", "End with a checkpoint, one or two steps on"}};
    for (const auto &[name, help] : verbs) {
        CLI::App *verb = app.add_subcommand(name, help);
        addRun(*verb, arguments.name);
        addFormat(*verb, arguments.format);
        if (std::string_view(name) == "stop")
            verb->add_flag("--now", arguments.now, "End at once, without a checkpoint");
    }
}

static void addSetVerb(CLI::App &app, SetOptions &options)
{
    CLI::App *verb = app.add_subcommand("set", "Change the configuration of a run that goes on");
    addRun(*verb, options.run);
    // Newer versions of CLI11 take no "=" in a name.
    verb->add_option("ASSIGNMENT", options.assignments, "What to set")->type_name("KEY=VALUE");
    addRules(*verb, options.rules);
    verb->add_flag("--undo", options.undo, "Go back to the configuration before the last change");
    verb->add_flag("--force", options.force, "Also where it is predicted to need more memory than there is");
    addFormat(*verb, options.format);
    verb->footer(liveKeyHelp);
}

static void addRecordingVerbs(CLI::App &app, Arguments &arguments)
{
    CLI::App *analyze = app.add_subcommand("analyze", "Where the time and the memory of a run went");
    addRun(*analyze, arguments.name);
    addFormat(*analyze, arguments.format);
    CLI::App *sql = app.add_subcommand("sql", "Ask a run's recording (tables: docs/contract.md)");
    addRun(*sql, arguments.name);
    sql->add_option("QUERY", arguments.query, "A reading SQL statement")->required();
    sql->add_option("--max-rows", arguments.maxRows, "Rows at most")->capture_default_str();
    addFormat(*sql, arguments.format);
    CLI::App *doctor = app.add_subcommand("doctor", "Examine whether runs can work on this machine");
    addFormat(*doctor, arguments.format);
}

static void addExportVerb(CLI::App &app, ExportOptions &options)
{
    CLI::App *verb = app.add_subcommand("export", "Write a run's weights for other programs");
    addRun(*verb, options.run);
    verb->add_option(
            "--format", options.format,
            "huggingface: the model, with its adapters merged into it, for transformers; adapter: the adapters "
            "of lora.rank alone, for peft")
        ->check(CLI::IsMember({"huggingface", "adapter"}))
        ->capture_default_str();
    verb->add_option("--out", options.out, "Folder to make")->required();
    verb->add_option("--dtype", options.dtype, "float32 or bfloat16; default: bfloat16 of a model that computed in it")
        ->check(CLI::IsMember({"float32", "bfloat16"}));
    verb->add_option("--step", options.step, "Of the checkpoint after this step; default: of the newest")
        ->check(CLI::PositiveNumber);
}

static int carryOut(const std::string &verb, const Arguments &arguments, const std::vector<std::string> &command)
{
    using control::RequestKind;
    const std::map<std::string, std::function<int()>> verbs = {
        {"run", [&] { return runCommand(arguments.run, command); }},
        {"status", [&] { return statusCommand(arguments.name, arguments.format); }},
        {"attach", [&] { return attachCommand(arguments.name, arguments.format); }},
        {"logs", [&] { return logsCommand(arguments.logs); }},
        {"pause", [&] { return controlCommand(arguments.name, RequestKind::Pause, arguments.format); }},
        {"unpause", [&] { return controlCommand(arguments.name, RequestKind::Unpause, arguments.format); }},
        {"checkpoint", [&] { return controlCommand(arguments.name, RequestKind::Checkpoint, arguments.format); }},
        {"stop",
         [&] {
             return controlCommand(arguments.name, arguments.now ? RequestKind::StopNow : RequestKind::Stop,
                                   arguments.format);
         }},
        {"set", [&] { return setCommand(arguments.set); }},
        {"analyze", [&] { return analyzeCommand(arguments.name, arguments.format); }},
        {"sql", [&] { return sqlCommand(arguments.name, arguments.query, arguments.maxRows, arguments.format); }},
        {"export", [&] { return exportCommand(arguments.exported); }},
        {"doctor", [&] { return doctorCommand(arguments.format); }}};
    return verbs.at(verb)();
}

/// The options of a verb and the verbs below it, as they are typed.
static std::vector<std::string> knownWords(const CLI::App &verb)
{
    std::vector<std::string> words;
    for (const CLI::Option *option : verb.get_options()) {
        for (const std::string &name : option->get_lnames())
            words.push_back("--" + name);
    }
    for (const CLI::App *sub : verb.get_subcommands(nullptr))
        words.push_back(sub->get_name());
    return words;
}

/// CLI11's message, with the nearest option or verb where one was mistyped.
static std::string explain(const CLI::App &app, const CLI::ParseError &error, int argc, char **argv)
{
    const bool hasVerb = !app.get_subcommands().empty();
    const CLI::App &verb = hasVerb ? *app.get_subcommands().front() : app;
    const std::vector<std::string> known = knownWords(verb);
    std::string text = error.what();
    if (!hasVerb && argc > 1)
        text = fmt::format("There is no {}", argv[1]);
    text += '.';
    for (int i = 1; i < argc; ++i) {
        const std::string_view word(argv[i]);
        const std::string name(word.substr(0, word.find('=')));
        const bool unknown = text.find(name) != std::string::npos;
        if (const auto nearest = nearestName(name, known); unknown && nearest && *nearest != name)
            text += fmt::format(" Did you mean {}?", *nearest);
    }
    return text + "\nSee: shardscope-cli " + (hasVerb ? verb.get_name() + " --help" : "--help");
}

int guarded(const std::string &verb, const std::function<int()> &work)
{
    try {
        return work();
    } catch (const std::exception &error) {
        return failWith(kJobFailed, fmt::format("{} could not go on: {}. That should have been foreseen: please report "
                                                "it with what you typed.",
                                                verb, error.what()));
    }
}

int main(int argc, char **argv)
{
    CLI::App app("Shardscope: sharded training, and where its time and memory go", "shardscope-cli");
    app.set_version_flag("--version", "shardscope " SHARDSCOPE_VERSION);
    app.require_subcommand(1);
    Arguments arguments;
    addRunVerb(app, arguments.run);
    addLookVerbs(app, arguments);
    addControlVerbs(app, arguments);
    addSetVerb(app, arguments.set);
    addRecordingVerbs(app, arguments);
    addExportVerb(app, arguments.exported);
    if (argc < 2) {
        Output(STDERR_FILENO).result(app.help());
        return kWrongInput;
    }
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &error) {
        if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success))
            return app.exit(error); // --help, --version
        return failWith(kWrongInput, explain(app, error, argc, argv));
    }
    const std::vector<std::string> command(argv, argv + argc);
    const std::string verb = app.get_subcommands().front()->get_name();
    return guarded(verb, [&] { return carryOut(verb, arguments, command); });
}

} // namespace shardscope::cli

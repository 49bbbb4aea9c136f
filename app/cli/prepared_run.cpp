// SPDX-License-Identifier: Apache-2.0
#include "app/cli/prepared_run.h"

#include "app/cli/data_watch.h"
#include "app/cli/free_memory.h"
#include "app/cli/offload_drive.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/config/check.h"
#include "core/config/configuration_file.h"
#include "core/config/machine_facts.h"
#include "core/config/resumed_batches.h"
#include "core/config/unit_rules.h"
#include "core/data/dataset.h"
#include "core/files/checkpoint_folder.h"
#include "core/launch/live_settings.h"
#include "core/launch/signal_watcher.h"
#include "core/plan/room_check.h"
#include "core/pretrained/checkpoint_model.h"
#include "core/pretrained/open_model.h"
#include "core/run/places.h"
#include "core/run/run_pointer.h"
#include "core/run/run_record.h"
#include "core/run/run_status.h"
#include "core/shapes/known_models.h"
#include "core/shapes/unit_plan.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>
#include <unistd.h>

namespace fs = std::filesystem;

namespace shardscope::cli {

using config::RunConfiguration;

fs::path runsDirectory()
{
    return run::defaultRunsDirectory();
}

std::string argumentFor(const run::RunFolder &folder)
{
    return folder.root().parent_path() == runsDirectory() ? folder.name() : folder.root().string();
}

static files::CheckpointFolder checkpointsOf(const run::RunFolder &folder)
{
    return files::CheckpointFolder(folder.checkpointsFolder());
}

/// "step-000200, step-000300": what a run can't go on from though it is the newest. Empty where all is well.
static std::string damagedCheckpoints(const run::RunFolder &folder)
{
    std::string names;
    for (const fs::path &path : checkpointsOf(folder).damagedAfterNewest())
        names += (names.empty() ? "" : ", ") + path.filename().string();
    return names;
}

static Result<files::CheckpointInfo> newestCheckpoint(const run::RunFolder &folder)
{
    if (auto newest = checkpointsOf(folder).newest())
        return *newest;
    const std::string damaged = damagedCheckpoints(folder);
    return fail("The run {} has no whole checkpoint to go on from{}. Start it anew with: shardscope-cli run \"{}\".",
                folder.name(), damaged.empty() ? "" : fmt::format(" (damaged: {})", damaged),
                folder.configFile(std::max(1, folder.lastTrainedAttempt())).string());
}

/// Whoever reads in state.json that a run has ended may be quicker than its supervisor, which lets go of the lock once
/// that file is on the disk.
static bool isGoingOn(const run::RunFolder &folder)
{
    static constexpr int kTries = 300; // 3 s
    for (int attempt = 0; attempt < kTries; ++attempt) {
        if (!run::isLocked(folder))
            return false;
        const auto status = run::readStatus(folder);
        if (!status || status->live())
            return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return true;
}

/// The run that --resume names, in a state in which it can go on.
static Result<run::RunFolder> findRunToResume(const std::string &name)
{
    auto folder = run::findRun(name, runsDirectory());
    if (!folder)
        return folder;
    if (isGoingOn(*folder))
        return fail("The run {} is going on already. Look at it with: shardscope-cli attach \"{}\".", folder->name(),
                    folder->root().string());
    if (auto newest = newestCheckpoint(*folder); !newest)
        return tl::unexpected(newest.error());
    return folder;
}

/// Defaults, the resumed run's, the file's, the options', --set's: the later wins.
static Result<RunConfiguration> gatherConfiguration(const RunOptions &options,
                                                    const std::optional<run::RunFolder> &resumed)
{
    RunConfiguration configuration;
    if (resumed) {
        if (auto read = launch::applyInForce(configuration, *resumed); !read)
            return tl::unexpected(read.error());
    }
    const RunConfiguration before = configuration;
    if (resumed)
        config::forgetBatches(configuration);
    if (!options.configuration.empty()) {
        if (auto read = config::applyFile(configuration, options.configuration); !read)
            return tl::unexpected(read.error());
    }
    for (const auto &[key, text] : options.keys) {
        if (auto set = config::setKey(configuration, key, text); !set)
            return tl::unexpected(set.error());
    }
    for (const std::string &assignment : options.assignments) {
        if (auto set = config::setAssignment(configuration, assignment); !set)
            return tl::unexpected(set.error());
    }
    for (const std::string &text : options.rules) {
        auto rule = config::ruleFromText(text);
        if (!rule)
            return tl::unexpected(rule.error());
        configuration.units.push_back(std::move(*rule));
    }
    if (resumed)
        config::settleBatches(configuration, before);
    // Paths are of the folder that the user was in; ranks and later attempts may be elsewhere.
    for (std::string *path : {&configuration.data.path, &configuration.data.tokenizer, &configuration.model.path,
                              &configuration.offload.path}) {
        if (path->empty() || *path == data::kBytesTokenizer)
            continue;
        const auto whole = absolutePath(*path);
        if (!whole)
            return tl::unexpected(whole.error());
        *path = whole->string();
    }
    return configuration;
}

/// Opens the data once, so that what is wrong with them is said before anything is made, and tokenises what has to be.
/// The data's advice; empty: none.
static Result<std::string> checkData(const RunConfiguration &configuration, const config::KnownModel &model)
{
    Output errors(STDERR_FILENO);
    DataWatch watch(errors);
    data::DatasetOptions options =
        data::optionsOf(configuration, model.vocabulary, run::cacheDirectory() / data::kCacheFolder);
    options.progress = watch.function();
    const auto dataset = data::Dataset::open(options);
    return dataset.map([](const data::Dataset &opened) { return opened.advice(); });
}

/// What may become of a run while it goes on: what could run here, with the units and buckets that it has, in the
/// memory and on the drive that there is. The drive can't be forced: what it lacks would end the run.
static launch::Admit admitChangesOf(shapes::ModelPlan plan, shapes::ModelShape shape, config::MachineFacts machine,
                                    fs::path attemptFolder)
{
    return [plan = std::move(plan), shape = std::move(shape), machine = std::move(machine),
            folder = std::move(attemptFolder)](const launch::ProposedChange &change) -> Result<RunConfiguration> {
        const auto run = config::resolveRun(change.next, machine, shapes::knownModels(change.next.model.path));
        if (!run)
            return tl::unexpected(run.error());
        auto fits = shapes::replanned(plan, run->configuration).map([](const auto &) {});
        if (fits)
            fits = checkDriveOfChange(plan, change.peakAllocatedBytes ? &change.accepted : nullptr, run->configuration,
                                      folder);
        if (fits && !change.force && change.peakAllocatedBytes)
            fits = plan::checkRoom(plan, shape, change.accepted, run->configuration,
                                   roomOf(*run, machine, *change.peakAllocatedBytes));
        if (!fits)
            return tl::unexpected(fits.error());
        return run->configuration;
    };
}

/// The checkpoint that a run goes on from, with steps left to do.
static Result<files::CheckpointInfo> checkpointToResume(const run::RunFolder &folder,
                                                        const RunConfiguration &configuration)
{
    auto checkpoint = newestCheckpoint(folder);
    const int64_t steps = configuration.train.steps;
    if (checkpoint && checkpoint->step == steps)
        return fail("The run {} has done all of its {} steps. Give it more with --steps.", folder.name(), steps);
    if (checkpoint && checkpoint->step > steps)
        return fail("The run {} goes on from its checkpoint of step {}, and would have to end after step {}. Give it "
                    "more than {} with --steps.",
                    folder.name(), checkpoint->step, steps, checkpoint->step);
    return checkpoint;
}

/// Another model, optimizer or order of the data is refused here, before there is an attempt; what only ranks can know
/// (the data themselves, adapters' targets) they refuse.
static Result<> checkResumed(const run::RunFolder &folder, const RunConfiguration &configuration,
                             const shapes::ModelShape &shape)
{
    const auto checkpoint = checkpointToResume(folder, configuration);
    if (!checkpoint)
        return tl::unexpected(checkpoint.error());
    const auto manifest = files::CheckpointFolder::readManifest(checkpoint->path);
    if (!manifest)
        return tl::unexpected(manifest.error());
    return files::checkJobFits(*manifest, pretrained::expectationOf(shape, configuration), checkpoint->path.string());
}

/// {"section": {"key": value}} of the keys that differ from the defaults.
static nlohmann::json askedFor(const RunConfiguration &configuration)
{
    nlohmann::json asked = nlohmann::json::object();
    const nlohmann::json all = config::toJson(configuration);
    for (const auto &[path, text] : config::changedKeys(configuration)) {
        const size_t dot = path.find('.');
        const std::string section = path.substr(0, dot);
        const std::string key = path.substr(dot + 1);
        asked[section][key] = all.at(section).at(key);
    }
    if (!configuration.units.empty())
        asked["unit"] = all.at("unit");
    return asked;
}

/// What a run is called after: the preset, or the folder of the model.
static std::string modelName(const RunConfiguration &configuration)
{
    return configuration.model.path.empty() ? configuration.model.preset
                                            : fs::path(configuration.model.path).filename().string();
}

static fs::path runsDirectoryOf(const RunConfiguration &configuration)
{
    return configuration.run.directory.empty() ? runsDirectory() : fs::path(configuration.run.directory);
}

/// The run's folder, or the one that it will be made in.
static fs::path placeOf(const RunOptions &options, const std::optional<run::RunFolder> &resumed,
                        const RunConfiguration &configuration)
{
    if (resumed)
        return resumed->root();
    const fs::path asked = options.out.empty() ? runsDirectoryOf(configuration) : fs::path(options.out);
    return absolutePath(asked).value_or(asked);
}

static Result<run::RunFolder> makeFolder(const RunOptions &options, const RunConfiguration &configuration)
{
    if (!options.out.empty())
        return run::createRunFolder(options.out);
    const fs::path runs = runsDirectoryOf(configuration);
    const std::string name =
        configuration.run.name.empty()
            ? run::defaultRunName(modelName(configuration), configuration.parallel.ranks, realtimeNs())
            : configuration.run.name;
    return run::createNamedRun(runs, name);
}

/// The attempt's folder and files. After an error nothing of it is left.
static Result<> makeAttempt(const run::RunFolder &folder, int attempt, const RunConfiguration &configuration)
{
    std::error_code ignored;
    if (fs::exists(folder.attemptFolder(attempt), ignored))
        return fail("{} exists already.", folder.attemptFolder(attempt).string());
    auto made = folder.createAttempt(attempt).and_then(
        [&] { return config::writeConfiguration(folder.configFile(attempt), config::toJson(configuration)); });
    if (!made)
        fs::remove_all(folder.attemptFolder(attempt), ignored);
    return made;
}

static Result<> makeNewRun(const run::RunFolder &folder, const RunConfiguration &asked,
                           const RunConfiguration &resolved, const std::vector<std::string> &command)
{
    if (folder.looksLikeRun())
        return fail("Another run has just begun in {}. Give another folder with --out.", folder.root().string());
    run::RunRecord record;
    record.originNs = realtimeNs();
    record.command = command;
    record.asked = askedFor(asked);
    record.resolved = config::toJson(resolved);
    record.versions = {{"shardscope", SHARDSCOPE_VERSION}};
    auto made = run::writeRunRecord(folder, record).and_then([&] { return makeAttempt(folder, 1, resolved); });
    if (!made) {
        std::error_code ignored; // the folder goes only if nobody has put anything else in it
        for (const fs::path &own : {folder.runFile(), folder.lockFile(), folder.root()})
            fs::remove(own, ignored);
    }
    return made;
}

/// The attempt that goes on. What was true before the lock may have changed: all is looked up under it.
static Result<PreparedRun> resumeRun(const run::RunFolder &folder, run::RunLock lock, const RunConfiguration &resolved)
{
    const int attempt = folder.lastAttempt() + 1;
    const auto checkpoint = checkpointToResume(folder, resolved);
    if (!checkpoint)
        return tl::unexpected(checkpoint.error());
    if (auto made = makeAttempt(folder, attempt, resolved); !made)
        return tl::unexpected(made.error());
    PreparedRun prepared{{.folder = folder, .attempt = attempt, .resumeFrom = *checkpoint}, std::move(lock), {}};
    if (const std::string damaged = damagedCheckpoints(folder); !damaged.empty())
        prepared.notes.push_back(
            fmt::format("Warning: damaged and left out: {}. The run goes on from the checkpoint of step {}.", damaged,
                        checkpoint->step));
    return prepared;
}

/// Nothing is written, and nothing removed, but by who has the lock.
static Result<PreparedRun> makeRun(const RunOptions &options, const std::vector<std::string> &command,
                                   const std::optional<run::RunFolder> &resumed, const RunConfiguration &asked,
                                   const RunConfiguration &resolved)
{
    auto folder = resumed ? Result<run::RunFolder>(*resumed) : makeFolder(options, resolved);
    if (!folder)
        return tl::unexpected(folder.error());
    auto lock = run::RunLock::acquire(*folder);
    if (!lock) {
        std::error_code ignored; // goes only where nobody has put anything in it
        fs::remove(folder->root(), ignored);
        return tl::unexpected(lock.error());
    }
    if (resumed)
        return resumeRun(*folder, std::move(*lock), resolved);
    if (auto made = makeNewRun(*folder, asked, resolved, command); !made)
        return tl::unexpected(made.error());
    return PreparedRun{{.folder = *folder, .attempt = 1}, std::move(*lock), {}};
}

Result<PreparedRun> prepareRun(const RunOptions &options, const std::vector<std::string> &command,
                               const launch::Environment &environment)
{
    std::optional<run::RunFolder> resumed;
    if (!options.resume.empty()) {
        if (!options.out.empty())
            return fail("--resume goes on in the run's own folder: leave --out away.");
        auto found = findRunToResume(options.resume);
        if (!found)
            return tl::unexpected(found.error());
        resumed = *found;
    }
    const auto asked = gatherConfiguration(options, resumed);
    if (!asked)
        return tl::unexpected(asked.error());
    const config::MachineFacts machine = config::probeMachine();
    const auto resolved = config::resolveRun(*asked, machine, shapes::knownModels(asked->model.path));
    if (!resolved)
        return tl::unexpected(resolved.error());
    const auto model = pretrained::openModel(resolved->configuration);
    if (!model)
        return tl::unexpected(model.error());
    auto plan =
        shapes::planOf(shapes::unitsOf(model->shape), resolved->configuration, resolved->configuration.parallel.ranks);
    if (!plan)
        return tl::unexpected(plan.error());
    if (resumed) {
        if (auto fits = checkResumed(*resumed, resolved->configuration, model->shape); !fits)
            return tl::unexpected(fits.error());
    }
    const fs::path place = placeOf(options, resumed, resolved->configuration);
    if (auto room = checkDriveOfNewRun(*plan, resolved->configuration, place); !room)
        return tl::unexpected(room.error());
    const auto advice = checkData(resolved->configuration, resolved->model);
    if (!advice)
        return tl::unexpected(advice.error());
    const auto worker = launch::findWorker();
    if (!worker)
        return tl::unexpected(worker.error());
    launch::SignalWatcher::hold(); // until the supervisor takes them: a run is made whole or not at all
    auto prepared = makeRun(options, command, resumed, *asked, resolved->configuration);
    if (!prepared)
        return prepared;
    prepared->plan.worker = *worker;
    prepared->plan.ranks = static_cast<int>(resolved->configuration.parallel.ranks);
    prepared->plan.shareDevice = resolved->configuration.parallel.shareDevice && resolved->device == DeviceKind::Cuda;
    prepared->plan.steps = resolved->configuration.train.steps;
    prepared->plan.hangNs = resolved->configuration.run.hangSeconds * 1'000'000'000;
    prepared->plan.cores = machine.cpuThreads;
    prepared->plan.environment = environment;
    prepared->plan.configuration = resolved->configuration;
    const std::string tooMuch = plan::warningOfNeed(plan::forecastOf(*plan, model->shape, resolved->configuration),
                                                    capacityOf(*resolved, machine));
    std::vector<std::string> notes = resolved->notes;
    if (std::string share = shapes::trainedShare(*plan); !share.empty())
        notes.push_back(std::move(share));
    for (const std::string &one : {*advice, tooMuch}) {
        if (!one.empty())
            notes.push_back(one);
    }
    prepared->notes.insert(prepared->notes.begin(), notes.begin(), notes.end());
    const fs::path attempt = prepared->plan.folder.attemptFolder(prepared->plan.attempt);
    prepared->plan.admit = admitChangesOf(std::move(*plan), model->shape, machine, attempt);
    if (auto known = run::leavePointer(runsDirectory(), prepared->plan.folder); !known)
        prepared->notes.push_back(fmt::format("Lists of runs will not show this one: {}", known.error().text));
    return prepared;
}

} // namespace shardscope::cli

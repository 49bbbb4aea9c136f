// SPDX-License-Identifier: Apache-2.0
#include "core/config/check.h"

#include "core/base/text.h"
#include "core/config/registry.h"
#include "core/config/unit_rules.h"

#include <algorithm>
#include <set>

namespace shardscope::config {

namespace {

constexpr int64_t kUsualMicroBatch = 4;
constexpr size_t kLongestName = 100; ///< bytes; a folder's name ends at 255 and gets parts added

/// Goes through a configuration once, filling in what is to be derived and noting what is wrong.
class Checker
{
public:
    Checker(const RunConfiguration &configuration, const MachineFacts &machine, std::span<const KnownModel> models)
        : m_machine(machine)
        , m_models(models)
    {
        m_run.configuration = configuration;
    }

    CheckResult check();

private:
    void checkValues();
    void checkName();
    void checkModel();
    void checkModelFolder();
    void checkSequence(const KnownModel &model);
    void deriveBatches();
    void deriveMicroBatches(int64_t sequencesOfRank);
    void checkOptimizer();
    void checkLora();
    void checkPrecision();
    void checkGroups();
    void chooseDevice();
    void chooseDevicesOfRanks();
    void checkMemory();
    void checkOffload();

    bool isBad(std::string_view key) const
    {
        return std::ranges::any_of(m_problems, [&](const Problem &problem) { return problem.key == key; });
    }
    template <typename... Args>
    void add(std::string_view key, fmt::format_string<Args...> format, Args &&...args)
    {
        m_problems.push_back({std::string(key), fmt::format(format, std::forward<Args>(args)...)});
    }
    template <typename... Args>
    void note(fmt::format_string<Args...> format, Args &&...args)
    {
        m_run.notes.push_back(fmt::format(format, std::forward<Args>(args)...));
    }

    const MachineFacts &m_machine;
    std::span<const KnownModel> m_models;
    ResolvedRun m_run;
    std::vector<Problem> m_problems;
};

CheckResult Checker::check()
{
    checkValues();
    checkName();
    checkModel();
    deriveBatches();
    checkOptimizer();
    checkLora();
    checkGroups();
    chooseDevice();
    checkPrecision();
    checkMemory();
    checkOffload();
    const auto &c = m_run.configuration;
    if (c.train.validateEvery > 0 && c.data.validation == 0)
        add("train.validate_every", "train.validate_every needs held-out data: set data.validation above 0.");
    CheckResult result{std::move(m_problems), std::nullopt};
    if (result.problems.empty())
        result.resolved = std::move(m_run);
    return result;
}

/// Every value by itself: fields may have been set without setKey().
void Checker::checkValues()
{
    RunConfiguration copy;
    for (const Key &key : keys()) {
        const auto set = setValue(copy, key, valueOf(m_run.configuration, key));
        if (!set)
            add(key.path, "{}", set.error().text);
    }
    for (const UnitRule &rule : m_run.configuration.units) {
        if (const auto checked = checkRule(rule); !checked)
            add("unit", "{}", checked.error().text);
    }
}

void Checker::checkName()
{
    const std::string &name = m_run.configuration.run.name;
    if (name.find('/') != std::string::npos || name == "." || name == "..")
        add("run.name",
            "run.name can't be \"{}\": it names a folder and holds no slash. "
            "Set run.directory to choose where the folder is made.",
            name);
    else if (name.starts_with('-') || name.starts_with('.'))
        add("run.name", "run.name can't be \"{}\": it must not begin with a dot or a dash.", name);
    else if (name.size() > kLongestName)
        add("run.name", "run.name has {} bytes, and at most {} are allowed.", name.size(), kLongestName);
}

void Checker::checkModel()
{
    const auto &c = m_run.configuration;
    if (!c.model.path.empty())
        return checkModelFolder();
    const auto model = std::ranges::find(m_models, c.model.preset, &KnownModel::name);
    if (model == m_models.end() || model->isFolder) {
        std::vector<std::string> names;
        for (const KnownModel &known : m_models)
            names.push_back(known.name);
        const auto nearest = nearestName(c.model.preset, names);
        add("model.preset", "There is no model \"{}\". There are: {}.{}", c.model.preset, fmt::join(names, ", "),
            nearest ? fmt::format(" Did you mean {}?", *nearest) : "");
        return;
    }
    checkSequence(*model);
}

void Checker::checkModelFolder()
{
    auto &c = m_run.configuration;
    if (!c.model.preset.empty() && c.model.preset != RunConfiguration().model.preset)
        add("model.path", "model.path and model.preset = {} exclude each other: leave one of them out.",
            c.model.preset);
    c.model.preset.clear(); // the default, which the folder takes the place of
    const auto isFolder = [&](const KnownModel &known) { return known.isFolder && known.name == c.model.path; };
    const auto model = std::ranges::find_if(m_models, isFolder);
    if (model == m_models.end())
        add("model.path", "The folder {} was not read.", c.model.path);
    else if (!model->problem.empty())
        add("model.path", "{}", model->problem);
    else
        checkSequence(*model);
}

void Checker::checkSequence(const KnownModel &model)
{
    m_run.model = model;
    const int64_t asked = m_run.configuration.train.sequenceLength;
    if (asked > model.maxSequence)
        add("train.sequence_length", "train.sequence_length = {} is longer than model {} takes: at most {} tokens.",
            asked, model.name, model.maxSequence);
}

/// global_batch = ranks × micro_batch × accumulation: what is missing follows from the rest.
void Checker::deriveBatches()
{
    auto &train = m_run.configuration.train;
    const int64_t ranks = m_run.configuration.parallel.ranks;
    for (const std::string_view key :
         {"parallel.ranks", "train.global_batch", "train.micro_batch", "train.accumulation"}) {
        if (isBad(key))
            return;
    }
    if (train.globalBatch == 0) {
        train.microBatch = train.microBatch ? train.microBatch : kUsualMicroBatch;
        train.accumulation = train.accumulation ? train.accumulation : 1;
        // Ranges of the three keep the product below 2^63.
        train.globalBatch = ranks * train.microBatch * train.accumulation;
        const double most = findKey("train.global_batch").value()->range.maximum.value();
        if (static_cast<double>(train.globalBatch) > most)
            add("train.global_batch", "{} ranks × {} × {} sequences are more than the {} of a step.", ranks,
                train.microBatch, train.accumulation, most);
        return;
    }
    if (train.globalBatch % ranks != 0) {
        add("train.global_batch", "train.global_batch = {} can't be shared equally by {} ranks. Use a multiple of {}.",
            train.globalBatch, ranks, ranks);
        return;
    }
    deriveMicroBatches(train.globalBatch / ranks);
}

void Checker::deriveMicroBatches(int64_t sequencesOfRank)
{
    auto &train = m_run.configuration.train;
    const int64_t ranks = m_run.configuration.parallel.ranks;
    if (train.microBatch && train.accumulation) {
        const int64_t product = ranks * train.microBatch * train.accumulation;
        if (product != train.globalBatch)
            add("train.global_batch",
                "train.global_batch = {} contradicts parallel.ranks × train.micro_batch × train.accumulation = {} × {} "
                "× {} "
                "= {}. Leave one of them out and it is derived.",
                train.globalBatch, ranks, train.microBatch, train.accumulation, product);
    } else if (train.microBatch || train.accumulation) {
        const std::string_view given = train.microBatch ? "train.micro_batch" : "train.accumulation";
        const int64_t factor = train.microBatch ? train.microBatch : train.accumulation;
        (train.microBatch ? train.accumulation : train.microBatch) = sequencesOfRank / factor;
        if (sequencesOfRank % factor != 0)
            add(given,
                "{} = {} doesn't divide the {} sequences that a rank has of train.global_batch = {} on {} ranks.",
                given, factor, sequencesOfRank, train.globalBatch, ranks);
    } else {
        train.microBatch = std::min(kUsualMicroBatch, sequencesOfRank);
        while (sequencesOfRank % train.microBatch != 0)
            --train.microBatch;
        train.accumulation = sequencesOfRank / train.microBatch;
    }
}

void Checker::checkOptimizer()
{
    auto &optimizer = m_run.configuration.optimizer;
    if (optimizer.minLearningRate == -1)
        optimizer.minLearningRate = optimizer.learningRate / 10;
    if (optimizer.minLearningRate > optimizer.learningRate)
        add("optimizer.min_learning_rate",
            "optimizer.min_learning_rate = {} is above optimizer.learning_rate = {}: the cosine falls.",
            optimizer.minLearningRate, optimizer.learningRate);
    if (optimizer.kind != OptimizerKind::Sgd && optimizer.momentum != 0)
        add("optimizer.momentum", "optimizer.momentum is for sgd; {} has optimizer.betas.", toText(optimizer.kind));
    const int64_t steps = m_run.configuration.train.steps;
    if (optimizer.warmupSteps >= steps)
        note("The learning rate still climbs at the end: optimizer.warmup_steps = {} of train.steps = {}.",
             optimizer.warmupSteps, steps);
}

/// Whether the targets are there is said where the model is known (shapes::withAdapters()).
void Checker::checkLora()
{
    auto &lora = m_run.configuration.lora;
    if (isBad("lora.rank") || isBad("lora.alpha"))
        return;
    const auto usual = RunConfiguration().lora;
    if (lora.rank == 0) {
        const bool meant = lora.alpha != usual.alpha || lora.targets != usual.targets;
        if (meant)
            add("lora.rank",
                "lora.rank = 0 makes no adapters, but lora.{} is given. Set lora.rank to 1 or more (8, say).",
                lora.alpha != usual.alpha ? "alpha" : "targets");
        return;
    }
    if (lora.targets.empty())
        add("lora.targets", "lora.targets is empty: name the weights that get an adapter, as block.* or attention.q.");
    if (lora.alpha == usual.alpha)
        lora.alpha = static_cast<double>(lora.rank);
}

void Checker::checkPrecision()
{
    const auto &precision = m_run.configuration.precision;
    const auto &optimizer = m_run.configuration.optimizer;
    // Half of bf16's last place is 1/512 to 1/256 of a value: what changes by less stays as it is.
    if (precision.moments == Precision::Bf16 && optimizer.kind == OptimizerKind::AdamW && optimizer.betas.size() == 2 &&
        optimizer.betas[1] > 1.0 - 1.0 / 256)
        note("precision.moments = bf16 rounds to 8 bits: with optimizer.betas[1] = {} the second moment falls by less "
             "than that in a step, so that it may never fall. Use 0.99 or less, or fp32.",
             optimizer.betas[1]);
    if (precision.compute == Precision::Fp16) {
        if (m_run.device == DeviceKind::Cpu && !isBad("parallel.device"))
            note("The processor computes in fp16 by way of fp32: right results, but slower than fp32.");
        return;
    }
    for (const Key &key : keys()) {
        if (key.path.starts_with("precision.scaler.") && valueOf(m_run.configuration, key) != defaultOf(key))
            add(key.path,
                "{} is for precision.compute = fp16: {} has fp32's range and needs no loss scale. Give it its default, "
                "{}={}.",
                key.path, toText(precision.compute), key.path, textOf(defaultOf(key)));
    }
}

/// Groups are of neighbouring ranks and all equally large, so their size divides the number of ranks.
void Checker::checkGroups()
{
    const auto &parallel = m_run.configuration.parallel;
    if (isBad("parallel.ranks") || isBad("parallel.shard_group") || isBad("parallel.reshard_group"))
        return;
    // auto stays auto: a run that goes on at another number of ranks, or under another strategy, has its own half.
    const int64_t half = parallel.ranks % 2 == 0 ? parallel.ranks / 2 : parallel.ranks;
    const int64_t group = parallel.shardGroup == 0 ? half : parallel.shardGroup;
    if (parallel.ranks % group != 0)
        add("parallel.shard_group", "parallel.shard_group = {} doesn't divide parallel.ranks = {}.",
            parallel.shardGroup, parallel.ranks);
    const int64_t shards = parallel.strategy == Strategy::Hybrid ? group : parallel.ranks;
    if (parallel.reshardGroup != 0 && shards % parallel.reshardGroup != 0)
        add("parallel.reshard_group", "parallel.reshard_group = {} doesn't divide the {} ranks that share a copy.",
            parallel.reshardGroup, shards);
}

void Checker::chooseDevice()
{
    auto &parallel = m_run.configuration.parallel;
    const bool hasCuda = !m_machine.cudaDevices.empty();
    if (parallel.device == "cuda" && !hasCuda) {
        add("parallel.device", "parallel.device = cuda, but {}. Use cpu or auto to train without a GPU.",
            m_machine.cudaProblem.empty() ? "there is no GPU" : m_machine.cudaProblem);
        return;
    }
    if (parallel.device == "auto") {
        parallel.device = hasCuda ? "cuda" : "cpu";
        // A machine without a driver needs no explanation; one whose driver can't be used does.
        if (!hasCuda && m_machine.cudaDriverVersion != 0)
            note("Training on the CPU, because {}.", m_machine.cudaProblem);
    }
    m_run.device = fromText<DeviceKind>(parallel.device).value_or(DeviceKind::Cpu);
    if (m_run.device == DeviceKind::Cpu && m_run.configuration.memory.capBytes > 0)
        add("memory.cap_bytes", "memory.cap_bytes caps a GPU's allocator, but the run is on the CPU.");
    if (m_run.device == DeviceKind::Cuda)
        chooseDevicesOfRanks();
    else if (!parallel.devices.empty())
        add("parallel.devices", "parallel.devices names GPUs, but the run is on the CPU.");
    else if (parallel.ranks > m_machine.cpuThreads)
        note("{} ranks share {} processor threads, so they take turns.", parallel.ranks, m_machine.cpuThreads);
}

/// What a CPU rank has lies in host memory already; a drive is another place for it too.
void Checker::checkOffload()
{
    if (m_run.device != DeviceKind::Cpu || isBad("parallel.device"))
        return;
    const auto refuse = [&](std::string_view key, std::string_view rule) {
        add(rule.empty() ? key : "unit",
            "{} = cpu{} is for runs on a GPU: this one is on the CPU, whose memory is where everything lies already. "
            "Use "
            "none{}.",
            key, rule, key == "offload.gradients" ? "" : ", or nvme for a file on a drive");
    };
    const auto &offload = m_run.configuration.offload;
    for (const auto &[key, place] : {std::pair{"offload.parameters", offload.parameters},
                                     {"offload.gradients", offload.gradients},
                                     {"offload.optimizer", offload.optimizer}}) {
        if (place == OffloadPlace::Cpu)
            refuse(key, "");
    }
    for (const UnitRule &rule : m_run.configuration.units) {
        for (const UnitRule::Setting &setting : rule.settings) {
            if (setting.key.starts_with("offload.") && setting.value == "cpu")
                refuse(setting.key, fmt::format(" in the rule for \"{}\"", rule.match));
        }
    }
}

void Checker::chooseDevicesOfRanks()
{
    auto &parallel = m_run.configuration.parallel;
    const int64_t found = static_cast<int64_t>(m_machine.cudaDevices.size());
    std::vector<int64_t> devices = parallel.devices;
    for (int64_t device = 0; parallel.devices.empty() && device < std::min(found, parallel.ranks); ++device)
        devices.push_back(device);
    for (const int64_t device : devices) {
        if (device >= found)
            add("parallel.devices", "parallel.devices names GPU {}, but there {} {}, counted from 0.", device,
                found == 1 ? "is only" : "are only", found);
    }
    if (std::set(devices.begin(), devices.end()).size() != devices.size())
        add("parallel.devices", "parallel.devices names a GPU twice. For several ranks on one, name it once and set "
                                "parallel.share_device.");
    const int64_t usable = static_cast<int64_t>(devices.size());
    if (parallel.ranks > usable && !parallel.shareDevice)
        add("parallel.ranks",
            "parallel.ranks = {}, but only {} {} to be used. Use fewer ranks, set parallel.share_device "
            "(--share-device) to "
            "put several on one GPU, or parallel.device = cpu.",
            parallel.ranks, usable, usable == 1 ? "GPU is" : "GPUs are");
    for (int64_t rank = 0; rank < parallel.ranks && usable > 0; ++rank)
        m_run.deviceOfRank.push_back(devices[static_cast<size_t>(rank % usable)]);
    const int64_t cap = m_run.configuration.memory.capBytes;
    for (const int64_t device : devices) {
        if (device < found && cap > m_machine.cudaDevices[static_cast<size_t>(device)].memoryBytes)
            add("memory.cap_bytes", "memory.cap_bytes = {} is more than the {} bytes of GPU {}.", cap,
                m_machine.cudaDevices[static_cast<size_t>(device)].memoryBytes, device);
    }
    for (const int64_t device : devices) {
        if (device < found && m_run.configuration.precision.compute == Precision::Bf16 &&
            m_machine.cudaDevices[static_cast<size_t>(device)].computeCapability < 80)
            note("GPU {} ({}) has no bf16 units: bf16 is emulated and slow there.", device,
                 m_machine.cudaDevices[static_cast<size_t>(device)].name);
    }
}

void Checker::checkMemory()
{
    if (m_run.device != DeviceKind::Cpu || isBad("parallel.device"))
        return;
    const RunConfiguration &c = m_run.configuration;
    const bool inRule = std::ranges::any_of(c.units, [](const UnitRule &rule) {
        return std::ranges::find(rule.settings, UnitRule::Setting{"memory.activation_offload", "true"}) !=
               rule.settings.end();
    });
    if (c.memory.activationOffload || inRule)
        add("memory.activation_offload",
            "memory.activation_offload{} moves activations from a GPU to the host's memory, and the run is on the CPU. "
            "Use memory.recompute to keep fewer of them.",
            c.memory.activationOffload ? "" : " of a [[unit]]");
}

} // namespace

CheckResult checkRun(const RunConfiguration &configuration, const MachineFacts &machine,
                     std::span<const KnownModel> models)
{
    return Checker(configuration, machine, models).check();
}

Result<ResolvedRun> resolveRun(const RunConfiguration &configuration, const MachineFacts &machine,
                               std::span<const KnownModel> models)
{
    CheckResult result = checkRun(configuration, machine, models);
    if (result.resolved)
        return std::move(*result.resolved);
    std::vector<std::string> messages;
    for (const Problem &problem : result.problems)
        messages.push_back(problem.message);
    return fail("{}", fmt::join(messages, "\n"));
}

} // namespace shardscope::config

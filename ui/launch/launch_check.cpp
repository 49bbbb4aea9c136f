// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/launch/launch_check.h"

#include "core/data/dataset.h"
#include "core/pretrained/open_model.h"
#include "core/run/places.h"
#include "core/shapes/adapters.h"
#include "core/shapes/unit_plan.h"
#include "ui/common/background.h"

#include <QDir>
#include <QFileInfo>
#include <algorithm>
#include <limits>

namespace shardscope::ui {

static constexpr int kTypingPauseMs = 350;

LaunchCheck::LaunchCheck(std::vector<config::KnownModel> models, QObject *parent)
    : QObject(parent)
    , m_models(std::move(models))
{
    m_pause.setSingleShot(true);
    m_pause.setInterval(kTypingPauseMs);
    connect(&m_pause, &QTimer::timeout, this, &LaunchCheck::lookAtDisk);
    inBackground(
        this, []() -> Result<config::MachineFacts> { return config::probeMachine(); },
        [this](const Result<config::MachineFacts> &facts) {
            m_machine = facts ? *facts : config::MachineFacts{.cudaProblem = facts.error().text};
            Q_EMIT machineKnown();
        });
}

/// Whether adapters and rules fit the model's parameters.
static std::vector<config::Problem> judgeParameters(const shapes::ModelShape &shape,
                                                    const config::RunConfiguration &configuration)
{
    const std::vector<shapes::UnitShape> units = shapes::unitsOf(shape);
    if (const auto adapted = shapes::withAdapters(units, configuration); !adapted)
        return {{"lora.targets", adapted.error().text}};
    if (const auto plan = shapes::planOf(units, configuration, configuration.parallel.ranks); !plan)
        return {{"unit", plan.error().text}};
    return {};
}

std::vector<config::Problem> LaunchCheck::judge(const config::RunConfiguration &configuration, const QString &runFolder,
                                                std::vector<config::Problem> fieldProblems)
{
    m_configuration = configuration;
    m_runFolder = runFolder;
    ++m_serial; // what is under way is out of date
    m_pause.start();
    if (!m_machine)
        return fieldProblems;
    std::vector<config::KnownModel> models = m_models;
    if (!configuration.model.path.empty()) // lookAtDisk() reads the folder; until then it is taken for good
        models.push_back(
            {.name = configuration.model.path, .maxSequence = std::numeric_limits<int64_t>::max(), .isFolder = true});
    config::CheckResult result = config::checkRun(configuration, *m_machine, models);
    // A model folder's parameters are read elsewhere than in the window's thread.
    if (result.resolved && configuration.model.path.empty()) {
        if (auto shape = shapes::presetShape(configuration.model.preset)) {
            shape->tiedEmbeddings = configuration.model.tieEmbeddings;
            for (config::Problem &problem : judgeParameters(*shape, result.resolved->configuration))
                result.problems.push_back(std::move(problem));
        }
    }
    if (result.resolved) // what is derived counts where the data are looked at
        m_configuration = result.resolved->configuration;
    for (config::Problem &problem : result.problems) {
        const bool known = std::any_of(fieldProblems.begin(), fieldProblems.end(),
                                       [&](const auto &one) { return one.key == problem.key; });
        if (!known) // a field that can't be read was judged by its default
            fieldProblems.push_back(std::move(problem));
    }
    return fieldProblems;
}

void LaunchCheck::lookAtDisk()
{
    const auto model = std::find_if(m_models.begin(), m_models.end(), [this](const config::KnownModel &one) {
        return one.name == m_configuration.model.preset;
    });
    const int64_t vocabulary = model == m_models.end() ? 0 : model->vocabulary;
    inBackground(
        this,
        [configuration = m_configuration, vocabulary, folder = m_runFolder]() -> Result<LaunchFacts> {
            return ui::lookAtDisk(configuration, vocabulary, folder);
        },
        [this, serial = m_serial](const Result<LaunchFacts> &facts) {
            if (serial == m_serial)
                Q_EMIT found(facts ? *facts : LaunchFacts{{{"data.path", facts.error().text}}, {}});
        });
}

/// What is wrong with the model's folder; vocabulary becomes its own.
static std::vector<config::Problem> lookAtModel(const config::RunConfiguration &configuration, int64_t &vocabulary)
{
    const auto model = pretrained::openModel(configuration);
    if (!model)
        return {{"model.path", model.error().text}};
    vocabulary = model->shape.vocabulary;
    if (configuration.train.sequenceLength <= model->shape.maxSequence)
        return judgeParameters(model->shape, configuration);
    return {{"train.sequence_length",
             LaunchCheck::tr("The model takes at most %1 tokens.").arg(model->shape.maxSequence).toStdString()}};
}

/// The nearest folder above that exists must take a new one.
static bool canBeMade(const QString &folder)
{
    QFileInfo above(QFileInfo(folder).absolutePath());
    while (!above.exists() && !above.isRoot())
        above = QFileInfo(above.absolutePath());
    return above.isDir() && above.isWritable();
}

LaunchFacts lookAtDisk(const config::RunConfiguration &configuration, int64_t vocabulary, const QString &runFolder)
{
    LaunchFacts facts;
    if (!configuration.model.path.empty())
        facts.problems = lookAtModel(configuration, vocabulary);
    const Result<std::string> described =
        data::describeData(data::optionsOf(configuration, vocabulary, run::cacheDirectory() / data::kCacheFolder));
    if (described)
        facts.data = QString::fromStdString(*described);
    else
        facts.problems.push_back({"data.path", described.error().text});
    if (QFileInfo::exists(runFolder) && !QDir(runFolder).isEmpty())
        facts.problems.push_back(
            {"run.name", LaunchCheck::tr("%1 exists already. Choose another name.").arg(runFolder).toStdString()});
    else if (!canBeMade(runFolder))
        facts.problems.push_back(
            {"run.directory", LaunchCheck::tr("%1 can't be made: the folder above is not writable. "
                                              "Choose another runs directory.")
                                  .arg(runFolder)
                                  .toStdString()});
    return facts;
}

} // namespace shardscope::ui

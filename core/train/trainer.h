// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"
#include "core/config/run_configuration.h"
#include "core/control/rank_messages.h"
#include "core/data/dataset.h"
#include "core/model/decoder.h"
#include "core/observe/observer.h"
#include "core/pretrained/weight_folder.h"
#include "core/train/batch_loader.h"
#include "core/train/checkpointer.h"
#include "core/train/command_source.h"
#include "core/train/learning_rate.h"
#include "core/train/step_mark.h"
#include "core/train/validator.h"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace shardscope::train {

/// A step as the loop knows it once its values are there.
struct StepReport
{
    int64_t number = 0;
    observe::StepResult result;
    int64_t stepNs = 0; ///< by the device's clock on CUDA
    control::StepFigures figures;
};

/// All that a training loop works with. References must outlive it.
struct TrainerJob
{
    const config::RunConfiguration &configuration; ///< resolved: nothing left to derive
    const data::Dataset &dataset;
    model::Decoder &decoder;
    observe::Observer &observer;
    CommandSource &commands;
    Checkpointer &checkpointer;
    std::string deviceName;                                     ///< "cpu", "cuda:0 NVIDIA H200"
    std::function<void(const control::RankMessage &)> report;   ///< tells the supervisor; must not block
    std::function<control::StepFigures(int64_t step)> figures;  ///< may be empty
    std::function<void(const StepReport &)> stepDone = nullptr; ///< may be empty
};

/// The training loop of one rank. Steps are numbered from 1. All ranks run the same calls in the same order.
class Trainer
{
public:
    explicit Trainer(TrainerJob job);

    /// New weights from the seed.
    void start();
    /// The weights of a Hugging Face folder; adapters from the seed.
    Result<> startFrom(const pretrained::WeightFolder &folder);
    /// The state of a checkpoint.
    Result<> resume(const std::filesystem::path &checkpoint);

    enum class End { Done, Stopped };
    /// Trains until the last step, or until a command ends it (with a checkpoint). An error is for the user.
    Result<End> run();

    int64_t stepsDone() const { return m_done; }

private:
    /// A step that was enqueued and whose values are not read yet.
    struct OpenStep
    {
        int64_t number = 0;
        observe::StepResult result;
        engine::StepScalars scalars;
        StepMark began;
        StepMark ended;
    };
    enum class Next { Step, Stop };
    /// Of the step that was open; void: gradients that were there by then are gone.
    enum class Settled { Well, PassesAreVoid };

    Result<Next> obeyCommands();
    Result<Next> pause();
    Result<> takeUp(int64_t change);
    Result<> runStep();
    at::Tensor accumulateGradients(OpenStep &step, model::NumberCheck *check = nullptr);
    Result<Settled> settle();
    Result<> finish(const OpenStep &step);
    void takeValues(OpenStep &step);
    static bool isBroken(const OpenStep &step)
    {
        return step.result.state == StepState::Nan || step.result.state == StepState::Inf;
    }
    LoopState loopState() const;
    Result<> checkpoint();
    Result<> checkpointAndGoOn();
    Result<> obeyCheckpoint(bool ordered, bool stops);
    Result<> checkpointIfDue();
    Result<> writeCheckpoint();
    void beginCheckpoint();
    void waitForPending();
    void tellCheckpoint(int64_t step, const std::filesystem::path &path);
    void tellWritten(int64_t step, int64_t durationNs);
    bool takeOrder(int64_t step);
    void tellLack(int64_t step, const Error &error);
    void tellOutcome(const std::optional<Checkpointer::Outcome> &outcome);
    bool validationDue(int64_t step) const;

    // --- Steps that are no numbers (trainer_numbers.cpp)
    Result<> endBroken(const OpenStep &step);
    std::optional<model::NumberFinding> findFirst(int64_t step);
    std::string keepLastGood(int64_t step);

    TrainerJob m_job;
    config::RunConfiguration m_inForce; ///< the job's, with what was changed since
    BatchPlan m_plan;
    BatchLoader m_loader;
    Validator m_validator;
    LearningRateSchedule m_schedule;
    CommandSchedule m_commands;
    std::optional<OpenStep> m_open;
    int64_t m_done = 0;
    int64_t m_leftOutInRow = 0;       ///< broken steps since the last good one
    int64_t m_checkpointed = -1;      ///< the step whose checkpoint is on disk
    std::optional<int64_t> m_ordered; ///< the step whose checkpoint a command waits for
};

} // namespace shardscope::train

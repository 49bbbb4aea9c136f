// SPDX-License-Identifier: Apache-2.0
// Shape suffix: S what a rank holds of a bucket.
#pragma once

#include "core/engine/communication_lane.h"
#include "core/engine/flat_layout.h"
#include "core/engine/state_memory.h"
#include "core/engine/worker_team.h"
#include "core/model/kernels/kernels.h"

#include <functional>
#include <memory>
#include <vector>

namespace shardscope::engine {

/// The constants of one optimizer step.
struct UpdateRule
{
    OptimizerKind kind = OptimizerKind::AdamW;
    model::kernels::AdamWStep adamW; ///< its weight decay is that of what decays
    double learningRate = 0;
    double momentum = 0;
    double weightDecay = 0;
};

/// Tensors of equal length from one element of a bucket on; moments may be undefined. The gradient is used up.
struct UpdateParts
{
    at::Tensor master;
    at::Tensor moment1;
    at::Tensor moment2;
    at::Tensor gradient;
    UpdateParts narrow(int64_t first, int64_t count) const;
};

/// One update of the elements `range` of a bucket, from which all parts begin. factor: StepFactor's, beside them, or
/// undefined.
void updateParts(const UpdateParts &parts, const ElementRange &range, const std::vector<DecayRange> &decay,
                 const UpdateRule &rule, const at::Tensor &factor);

/// One bucket's update where some of its state is offloaded.
struct StateUpdate
{
    observe::UnitIndex unit = observe::kNoUnit;
    ElementRange held;
    int64_t mostHeld = 0; ///< elements of the plan's largest bucket: no buffer need be larger
    std::vector<DecayRange> decay;
    StateMemory master;
    StateMemory moment1; ///< moments may be undefined
    StateMemory moment2;
    StateMemory copy;      ///< the masters in the compute dtype, or undefined
    at::Tensor resident_S; ///< the same on the device, or undefined
    at::Tensor gradient_S; ///< where the update is computed
    bool onHost = false;   ///< computed by the processor; the masters lie off the device then
    UpdateRule rule;
    /// Called in the updates' thread, with the stream current in which a device computes: the gradient is there for
    /// what follows. Returns the step's factor beside it, undefined where the gradient is taken as it is.
    std::function<at::Tensor()> begin;
};

/// Updates buckets one after the other, beside the training, piece by piece: what lies in a file is read a piece ahead
/// and written a piece behind; what a device updates is copied to it and back in two streams meanwhile.
class StateUpdater
{
public:
    /// chunkElements: of a piece, a multiple of kFileBlock.
    StateUpdater(at::Device device, int threads, int64_t chunkElements, StatePlaces &places,
                 observe::Observer &observer);
    ~StateUpdater();

    /// What is done when the Pending is: all states are where they belong. From the thread that trains.
    Pending enqueue(StateUpdate update);
    /// Frees the buffers; nothing may be under way.
    void freeBuffers();
    int threads() const { return m_team.threads(); }

private:
    struct Streams;
    struct Buffers;
    struct Pieces;

    void makeBuffers(const StateUpdate &update);
    int64_t pieceElements(const StateUpdate &update) const;
    int64_t bufferElements(const StateUpdate &update) const;
    void run(const StateUpdate &update);
    void updateOnHost(const StateUpdate &update, Pieces &pieces, const at::Tensor &factor);
    void updateOnDevice(const StateUpdate &update, Pieces &pieces, const at::Tensor &factor);
    Pending transfer(const StateUpdate &update, int64_t written, int64_t readAhead);

    at::Device m_device;
    int64_t m_chunkElements;
    StatePlaces &m_places;
    observe::Observer &m_observer;
    WorkerTeam m_team;
    std::unique_ptr<Streams> m_streams; ///< null on the CPU
    std::unique_ptr<Buffers> m_buffers;
    std::unique_ptr<FileTransfer> m_transfer;
    std::unique_ptr<CommunicationLane> m_transferLane; ///< lanes last: their threads use the others
    std::unique_ptr<CommunicationLane> m_lane;
};

} // namespace shardscope::engine

// SPDX-License-Identifier: Apache-2.0
#include "core/engine/state_update.h"

#include "core/engine/flat_kernels.h"
#include "core/engine/follow_stream.h"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAEvent.h>
#include <algorithm>
#include <array>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cmath>

namespace shardscope::engine {

/// Pieces under way at once: one is computed, one is read, one is written.
static constexpr size_t kSets = 3;
/// Elements of a bucket that one thread takes at a time: what is cast after the update is still in its cache.
static constexpr int64_t kUpdateGrain = int64_t{1} << 16;
/// Where LibTorch's own operators do it: it starts no threads of its own for so few.
static constexpr int64_t kSmallGrain = int64_t{1} << 14;

UpdateParts UpdateParts::narrow(int64_t first, int64_t count) const
{
    const auto part = [&](const at::Tensor &of) { return of.defined() ? of.narrow(0, first, count) : of; };
    return {part(master), part(moment1), part(moment2), part(gradient)};
}

static void updateAlike(const UpdateParts &parts, const UpdateRule &rule, bool decays, const at::Tensor &factor)
{
    if (rule.kind == OptimizerKind::Sgd) {
        sgd(parts.master, parts.moment1, parts.gradient, factor, rule.learningRate, rule.momentum,
            decays ? rule.weightDecay : 0.0);
        return;
    }
    model::kernels::AdamWStep step = rule.adamW;
    step.weightDecay = decays ? rule.adamW.weightDecay : 0.0F;
    adamW(parts.master, parts.moment1, parts.moment2, parts.gradient, factor, step);
}

void updateParts(const UpdateParts &parts, const ElementRange &range, const std::vector<DecayRange> &decay,
                 const UpdateRule &rule, const at::Tensor &factor)
{
    for (const DecayRange &alike : decay) {
        const ElementRange own = intersect(alike.range, range);
        if (own.size() > 0)
            updateAlike(parts.narrow(own.begin - range.begin, own.size()), rule, alike.decays, factor);
    }
}

struct StateUpdater::Streams
{
    explicit Streams(at::Device device)
        : in(c10::cuda::getStreamFromPool(false, device.index()))
        , compute(c10::cuda::getStreamFromPool(false, device.index()))
        , out(c10::cuda::getStreamFromPool(false, device.index()))
    {
    }
    c10::cuda::CUDAStream in;
    c10::cuda::CUDAStream compute;
    c10::cuda::CUDAStream out;
};

/// The states in the order of a set's buffers: masters, moments, the copy in the compute dtype.
static constexpr size_t kStates = 4;
static constexpr size_t kCopy = 3;

static std::array<const StateMemory *, kStates> statesOf(const StateUpdate &update)
{
    return {&update.master, &update.moment1, &update.moment2, &update.copy};
}

struct StateUpdater::Buffers
{
    std::array<std::array<StateMemory, kStates>, kSets> ofFile;
    std::array<std::array<at::Tensor, kStates>, kSets> onDevice;
    std::array<at::cuda::CUDAEvent, kSets> isOut; ///< the set's last copies from the device
};

/// Where the states of one piece are at hand: on the host, and on the device where that computes.
struct StateUpdater::Pieces
{
    int64_t number = 0;
    ElementRange range; ///< of what is held
    size_t set = 0;
    std::array<at::Tensor, kStates> host;
};

StateUpdater::StateUpdater(at::Device device, int threads, int64_t chunkElements, StatePlaces &places,
                           observe::Observer &observer)
    : m_device(device)
    , m_chunkElements(chunkElements)
    , m_places(places)
    , m_observer(observer)
    , m_team(threads, "optimizer")
    , m_streams(device.is_cuda() ? std::make_unique<Streams>(device) : nullptr)
    , m_buffers(std::make_unique<Buffers>())
    , m_transferLane(CommunicationLane::createThread("offload writes"))
    , m_lane(CommunicationLane::createThread("optimizer"))
{
}

StateUpdater::~StateUpdater() = default;

void StateUpdater::freeBuffers()
{
    *m_buffers = Buffers();
}

/// Every bucket of a plan is brought through the same buffers: of a small model they are smaller than a piece.
int64_t StateUpdater::bufferElements(const StateUpdate &update) const
{
    return std::min(m_chunkElements, shapes::wholeFileBlocks(std::max<int64_t>(1, update.mostHeld)));
}

/// Here and not in the thread of the updates, because memory tags are those of the thread that trains.
void StateUpdater::makeBuffers(const StateUpdate &update)
{
    const observe::MemoryTag tag{MemoryCategory::Temporary, observe::kNoUnit};
    const auto states = statesOf(update);
    const int64_t elements = bufferElements(update);
    for (size_t set = 0; set < kSets; ++set) {
        for (size_t i = 0; i < kStates; ++i) {
            const StateMemory &state = *states[i];
            if (!state.defined())
                continue;
            // As large as the largest dtype, so that a buffer serves all buckets.
            if (state.isInFile() && !m_buffers->ofFile[set][i].defined())
                m_buffers->ofFile[set][i] =
                    m_places.make(OffloadPlace::Cpu, elements, at::kFloat, tag, "reading offloaded states");
            at::Tensor &onDevice = m_buffers->onDevice[set][i];
            if (!update.onHost && state.place() != OffloadPlace::None && !onDevice.defined()) {
                const observe::MemoryScope memory(m_observer, tag);
                onDevice = at::empty({elements}, at::TensorOptions(m_device).dtype(state.type()));
                // It may lie in memory that the current stream's work, not done yet, still uses: copies into it come
                // after that work. (The update itself waits for the gradient, which is later.)
                if (m_streams)
                    followCurrentStream(m_streams->in);
            }
        }
    }
    if (!m_transfer && std::ranges::any_of(states, [](const StateMemory *state) { return state->isInFile(); }))
        m_transfer = m_places.file().transfer();
}

Pending StateUpdater::enqueue(StateUpdate update)
{
    makeBuffers(update);
    return m_lane->enqueue([this, update = std::move(update)] { run(update); });
}

/// Writes one piece and reads another; numbers that are no piece of the update are passed over.
Pending StateUpdater::transfer(const StateUpdate &update, int64_t written, int64_t readAhead)
{
    std::vector<FilePiece> pieces;
    const auto states = statesOf(update);
    const auto add = [&](bool write, int64_t number) {
        const int64_t first = number * m_chunkElements;
        if (number < 0 || first >= update.held.size())
            return;
        for (size_t i = 0; i < kStates; ++i) {
            if (!states[i]->isInFile() || (i == kCopy && !write)) // the copy is made anew
                continue;
            const auto &buffer = m_buffers->ofFile[static_cast<size_t>(number) % kSets][i];
            auto *data = static_cast<std::byte *>(buffer.tensor().mutable_data_ptr());
            pieces.push_back(
                states[i]->piece(write, first, std::min(m_chunkElements, update.held.size() - first), data));
        }
    };
    add(true, written);
    add(false, readAhead);
    if (pieces.empty())
        return {};
    return m_transferLane->enqueue([this, pieces = std::move(pieces)] { m_transfer->run(pieces); });
}

/// What needs no buffers on its way is one piece, so that the threads meet once.
int64_t StateUpdater::pieceElements(const StateUpdate &update) const
{
    const bool readsFile = std::ranges::any_of(statesOf(update), [](const auto *state) { return state->isInFile(); });
    return update.onHost && !readsFile ? std::max<int64_t>(1, update.held.size()) : m_chunkElements;
}

void StateUpdater::run(const StateUpdate &update)
{
    const at::NoGradGuard noGrad;
    c10::cuda::OptionalCUDAGuard device;
    c10::cuda::OptionalCUDAStreamGuard stream;
    if (m_streams) {
        device.set_index(m_device.index());
        stream.reset_stream(m_streams->compute);
    }
    const at::Tensor factor = update.begin();
    if (update.onHost && factor.defined() && std::isnan(*factor.const_data_ptr<float>()))
        return; // a step that is not made
    const observe::SpanScope span(m_observer, {"optimizer", SpanCategory::Compute, Phase::Optimizer, update.unit});
    const auto states = statesOf(update);
    transfer(update, -1, 0).wait();
    const int64_t size = pieceElements(update);
    const int64_t count = (update.held.size() + size - 1) / size;
    for (int64_t number = 0; number < count; ++number) {
        const Pending others = transfer(update, number - 1, number + 1);
        Pieces pieces;
        pieces.number = number;
        pieces.set = static_cast<size_t>(number) % kSets;
        pieces.range = {number * size, std::min(update.held.size(), (number + 1) * size)};
        for (size_t i = 0; i < kStates; ++i) {
            const StateMemory &state = *states[i];
            if (state.isInFile())
                pieces.host[i] =
                    m_buffers->ofFile[pieces.set][i].tensor().view(state.type()).narrow(0, 0, pieces.range.size());
            else if (state.defined() && (update.onHost || state.place() != OffloadPlace::None))
                pieces.host[i] = state.tensor().narrow(0, pieces.range.begin, pieces.range.size());
        }
        if (update.onHost)
            updateOnHost(update, pieces, factor);
        else
            updateOnDevice(update, pieces, factor);
        if (others && m_streams) // the next piece of the file is written from what is copied here
            m_streams->out.synchronize();
        others.wait();
    }
    if (m_streams) {
        m_streams->out.synchronize();
        m_streams->compute.synchronize();
    }
    transfer(update, count - 1, -1).wait();
}

void StateUpdater::updateOnHost(const StateUpdate &update, Pieces &pieces, const at::Tensor &factor)
{
    const int64_t count = pieces.range.size();
    const UpdateParts all{pieces.host[0], pieces.host[1], pieces.host[2],
                          update.gradient_S.narrow(0, pieces.range.begin, count)};
    const int64_t grain = update.rule.kind == OptimizerKind::Sgd ? kSmallGrain : kUpdateGrain;
    m_team.run((count + grain - 1) / grain, [&](int64_t i) {
        const at::NoGradGuard noGrad;
        const int64_t first = i * grain;
        const int64_t size = std::min(grain, count - first);
        const int64_t begin = update.held.begin + pieces.range.begin + first;
        updateParts(all.narrow(first, size), {begin, begin + size}, update.decay, update.rule, factor);
        const at::Tensor masters = all.master.narrow(0, first, size);
        if (update.copy.defined())
            copyInto(pieces.host[kCopy].narrow(0, first, size), masters);
        if (update.resident_S.defined())
            copyInto(update.resident_S.narrow(0, pieces.range.begin + first, size), masters);
    });
}

void StateUpdater::updateOnDevice(const StateUpdate &update, Pieces &pieces, const at::Tensor &factor)
{
    const auto &[first, last] = pieces.range;
    const auto states = statesOf(update);
    at::cuda::CUDAEvent &isOut = m_buffers->isOut[pieces.set];
    std::array<at::Tensor, kStates> device;
    for (size_t i = 0; i < kStates; ++i) {
        if (pieces.host[i].defined())
            device[i] = m_buffers->onDevice[pieces.set][i].narrow(0, 0, last - first);
        else if (states[i]->defined())
            device[i] = states[i]->tensor().narrow(0, first, last - first);
    }
    {
        const c10::cuda::CUDAStreamGuard in(m_streams->in);
        isOut.block(m_streams->in); // of the piece that had these buffers before
        for (size_t i = 0; i < kCopy; ++i) {
            if (pieces.host[i].defined())
                device[i].copy_(pieces.host[i], true);
        }
    }
    at::cuda::CUDAEvent isIn;
    isIn.record(m_streams->in);
    isIn.block(m_streams->compute);
    updateParts({device[0], device[1], device[2], update.gradient_S.narrow(0, first, last - first)},
                {update.held.begin + first, update.held.begin + last}, update.decay, update.rule, factor);
    if (device[kCopy].defined())
        device[kCopy].copy_(device[0]);
    if (update.resident_S.defined())
        update.resident_S.narrow(0, first, last - first).copy_(device[0]);
    at::cuda::CUDAEvent isComputed;
    isComputed.record(m_streams->compute);
    isComputed.block(m_streams->out);
    const c10::cuda::CUDAStreamGuard out(m_streams->out);
    for (size_t i = 0; i < kStates; ++i) {
        if (pieces.host[i].defined())
            pieces.host[i].copy_(device[i], true);
    }
    isOut.record(m_streams->out);
}

} // namespace shardscope::engine

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/engine/engine.h"
#include "core/engine/host_buffer.h"

#include <ATen/core/Tensor.h>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace shardscope::model {

/// Moves what units keep for their backward to pinned host memory behind their forward, and back ahead of it, on a
/// stream of its own. On a CPU device the same moves are made at once; only tests do that.
///
/// Device memory is never handed to the copies by recordStream(), which would make the moment of its free depend on
/// time. Tensors are held until the computation has been told to wait for their copy, and only then let go: so that
/// happens at the same point of each pass, and the allocator sees the same calls.
///
/// The forward's side: store() after a unit, finishStore() after the next one has computed. The backward's: fetch() a
/// unit ahead, wait() before a unit's own.
class ActivationOffload
{
public:
    explicit ActivationOffload(engine::Engine &engine);
    ~ActivationOffload();

    /// Begins to copy tensors out and takes them from their owner; undefined ones are passed over. Finishes the store
    /// before. Throws where there is no host memory.
    void store(observe::UnitIndex unit, std::span<at::Tensor *const> tensors);
    /// Lets the computation wait for the last store's copies, and frees their device memory for it. With a unit's
    /// computation between the two, the copies have that to hide behind, and the device holds two units' at most.
    void finishStore();

    /// Begins to copy a unit's tensors back; nothing for a unit that was not stored or is on its way.
    void fetch(observe::UnitIndex unit);
    /// Gives the tensors back, in the order of store(), for what the computation does from here on.
    void wait(observe::UnitIndex unit, std::span<at::Tensor *const> tensors);

    /// Gives up host memory that this pass had no use for: of another setting, or of longer sequences.
    void endPass();

private:
    struct Moment;
    struct Place
    {
        size_t index; ///< of the tensors handed over
        int64_t offsetBytes;
        std::vector<int64_t> sizes;
        std::vector<int64_t> strides;
    };
    struct Buffer
    {
        engine::HostBuffer memory;
        int64_t lastPass = 0;
    };
    struct Stored
    {
        Buffer buffer;
        int64_t bytes = 0;
        at::TensorOptions options;
        std::vector<Place> places;
        std::vector<at::Tensor> fetched;
        std::unique_ptr<Moment> isBack;
    };
    struct Leaving
    {
        std::vector<at::Tensor> tensors;
        std::unique_ptr<Moment> isCopied;
    };
    struct Stream;

    Buffer takeBuffer(int64_t bytes, observe::UnitIndex unit);
    void giveBack(Stored stored, observe::UnitIndex unit);

    engine::Engine &m_engine;
    std::unique_ptr<Stream> m_stream;
    std::map<observe::UnitIndex, Stored> m_stored;
    Leaving m_leaving;                     ///< of the last store(), until the computation waits for its copies
    std::multimap<int64_t, Buffer> m_idle; ///< by size
    int64_t m_pass = 0;
};

} // namespace shardscope::model

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/engine/step_scalars.h"

#include <memory>
#include <optional>

namespace shardscope::train {

/// A step's scalars on their way to the host. On CUDA they are copied to pinned memory behind the step's own work, and
/// reading them while the next step runs waits for nothing.
class LateScalars
{
public:
    LateScalars();
    /// Call right after the step's scalars were enqueued.
    explicit LateScalars(const engine::StepScalars &scalars);
    ~LateScalars();
    LateScalars(LateScalars &&) noexcept;
    LateScalars &operator=(LateScalars &&) noexcept;

    /// Waits until this step's copy is done, and for nothing behind it.
    engine::StepScalars::Values read() const;

private:
    struct CudaCopy;
    at::Tensor m_host_K;
    std::unique_ptr<CudaCopy> m_copy; ///< null on the CPU
};

} // namespace shardscope::train

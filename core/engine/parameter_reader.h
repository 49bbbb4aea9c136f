// SPDX-License-Identifier: Apache-2.0
// Shape suffix: S what a rank holds of a bucket.
#pragma once

#include "core/engine/communication_lane.h"
#include "core/engine/state_memory.h"

#include <memory>
#include <vector>

namespace shardscope::engine {

/// Reads parameters from the rank's file ahead of their gathers, into host memory that is used again.
class ParameterReader
{
public:
    ParameterReader(StatePlaces &places, observe::Observer &observer);
    ~ParameterReader();

    struct Buffer;
    struct Read
    {
        std::shared_ptr<Buffer> buffer;
        at::Tensor data_S;
        Pending isThere;
    };
    /// Begins to read what lies in the file, once `after` is done.
    Read begin(const StateMemory &source, observe::UnitIndex unit, Pending after);
    /// All that reads data_S has been told to the current stream, or is over.
    void end(Read read);
    /// Frees the buffers; none may be out.
    void freeBuffers();

private:
    StatePlaces &m_places;
    observe::Observer &m_observer;
    std::unique_ptr<FileTransfer> m_transfer;
    std::vector<std::shared_ptr<Buffer>> m_idle;
    std::unique_ptr<CommunicationLane> m_lane; ///< last: its thread uses the others
};

} // namespace shardscope::engine

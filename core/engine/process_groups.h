// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/engine/bucket.h"
#include "core/engine/communicator.h"

#include <map>
#include <memory>

namespace shardscope::engine {

/// The groups into which the ranks of a run part. A group is connected when it is first asked for; all ranks ask in the
/// same order. On CUDA the sums over replicas in groups smaller than the world run in a queue of their own, beside the
/// gathers and reductions of the shards; all others in one.
class ProcessGroups
{
public:
    explicit ProcessGroups(Communicator &world)
        : m_world(world)
    {
    }
    /// Throws where the ranks can't connect.
    BucketGroups of(const shapes::BucketSettings &settings);

private:
    /// `size` neighbours, this rank among them.
    Communicator &neighbours(int64_t size);
    /// Those who have this rank's place among their `size` neighbours.
    Communicator &counterparts(int64_t size);
    Communicator &group(std::vector<int> members, bool ownQueue);

    Communicator &m_world;
    std::map<std::vector<int>, std::unique_ptr<Communicator>> m_groups;
};

} // namespace shardscope::engine

// SPDX-License-Identifier: Apache-2.0
#include "core/engine/process_groups.h"

namespace shardscope::engine {

BucketGroups ProcessGroups::of(const shapes::BucketSettings &settings)
{
    return {&neighbours(settings.shardGroup), &counterparts(settings.shardGroup), &neighbours(settings.reshardGroup)};
}

Communicator &ProcessGroups::neighbours(int64_t size)
{
    const int64_t first = m_world.rank() / size * size;
    std::vector<int> members;
    for (int64_t rank = first; rank < first + size; ++rank)
        members.push_back(static_cast<int>(rank));
    return group(std::move(members), false);
}

Communicator &ProcessGroups::counterparts(int64_t size)
{
    std::vector<int> members;
    for (int64_t rank = m_world.rank() % size; rank < m_world.worldSize(); rank += size)
        members.push_back(static_cast<int>(rank));
    const bool hasSums = members.size() > 1;
    return group(std::move(members), hasSums);
}

Communicator &ProcessGroups::group(std::vector<int> members, bool ownQueue)
{
    if (static_cast<int>(members.size()) == m_world.worldSize())
        return m_world;
    std::unique_ptr<Communicator> &group = m_groups[members];
    if (!group)
        group = m_world.subgroup(members, ownQueue);
    return *group;
}

} // namespace shardscope::engine

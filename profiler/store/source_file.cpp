// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/source_file.h"

#include "profiler/store/query.h"

namespace shardscope::store {

void SourceFile::readStepNumbers(SQLite::Database &connection)
{
    Query query(connection, "SELECT step_id, number FROM step WHERE step_id > ? ORDER BY step_id");
    query.bind(lastStepId);
    while (query.next()) {
        lastStepId = query.integer(0);
        stepNumbers[lastStepId] = static_cast<int32_t>(query.integer(1));
    }
}

int32_t SourceFile::stepNumber(std::optional<int64_t> stepId) const
{
    if (!stepId)
        return -1;
    const auto found = stepNumbers.find(*stepId);
    return found == stepNumbers.end() ? -1 : found->second;
}

} // namespace shardscope::store

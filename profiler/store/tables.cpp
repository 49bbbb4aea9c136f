// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/schema.h"

namespace shardscope::store {

const std::vector<std::string_view> &tableNames()
{
    static const std::vector<std::string_view> tables = {
        "meta",        "process",    "clock",   "device", "lane",         "name",       "unit",
        "config",      "step",       "span",    "kernel", "communicator", "collective", "memory",
        "memory_peak", "allocation", "segment", "metric", "event",        "flush"};
    return tables;
}

} // namespace shardscope::store

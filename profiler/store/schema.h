// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

namespace shardscope::store {

/// The text of schema.sql.
std::string_view schemaSql();

/// The tables of schema.sql, in its order.
const std::vector<std::string_view> &tableNames();

} // namespace shardscope::store

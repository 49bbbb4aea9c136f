// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/result.h"
#include "profiler/store/sql_result.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <string>

namespace shardscope::store {

/// Runs one reading statement. What writes, attaches or changes settings is refused, whatever the connection allows.
Result<SqlResult> runQuery(SQLite::Database &database, const std::string &query, size_t maxRows);

} // namespace shardscope::store

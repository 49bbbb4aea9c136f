// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace shardscope::store {

struct SqlBlob
{
    std::string bytes;
    bool operator==(const SqlBlob &) const = default;
};
using SqlValue = std::variant<std::monostate, int64_t, double, std::string, SqlBlob>;

/// The rows of a query, as a user asked for them.
struct SqlResult
{
    std::vector<std::string> columns;
    std::vector<std::vector<SqlValue>> rows;
    bool truncated = false; ///< there were more rows than asked for

    /// A table for a terminal: columns aligned, numbers to the right, NULL as "NULL".
    std::string toText() const;
    /// {"columns": […], "rows": [[…], …], "truncated": false}; blobs as hexadecimal text.
    std::string toJson() const;
};

} // namespace shardscope::store

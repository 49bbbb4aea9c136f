// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace shardscope::engine {

/// sum[i] = (accumulate ? sum[i] : 0) + parts[0][i] + parts[1][i] + …, in that order; sum may be one of the parts.
void sumParts(float *sum, const std::vector<const float *> &parts, int64_t elements, bool accumulate);
void sumParts(double *sum, const std::vector<const double *> &parts, int64_t elements, bool accumulate);

/// Parts in bf16 (their bits), summed in fp32.
void sumParts(float *sum, const std::vector<const uint16_t *> &parts, int64_t elements, bool accumulate);

} // namespace shardscope::engine

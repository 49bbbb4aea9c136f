// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace shardscope::worker {

/// Lets fp32 matrix products on the CPU go to oneDNN, which is up to twice as fast as the default here. LibTorch calls
/// that setting "medium precision", and on processors with AMX it would compute in bf16: so it stays only where a
/// product right now agrees with the one in double precision to 1e-6. Returns whether it stayed.
bool useFastCpuProducts();

} // namespace shardscope::worker

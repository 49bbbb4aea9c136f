// SPDX-License-Identifier: Apache-2.0
// In builds without CUDA's headers.
#include "profiler/collect/activity_source.h"

namespace shardscope::collect {

Result<std::unique_ptr<ActivitySource>> makeCuptiSource()
{
    return fail("This program was built without CUDA's headers and records no kernels.");
}

} // namespace shardscope::collect

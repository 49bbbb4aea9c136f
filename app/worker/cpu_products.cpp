// SPDX-License-Identifier: Apache-2.0
#include "app/worker/cpu_products.h"

#include <ATen/Context.h>
#include <torch/torch.h>

namespace shardscope::worker {

static constexpr double kAllowedError = 1e-6;

/// ‖fp32 product − fp64 product‖ / ‖fp64 product‖ of matrices that are not special in any way.
static double productError()
{
    const at::Tensor left = at::sin(at::arange(192 * 288, at::kFloat)).view({192, 288});
    const at::Tensor right = at::cos(at::arange(288 * 256, at::kFloat)).view({288, 256});
    const at::Tensor exact = left.to(at::kDouble).mm(right.to(at::kDouble));
    return ((left.mm(right).to(at::kDouble) - exact).norm() / exact.norm()).item<double>();
}

bool useFastCpuProducts()
{
    auto &context = at::globalContext();
    const auto set = [&](at::Float32Precision precision) {
        context.setFloat32Precision(at::Float32Backend::MKLDNN, at::Float32Op::MATMUL, precision);
    };
    set(at::Float32Precision::BF16);
    if (productError() <= kAllowedError)
        return true;
    set(at::Float32Precision::IEEE);
    return false;
}

} // namespace shardscope::worker

// SPDX-License-Identifier: Apache-2.0
// Every fused pass against ATen's own operators and autograd in fp64, on the same rounded inputs. The error is
// ‖out − reference‖ / ‖reference‖: 2e-6 in fp32, 5e-3 (a rounding of the result) in bf16, 1e-3 in fp16. Outputs are
// poisoned first.
#include "core/model/kernels/kernels.h"

#include <gtest/gtest.h>
#include <torch/torch.h>
#ifdef USE_C10D_NCCL
#include <c10/cuda/CUDAStream.h>
#endif

using namespace shardscope;
namespace kernels = shardscope::model::kernels;
using at::Tensor;

namespace {

at::ScalarType dtypeOf(Precision precision)
{
    if (precision == Precision::Fp16)
        return at::kHalf;
    return precision == Precision::Bf16 ? at::kBFloat16 : at::kFloat;
}

double toleranceOf(at::ScalarType type)
{
    if (type == at::kHalf)
        return 1e-3;
    return type == at::kBFloat16 ? 5e-3 : 2e-6;
}

struct Case
{
    c10::DeviceType device;
    Precision precision;
    int64_t rows;
    int64_t width;
};

class Kernels : public testing::TestWithParam<Case>
{
protected:
    void SetUp() override
    {
        if (onCuda() && !torch::cuda::is_available())
            GTEST_SKIP() << "no CUDA device";
        torch::manual_seed(GetParam().rows * 7 + GetParam().width);
    }
    bool onCuda() const { return GetParam().device == at::kCUDA; }
    Precision precision() const { return GetParam().precision; }
    int64_t rows() const { return GetParam().rows; }
    int64_t width() const { return GetParam().width; }
    at::TensorOptions floats() const { return at::TensorOptions().device(GetParam().device).dtype(at::kFloat); }
    at::TensorOptions compute() const { return floats().dtype(dtypeOf(precision())); }
    Tensor input(at::IntArrayRef sizes) const { return at::randn(sizes, floats()).to(compute()); }
    Tensor poisoned(at::IntArrayRef sizes) const { return at::full(sizes, NAN, compute()); }
    static Tensor exact(const Tensor &t) { return t.to(at::kDouble).detach().requires_grad_(true); }
    void expectClose(const Tensor &out, const Tensor &reference, const char *what) const
    {
        const auto expected = reference.detach();
        const double error =
            (out.to(at::kDouble) - expected).norm().item<double>() / std::max(expected.norm().item<double>(), 1e-30);
        EXPECT_LT(error, toleranceOf(out.scalar_type())) << what;
    }
    void *stream() const { return onCuda() ? c10::cuda::getCurrentCUDAStream().stream() : nullptr; }
};

Tensor norm(const Tensor &x, const Tensor &w)
{
    return x * (x.pow(2).mean(-1, true) + 1e-5).rsqrt() * w;
}

} // namespace

TEST_P(Kernels, rmsNorm)
{
    const Tensor x = input({rows(), width()});
    const Tensor residual = input({rows(), width()});
    const Tensor weight = input({width()});
    const Tensor dy = input({rows(), width()});
    const Tensor addend = input({rows(), width()});
    Tensor y = poisoned({rows(), width()});
    Tensor sum = poisoned({rows(), width()});
    Tensor dx = poisoned({rows(), width()});
    Tensor rstd = at::full({rows()}, NAN, floats());
    Tensor dWeight = at::ones({width()}, floats());
    if (onCuda()) {
        Tensor scratch = at::full({kernels::cuda::rmsNormBackwardScratch(width())}, NAN, floats());
        kernels::cuda::rmsNormForward(precision(), y.data_ptr(), rstd.data_ptr<float>(), sum.data_ptr(), x.data_ptr(),
                                      residual.data_ptr(), weight.data_ptr(), rows(), width(), 1e-5F, stream());
        kernels::cuda::rmsNormBackward(precision(), dx.data_ptr(), dWeight.data_ptr<float>(), dy.data_ptr(),
                                       sum.data_ptr(), weight.data_ptr(), rstd.data_ptr<float>(), addend.data_ptr(),
                                       scratch.data_ptr<float>(), rows(), width(), stream());
    } else {
        kernels::cpu::rmsNormForward(precision(), y.data_ptr(), rstd.data_ptr<float>(), sum.data_ptr(), x.data_ptr(),
                                     residual.data_ptr(), weight.data_ptr(), rows(), width(), 1e-5F);
        kernels::cpu::rmsNormBackward(precision(), dx.data_ptr(), dWeight.data_ptr<float>(), dy.data_ptr(),
                                      sum.data_ptr(), weight.data_ptr(), rstd.data_ptr<float>(), addend.data_ptr(),
                                      rows(), width());
    }
    expectClose(sum, x.to(at::kDouble) + residual.to(at::kDouble), "sum");
    const Tensor s = exact(sum);
    const Tensor w = exact(weight);
    const Tensor reference = norm(s, w);
    expectClose(y, reference, "y");
    reference.backward(dy.to(at::kDouble));
    expectClose(dx, s.grad() + addend.to(at::kDouble), "dx");
    expectClose(dWeight, w.grad() + 1, "dWeight");
}

TEST_P(Kernels, rmsNormWithoutResidual)
{
    const Tensor x = input({rows(), width()});
    const Tensor weight = input({width()});
    const Tensor dy = input({rows(), width()});
    Tensor y = poisoned({rows(), width()});
    Tensor dx = poisoned({rows(), width()});
    Tensor rstd = at::full({rows()}, NAN, floats());
    Tensor dWeight = at::zeros({width()}, floats());
    if (onCuda()) {
        Tensor scratch = at::full({kernels::cuda::rmsNormBackwardScratch(width())}, NAN, floats());
        kernels::cuda::rmsNormForward(precision(), y.data_ptr(), rstd.data_ptr<float>(), nullptr, x.data_ptr(), nullptr,
                                      weight.data_ptr(), rows(), width(), 1e-5F, stream());
        kernels::cuda::rmsNormBackward(precision(), dx.data_ptr(), dWeight.data_ptr<float>(), dy.data_ptr(),
                                       x.data_ptr(), weight.data_ptr(), rstd.data_ptr<float>(), nullptr,
                                       scratch.data_ptr<float>(), rows(), width(), stream());
    } else {
        kernels::cpu::rmsNormForward(precision(), y.data_ptr(), rstd.data_ptr<float>(), nullptr, x.data_ptr(), nullptr,
                                     weight.data_ptr(), rows(), width(), 1e-5F);
        kernels::cpu::rmsNormBackward(precision(), dx.data_ptr(), dWeight.data_ptr<float>(), dy.data_ptr(),
                                      x.data_ptr(), weight.data_ptr(), rstd.data_ptr<float>(), nullptr, rows(),
                                      width());
    }
    const Tensor s = exact(x);
    const Tensor w = exact(weight);
    const Tensor reference = norm(s, w);
    expectClose(y, reference, "y");
    reference.backward(dy.to(at::kDouble));
    expectClose(dx, s.grad(), "dx");
    expectClose(dWeight, w.grad(), "dWeight");
}

TEST_P(Kernels, rope)
{
    // Half-split layout of two batch entries; a head is as wide as the rows' width allows (even).
    kernels::QkvLayout layout{2, rows(), 3, 1, std::min<int64_t>(width(), 128) / 2 * 2};
    const int64_t half = layout.headSize / 2;
    const Tensor packed = input({2 * rows(), layout.rowElements()});
    const Tensor angles = at::randn({rows(), half}, floats());
    const Tensor cosine = angles.cos();
    const Tensor sine = angles.sin();
    const auto reference = [&](const Tensor &rowsOfHeads) {
        const Tensor heads = rowsOfHeads.view({2, rows(), 5, layout.headSize});
        const Tensor rotated = heads.narrow(2, 0, 4);
        const Tensor low = rotated.narrow(3, 0, half);
        const Tensor high = rotated.narrow(3, half, half);
        const Tensor c = cosine.to(at::kDouble).view({1, rows(), 1, half});
        const Tensor s = sine.to(at::kDouble).view({1, rows(), 1, half});
        const Tensor turned = at::cat({low * c - high * s, high * c + low * s}, 3);
        return at::cat({turned, heads.narrow(2, 4, 1)}, 2).reshape({2 * rows(), layout.rowElements()});
    };
    const Tensor in = exact(packed);
    const Tensor expected = reference(in);
    Tensor out = packed.clone();
    // Gradients of q, k, v come as [batch, heads, positions, headSize].
    const Tensor dQ = input({2, 3, rows(), layout.headSize});
    const Tensor dK = input({2, 1, rows(), layout.headSize});
    const Tensor dV = input({2, rows(), 1, layout.headSize}).transpose(1, 2);
    const auto view = [](const Tensor &t) {
        return kernels::HeadsView{t.data_ptr(), t.stride(0), t.stride(1), t.stride(2)};
    };
    Tensor dQkv = poisoned({2 * rows(), layout.rowElements()});
    if (onCuda()) {
        kernels::cuda::ropeForward(precision(), out.data_ptr(), cosine.data_ptr<float>(), sine.data_ptr<float>(),
                                   layout, stream());
        kernels::cuda::ropeBackward(precision(), dQkv.data_ptr(), view(dQ), view(dK), view(dV),
                                    cosine.data_ptr<float>(), sine.data_ptr<float>(), layout, stream());
    } else {
        const int64_t first = rows() / 3;
        for (const auto &[begin, end] : {std::pair{int64_t{0}, first}, std::pair{first, 2 * rows()}}) {
            kernels::cpu::ropeForward(precision(), out.data_ptr(), cosine.data_ptr<float>(), sine.data_ptr<float>(),
                                      layout, begin, end - begin);
            kernels::cpu::ropeBackward(precision(), dQkv.data_ptr(), view(dQ), view(dK), view(dV),
                                       cosine.data_ptr<float>(), sine.data_ptr<float>(), layout, begin, end - begin);
        }
    }
    expectClose(out, expected, "forward");
    const Tensor dPacked = at::cat({dQ, dK, dV}, 1).transpose(1, 2).reshape({2 * rows(), layout.rowElements()});
    expected.backward(dPacked.to(at::kDouble));
    expectClose(dQkv, in.grad(), "backward");
}

TEST_P(Kernels, headNormRope)
{
    // Two batch entries of 3 q heads and 2 of k and v; a head is as wide as the rows' width allows (even).
    const kernels::QkvLayout layout{2, rows(), 3, 2, std::min<int64_t>(width(), kernels::kMaxNormedHead) / 2 * 2};
    const int64_t size = layout.headSize;
    const int64_t half = size / 2;
    const Tensor packed = input({2 * rows(), layout.rowElements()});
    const Tensor qWeight = input({size});
    const Tensor kWeight = input({size});
    const Tensor angles = at::randn({rows(), half}, floats());
    const Tensor cosine = angles.cos() * 1.1; // as YaRN's, not quite a rotation
    const Tensor sine = angles.sin() * 1.1;
    const Tensor in = exact(packed);
    const Tensor qw = exact(qWeight);
    const Tensor kw = exact(kWeight);
    const auto turned = [&](const Tensor &heads) {
        const Tensor low = heads.narrow(3, 0, half);
        const Tensor high = heads.narrow(3, half, half);
        const Tensor c = cosine.to(at::kDouble).view({1, rows(), 1, half});
        const Tensor s = sine.to(at::kDouble).view({1, rows(), 1, half});
        return at::cat({low * c - high * s, high * c + low * s}, 3);
    };
    const Tensor heads = in.view({2, rows(), 7, size});
    const Tensor q = turned(norm(heads.narrow(2, 0, 3), qw));
    const Tensor k = turned(norm(heads.narrow(2, 3, 2), kw));
    Tensor qk = poisoned({2 * rows(), 5 * size});
    Tensor rstd = at::full({2 * rows(), 5}, NAN, floats());
    const Tensor dQ = input({2, 3, rows(), size});
    const Tensor dK = input({2, rows(), 2, size}).transpose(1, 2);
    const Tensor dV = input({2, 2, rows(), size});
    const auto view = [](const Tensor &t) {
        return kernels::HeadsView{t.data_ptr(), t.stride(0), t.stride(1), t.stride(2)};
    };
    Tensor dQkv = poisoned({2 * rows(), layout.rowElements()});
    Tensor dWeights = at::ones({2, size}, floats());
    float *dQWeight = dWeights.data_ptr<float>();
    const float *c = cosine.data_ptr<float>();
    const float *s = sine.data_ptr<float>();
    if (onCuda()) {
        Tensor scratch = at::full({kernels::cuda::headNormRopeBackwardScratch(size)}, NAN, floats());
        kernels::cuda::headNormRopeForward(precision(), qk.data_ptr(), rstd.data_ptr<float>(), packed.data_ptr(),
                                           qWeight.data_ptr(), kWeight.data_ptr(), c, s, layout, 1e-5F, stream());
        kernels::cuda::headNormRopeBackward(precision(), dQkv.data_ptr(), dQWeight, dQWeight + size, view(dQ), view(dK),
                                            view(dV), packed.data_ptr(), rstd.data_ptr<float>(), qWeight.data_ptr(),
                                            kWeight.data_ptr(), c, s, layout, scratch.data_ptr<float>(), stream());
    } else {
        const int64_t first = rows() / 3;
        for (const auto &[begin, end] : {std::pair{int64_t{0}, first}, std::pair{first, 2 * rows()}}) {
            kernels::cpu::headNormRopeForward(precision(), qk.data_ptr(), rstd.data_ptr<float>(), packed.data_ptr(),
                                              qWeight.data_ptr(), kWeight.data_ptr(), c, s, layout, 1e-5F, begin,
                                              end - begin);
            kernels::cpu::headNormRopeBackward(precision(), dQkv.data_ptr(), dQWeight, dQWeight + size, view(dQ),
                                               view(dK), view(dV), packed.data_ptr(), rstd.data_ptr<float>(),
                                               qWeight.data_ptr(), kWeight.data_ptr(), c, s, layout, begin,
                                               end - begin);
        }
    }
    expectClose(qk.view({2, rows(), 5, size}), at::cat({q, k}, 2), "forward");
    const Tensor dHeads = at::cat({dQ, dK}, 1).transpose(1, 2).to(at::kDouble);
    (at::cat({q, k}, 2) * dHeads).sum().backward();
    const Tensor dIn = in.grad().view({2, rows(), 7, size});
    const Tensor dOut = dQkv.view({2, rows(), 7, size});
    expectClose(dOut.narrow(2, 0, 5), dIn.narrow(2, 0, 5), "backward");
    EXPECT_TRUE(at::equal(dOut.narrow(2, 5, 2), dV.transpose(1, 2)));
    expectClose(dWeights, at::stack({qw.grad(), kw.grad()}) + 1, "weights");
}

TEST_P(Kernels, columnSums)
{
    const Tensor wide = input({rows(), width() + 8});
    const Tensor x = wide.narrow(1, 8, width());
    Tensor sums = at::ones({width()}, floats());
    if (onCuda()) {
        Tensor scratch = at::full({kernels::cuda::columnSumsScratch(width())}, NAN, floats());
        kernels::cuda::columnSums(precision(), sums.data_ptr<float>(), x.data_ptr(), rows(), width(), x.stride(0),
                                  scratch.data_ptr<float>(), stream());
    } else {
        kernels::cpu::columnSums(precision(), sums.data_ptr<float>(), x.data_ptr(), rows(), width(), x.stride(0));
    }
    expectClose(sums, x.to(at::kDouble).sum(0) + 1, "sums");
}

TEST_P(Kernels, swiglu)
{
    const Tensor gateUp = input({rows(), 2 * width()});
    const Tensor dh = input({rows(), width()});
    Tensor h = poisoned({rows(), width()});
    Tensor again = poisoned({rows(), width()});
    Tensor dGateUp = poisoned({rows(), 2 * width()});
    Tensor inPlace = gateUp.clone();
    Tensor hInPlace = dh.clone();
    if (onCuda()) {
        kernels::cuda::swigluForward(precision(), h.data_ptr(), gateUp.data_ptr(), rows(), width(), stream());
        kernels::cuda::swigluBackward(precision(), dGateUp.data_ptr(), again.data_ptr(), dh.data_ptr(),
                                      gateUp.data_ptr(), rows(), width(), stream());
        kernels::cuda::swigluBackward(precision(), inPlace.data_ptr(), hInPlace.data_ptr(), hInPlace.data_ptr(),
                                      inPlace.data_ptr(), rows(), width(), stream());
    } else {
        kernels::cpu::swigluForward(precision(), h.data_ptr(), gateUp.data_ptr(), rows(), width());
        kernels::cpu::swigluBackward(precision(), dGateUp.data_ptr(), again.data_ptr(), dh.data_ptr(),
                                     gateUp.data_ptr(), rows(), width());
        kernels::cpu::swigluBackward(precision(), inPlace.data_ptr(), hInPlace.data_ptr(), hInPlace.data_ptr(),
                                     inPlace.data_ptr(), rows(), width());
    }
    const Tensor in = exact(gateUp);
    const Tensor reference = at::silu(in.narrow(1, 0, width())) * in.narrow(1, width(), width());
    expectClose(h, reference, "h");
    expectClose(again, reference, "h again");
    reference.backward(dh.to(at::kDouble));
    expectClose(dGateUp, in.grad(), "dGateUp");
    EXPECT_TRUE(at::equal(inPlace, dGateUp));
    EXPECT_TRUE(at::equal(hInPlace, again));
}

TEST_P(Kernels, crossEntropy)
{
    const Tensor logits = input({rows(), width()}) * 4;
    Tensor targets = at::randint(0, width(), {rows()}, floats().dtype(at::kLong));
    targets[rows() / 2] = -1;
    Tensor gradient = logits.clone();
    Tensor losses = at::full({rows()}, NAN, floats());
    Tensor lossesAlone = at::full({rows()}, NAN, floats());
    if (onCuda()) {
        kernels::cuda::crossEntropyLoss(precision(), logits.data_ptr(), lossesAlone.data_ptr<float>(),
                                        targets.data_ptr<int64_t>(), rows(), width(), stream());
        kernels::cuda::crossEntropy(precision(), gradient.data_ptr(), losses.data_ptr<float>(),
                                    targets.data_ptr<int64_t>(), rows(), width(), 0.25F, stream());
    } else {
        kernels::cpu::crossEntropyLoss(precision(), logits.data_ptr(), lossesAlone.data_ptr<float>(),
                                       targets.data_ptr<int64_t>(), rows(), width());
        kernels::cpu::crossEntropy(precision(), gradient.data_ptr(), losses.data_ptr<float>(),
                                   targets.data_ptr<int64_t>(), rows(), width(), 0.25F);
    }
    const Tensor in = exact(logits);
    const Tensor reference = at::cross_entropy_loss(in, targets, {}, at::Reduction::None, -1);
    expectClose(losses, reference, "losses");
    EXPECT_TRUE(at::equal(losses, lossesAlone));
    reference.sum().backward();
    expectClose(gradient, in.grad() * 0.25, "gradient");
    EXPECT_EQ(gradient[rows() / 2].abs().sum().item<float>(), 0.0F);
}

TEST_P(Kernels, crossEntropyDoesNotHideWhatIsNotFinite)
{
    Tensor logits = input({rows(), width()});
    logits[0][width() - 1] = NAN;
    logits[rows() - 1][0] = INFINITY;
    Tensor losses = at::zeros({rows()}, floats());
    const Tensor targets = at::zeros({rows()}, floats().dtype(at::kLong));
    if (onCuda())
        kernels::cuda::crossEntropy(precision(), logits.data_ptr(), losses.data_ptr<float>(),
                                    targets.data_ptr<int64_t>(), rows(), width(), 1.0F, stream());
    else
        kernels::cpu::crossEntropy(precision(), logits.data_ptr(), losses.data_ptr<float>(),
                                   targets.data_ptr<int64_t>(), rows(), width(), 1.0F);
    EXPECT_FALSE(std::isfinite(losses[0].item<float>()));
    EXPECT_FALSE(std::isfinite(losses[rows() - 1].item<float>()));
    EXPECT_FALSE(at::isfinite(logits[0]).all().item<bool>());
}

TEST_P(Kernels, embeddingBackward)
{
    const Tensor tokens = at::randint(0, 5, {rows()}, floats().dtype(at::kLong));
    const Tensor dx = input({rows(), width()});
    Tensor dWeight = at::ones({7, width()}, floats());
    if (onCuda())
        kernels::cuda::embeddingBackward(precision(), dWeight.data_ptr<float>(), dx.data_ptr(),
                                         tokens.data_ptr<int64_t>(), rows(), width(), stream());
    else
        kernels::cpu::embeddingBackward(precision(), dWeight.data_ptr<float>(), dx.data_ptr(),
                                        tokens.data_ptr<int64_t>(), rows(), width());
    Tensor reference = at::ones({7, width()}, floats().dtype(at::kDouble));
    reference.index_add_(0, tokens, dx.to(at::kDouble));
    expectClose(dWeight, reference, "dWeight");
}

TEST_P(Kernels, adamWAgreesWithPyTorchs)
{
    const int64_t n = rows() * width();
    Tensor master = at::randn({n}, floats());
    Tensor first = at::zeros({n}, floats());
    Tensor second = at::zeros({n}, floats());
    Tensor reference = master.to(at::kDouble);
    Tensor referenceFirst = first.to(at::kDouble);
    Tensor referenceSecond = second.to(at::kDouble);
    const Tensor scale = at::full({}, 0.5, floats());
    double sum = 0;
    for (int step = 1; step <= 3; ++step) {
        const Tensor gradient = at::randn({n}, floats());
        const kernels::AdamWStep constants{1e-2F,
                                           0.9F,
                                           0.95F,
                                           1e-8F,
                                           0.1F,
                                           static_cast<float>(1 - std::pow(0.9, step)),
                                           static_cast<float>(1 - std::pow(0.95, step))};
        if (onCuda()) {
            kernels::cuda::adamW(master.data_ptr<float>(), first.data_ptr<float>(), second.data_ptr<float>(),
                                 gradient.data_ptr<float>(), scale.data_ptr<float>(), n, constants, stream());
            Tensor total = at::ones({}, floats().dtype(at::kDouble));
            Tensor scratch = at::full({kernels::cuda::kSumScratch}, NAN, floats().dtype(at::kDouble));
            kernels::cuda::sumOfSquares(total.data_ptr<double>(), scratch.data_ptr<double>(),
                                        gradient.data_ptr<float>(), n, stream());
            sum = total.item<double>() - 1;
        } else {
            kernels::cpu::adamW(master.data_ptr<float>(), first.data_ptr<float>(), second.data_ptr<float>(),
                                gradient.data_ptr<float>(), scale.data_ptr<float>(), n, constants);
            sum = kernels::cpu::sumOfSquares(gradient.data_ptr<float>(), n);
        }
        EXPECT_NEAR(sum, gradient.to(at::kDouble).square().sum().item<double>(), 1e-9 * sum);
        const Tensor g = gradient.to(at::kDouble) * 0.5;
        reference.mul_(1 - 1e-2 * 0.1);
        referenceFirst.mul_(0.9).add_(g, 0.1);
        referenceSecond.mul_(0.95).addcmul_(g, g, 0.05);
        reference.sub_(1e-2 / (1 - std::pow(0.9, step)) * referenceFirst /
                       ((referenceSecond / (1 - std::pow(0.95, step))).sqrt() + 1e-8));
    }
    expectClose(master, reference, "master");
    expectClose(first, referenceFirst, "exp_avg");
    expectClose(second, referenceSecond, "exp_avg_sq");
}

/// Moments in bf16 follow those in fp32 as far as their rounding allows; a NaN for the scale changes nothing at all.
TEST_P(Kernels, updatesKeepRoundedMomentsAndLeaveASkippedStep)
{
    const int64_t n = rows() * width();
    const Tensor start = at::randn({n}, floats());
    const kernels::AdamWStep constants{1e-2F, 0.9F, 0.95F, 1e-8F, 0.1F, 0.1F, 0.05F};
    const auto bits = [](const Tensor &t) { return static_cast<uint16_t *>(t.data_ptr()); };
    const auto update = [&](const Tensor &p, const Tensor &m, const Tensor &v, const Tensor &g, const Tensor &scale) {
        const bool isBf16 = m.scalar_type() == at::kBFloat16;
        float *master = p.data_ptr<float>();
        const float *gradient = g.data_ptr<float>();
        const float *factor = scale.data_ptr<float>();
        if (onCuda() && isBf16)
            kernels::cuda::adamW(master, bits(m), bits(v), gradient, factor, n, constants, stream());
        else if (onCuda())
            kernels::cuda::adamW(master, m.data_ptr<float>(), v.data_ptr<float>(), gradient, factor, n, constants,
                                 stream());
        else if (isBf16)
            kernels::cpu::adamW(master, bits(m), bits(v), gradient, factor, n, constants);
        else
            kernels::cpu::adamW(master, m.data_ptr<float>(), v.data_ptr<float>(), gradient, factor, n, constants);
    };
    std::vector<Tensor> last;
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
        const Tensor master = start.clone();
        const Tensor first = at::zeros({n}, floats().dtype(type));
        const Tensor second = at::zeros({n}, floats().dtype(type));
        for (int step = 0; step < 3; ++step) {
            const Tensor gradient = start.roll(step + 1);
            update(master, first, second, gradient, at::full({}, 0.5, floats()));
            const Tensor before[] = {master.clone(), first.clone(), second.clone()};
            update(master, first, second, gradient / 0.0, at::full({}, NAN, floats()));
            EXPECT_TRUE(at::equal(master, before[0]) && at::equal(first, before[1]) && at::equal(second, before[2]));
        }
        last.insert(last.end(), {master, first.to(at::kFloat), second.to(at::kFloat)});
    }
    for (size_t i = 0; i < 3; ++i) {
        const double error = ((last[i + 3] - last[i]).norm() / last[i].norm()).item<double>();
        EXPECT_LT(error, i == 0 ? 1e-3 : 5e-3);
        EXPECT_GT(error, 0) << "rounding was to show";
    }
}

/// torch.optim.SGD by LibTorch's operators, to the bit; the processor has those themselves.
TEST_P(Kernels, sgdHasTheBitsOfLibTorchsOperators)
{
    if (!onCuda())
        GTEST_SKIP() << "the pass is for CUDA";
    const int64_t n = rows() * width();
    for (const double decay : {0.0, 0.1}) {
        const Tensor master = at::randn({n}, floats());
        const Tensor moment = at::zeros({n}, floats());
        Tensor p = master.clone();
        Tensor m = moment.clone();
        const Tensor scale = at::full({}, 0.3, floats());
        for (int step = 0; step < 3; ++step) {
            const Tensor gradient = at::randn({n}, floats());
            kernels::cuda::sgd(master.data_ptr<float>(), moment.data_ptr<float>(), gradient.data_ptr<float>(),
                               scale.data_ptr<float>(), n, 1e-2F, 0.9F, static_cast<float>(decay), stream());
            Tensor g = gradient * scale;
            if (decay != 0)
                g.add_(p, decay);
            m.mul_(0.9).add_(g);
            p.add_(m, -1e-2);
            EXPECT_TRUE(at::equal(master, p) && at::equal(moment, m)) << "step " << step;
        }
    }
}

// Widths that vectors divide and widths that they don't, few rows and many.
#define SHARDSCOPE_CASES(device)                                                                                       \
    testing::Values(Case{device, Precision::Fp32, 37, 64}, Case{device, Precision::Fp32, 5, 99},                       \
                    Case{device, Precision::Fp32, 300, 288}, Case{device, Precision::Bf16, 37, 64},                    \
                    Case{device, Precision::Bf16, 5, 99}, Case{device, Precision::Bf16, 300, 288},                     \
                    Case{device, Precision::Bf16, 600, 2048}, Case{device, Precision::Fp32, 3, 8192},                  \
                    Case{device, Precision::Bf16, 3, 5001}, Case{device, Precision::Fp16, 37, 64},                     \
                    Case{device, Precision::Fp16, 5, 99}, Case{device, Precision::Fp16, 600, 2048})
INSTANTIATE_TEST_SUITE_P(Cpu, Kernels, SHARDSCOPE_CASES(at::kCPU));
INSTANTIATE_TEST_SUITE_P(Cuda, Kernels, SHARDSCOPE_CASES(at::kCUDA));

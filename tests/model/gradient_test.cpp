// SPDX-License-Identifier: Apache-2.0
// The explicit backward against autograd on the same weights and tokens.
#include "core/model/decoder.h"
#include "tests/model/ranks.h"
#include "tests/model/reference_decoder.h"

#include <ATen/Parallel.h>
#include <algorithm>
#include <gtest/gtest.h>
#include <torch/torch.h>

namespace shardscope {

static double relativeError(const at::Tensor &value, const at::Tensor &reference)
{
    const at::Tensor exact = reference.to(at::kDouble);
    return ((value.to(at::kDouble) - exact).norm() / exact.norm()).item<double>();
}

struct GradientCase
{
    const char *name;
    bool odd;
    bool tied;
    bool grouped;
    at::DeviceType device = at::kCPU;
    bool everything = false; ///< biases, norms of heads, windows

    shapes::ModelShape shape() const
    {
        return everything ? test::shapeWithEverything(odd) : test::smallShape(odd, tied, grouped);
    }
};

class ExplicitBackward : public testing::TestWithParam<GradientCase>
{
protected:
    void SetUp() override
    {
        if (GetParam().device == at::kCUDA && !torch::cuda::is_available())
            GTEST_SKIP() << "no CUDA device";
    }
    void compare(Precision precision, int passes, double tolerance);
};

static test::NamedTensors inBf16(const test::NamedTensors &weights)
{
    test::NamedTensors rounded;
    for (const auto &[name, value] : weights)
        rounded[name] = value.to(at::kBFloat16);
    return rounded;
}

/// The reference is autograd in fp32 on the CPU, whatever the device of the test. What bf16 costs differs from tensor
/// to tensor (norms of heads have few elements, and softmax's gradient cancels), so a gradient may be further away than
/// the tolerance where autograd's own in bf16 is: by a quarter more, as two roundings of the same sums differ, but not
/// in the mean over all tensors.
void ExplicitBackward::compare(Precision precision, int passes, double tolerance)
{
    const GradientCase &test = GetParam();
    const shapes::ModelShape shape = test.shape();
    const at::Device device(test.device, test.device == at::kCUDA ? 0 : -1);
    at::set_num_threads(1);
    const test::NamedTensors weights = test::randomWeights(shape, 7);
    torch::manual_seed(7);
    const at::Tensor tokens = torch::randint(0, shape.vocabulary, {3, 21}, at::kLong);
    at::Tensor targets = torch::randint(0, shape.vocabulary, {3, 21}, at::kLong);
    targets[1].slice(0, 5, 9).fill_(-1);
    const double scale = 1.0 / 59;
    const test::ReferenceResult expected = test::referenceStep(shape, weights, tokens, targets, scale);

    observe::Observer observer;
    engine::Communicator::Options communicatorOptions;
    communicatorOptions.device = device;
    auto communicator = engine::Communicator::create(communicatorOptions, observer);
    ASSERT_TRUE(communicator.has_value());
    config::RunConfiguration configuration;
    configuration.precision.compute = precision;
    model::Decoder decoder(shape, configuration, **communicator, observer);
    for (const auto &[name, value] : weights)
        ASSERT_TRUE(decoder.engine().loadParameter(name, value).has_value());

    const double lossOnly = decoder.forwardLoss(tokens.to(device), targets.to(device), scale).item<double>();
    at::Tensor loss;
    for (int pass = 0; pass < passes; ++pass)
        loss = decoder.forwardBackward(tokens.to(device), targets.to(device), scale, pass + 1 == passes);
    EXPECT_EQ(loss.item<double>(), lossOnly);
    EXPECT_NEAR(loss.item<double>() / expected.loss, 1.0, tolerance / 10);
    const engine::StepScalars scalars = decoder.engine().reduceScalars(loss);
    test::NamedTensors ofAutograd = expected.gradients;
    if (precision == Precision::Bf16)
        ofAutograd = test::referenceStep(shape, inBf16(weights), tokens, targets, scale).gradients;
    double squares = 0;
    double errors = 0;
    double errorsOfAutograd = 0;
    for (const auto &[name, reference] : expected.gradients) {
        const auto gradient = decoder.engine().gatherGradient(name);
        ASSERT_TRUE(gradient.has_value()) << gradient.error().text;
        const double error = relativeError(gradient->cpu(), reference * passes);
        const double errorOfAutograd = relativeError(ofAutograd.at(name), reference);
        EXPECT_LT(error, std::max(tolerance, 1.25 * errorOfAutograd)) << name;
        squares += gradient->to(at::kDouble).square().sum().item<double>();
        errors += error;
        errorsOfAutograd += errorOfAutograd;
    }
    EXPECT_NEAR(scalars.host().gradientSquares / squares, 1.0, 1e-6);
    if (precision == Precision::Bf16) {
        EXPECT_LT(errors, 1.15 * errorsOfAutograd) << "precision is lost somewhere";
    }
}

TEST_P(ExplicitBackward, equalsAutogradInFp32)
{
    compare(Precision::Fp32, 1, 1e-5);
}

TEST_P(ExplicitBackward, addsUpOverPasses)
{
    compare(Precision::Fp32, 2, 1e-5);
}

TEST_P(ExplicitBackward, isNearAutogradInBf16)
{
    compare(Precision::Bf16, 1, 3e-2);
}

static std::vector<GradientCase> casesOn(at::DeviceType device)
{
    return {{"even", false, false, false, device},
            {"tied", false, true, false, device},
            {"grouped", false, false, true, device},
            {"odd", true, false, false, device},
            {"oddTiedGrouped", true, true, true, device},
            {"everything", false, false, true, device, true},
            {"oddEverything", true, false, true, device, true}};
}

static std::string nameOf(const testing::TestParamInfo<GradientCase> &info)
{
    return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Cpu, ExplicitBackward, testing::ValuesIn(casesOn(at::kCPU)), nameOf);
INSTANTIATE_TEST_SUITE_P(Cuda, ExplicitBackward, testing::ValuesIn(casesOn(at::kCUDA)), nameOf);

TEST(Attention, isPlainWhereADeviceHasNoFusedKernel)
{
    using Kind = model::Attention::Kind;
    const auto kind = [](int capability, Precision compute) {
        return shapes::attentionKindOnCuda(capability, compute, 64, false);
    };
    EXPECT_EQ(kind(75, Precision::Bf16), Kind::Plain);
    EXPECT_EQ(kind(80, Precision::Bf16), Kind::Flash);
    EXPECT_EQ(kind(90, Precision::Bf16), Kind::Cudnn);
    EXPECT_EQ(kind(75, Precision::Fp32), Kind::Efficient);
    EXPECT_EQ(kind(120, Precision::Fp32), Kind::Efficient);
    EXPECT_EQ(kind(121, Precision::Fp32), Kind::Plain);
    EXPECT_EQ(shapes::attentionKindOnCuda(90, Precision::Bf16, 64, true), Kind::Flash);
    EXPECT_EQ(shapes::attentionKindOnCuda(90, Precision::Bf16, 12, false), Kind::Plain);
}

TEST(Attention, plainEqualsTheFusedOperator)
{
    const at::Tensor q = torch::randn({2, 3, 17, 8});
    const at::Tensor k = torch::randn({2, 3, 17, 8});
    const at::Tensor v = torch::randn({2, 3, 17, 8});
    const at::Tensor dout = torch::randn({2, 3, 17, 8});
    const model::Attention plain(model::Attention::Kind::Plain);
    const model::Attention fused(model::Attention::Kind::Cpu);
    const auto a = plain.forward(q, k, v);
    const auto b = fused.forward(q, k, v);
    EXPECT_LT(relativeError(a.out_BHTD, b.out_BHTD), 1e-6);
    const auto da = plain.backward(dout, q, k, v, a);
    const auto db = fused.backward(dout, q, k, v, b);
    EXPECT_LT(relativeError(da.dq_BHTD, db.dq_BHTD), 1e-6);
    EXPECT_LT(relativeError(da.dk_BHTD, db.dk_BHTD), 1e-6);
    EXPECT_LT(relativeError(da.dv_BHTD, db.dv_BHTD), 1e-6);
}

/// A window wants tiles of the operators to be left out whole, so the sequence is longer than one.
TEST(Attention, windowedEqualsPlain)
{
    const auto random = [] { return torch::randn({1, 2, 1300, 8}); };
    const at::Tensor q = random();
    const at::Tensor k = random();
    const at::Tensor v = random();
    const at::Tensor dout = random();
    const model::Attention plain(model::Attention::Kind::Plain, 37);
    const model::Attention fused(model::Attention::Kind::Cpu, 37);
    const auto a = plain.forward(q, k, v);
    const auto b = fused.forward(q, k, v);
    EXPECT_LT(relativeError(a.out_BHTD, b.out_BHTD), 1e-6);
    const auto da = plain.backward(dout, q, k, v, a);
    const auto db = fused.backward(dout, q, k, v, b);
    EXPECT_LT(relativeError(da.dq_BHTD, db.dq_BHTD), 1e-6);
    EXPECT_LT(relativeError(da.dk_BHTD, db.dk_BHTD), 1e-6);
    EXPECT_LT(relativeError(da.dv_BHTD, db.dv_BHTD), 1e-6);
    // The last position sees 37 keys and no other.
    at::Tensor far = v.clone();
    far.narrow(2, 0, 1300 - 37).zero_();
    EXPECT_TRUE(at::equal(fused.forward(q, k, far).out_BHTD.select(2, 1299), b.out_BHTD.select(2, 1299)));
    far.select(2, 1300 - 37).zero_();
    EXPECT_FALSE(at::equal(fused.forward(q, k, far).out_BHTD.select(2, 1299), b.out_BHTD.select(2, 1299)));
}

/// On each kind of CUDA, against plain in fp32.
TEST(CudaAttention, windowedEqualsPlain)
{
    if (!torch::cuda::is_available())
        GTEST_SKIP() << "no CUDA device";
    using Kind = model::Attention::Kind;
    for (const auto &[kind, type] :
         {std::pair{Kind::Efficient, at::kFloat}, {Kind::Flash, at::kBFloat16}, {Kind::Cudnn, at::kBFloat16}}) {
        const auto random = [&] { return torch::randn({2, 3, 700, 64}, torch::kCUDA).to(type); };
        const at::Tensor q = random();
        const at::Tensor k = random();
        const at::Tensor v = random();
        const at::Tensor dout = random();
        const double tolerance = type == at::kFloat ? 1e-5 : 1e-2;
        const model::Attention plain(Kind::Plain, 150);
        const model::Attention fused(kind, 150);
        const auto a = plain.forward(q, k, v);
        const auto b = fused.forward(q, k, v);
        EXPECT_LT(relativeError(b.out_BHTD, a.out_BHTD), tolerance);
        const auto da = plain.backward(dout, q, k, v, a);
        const auto db = fused.backward(dout, q, k, v, b);
        EXPECT_LT(relativeError(db.dq_BHTD, da.dq_BHTD), tolerance);
        EXPECT_LT(relativeError(db.dk_BHTD, da.dk_BHTD), tolerance);
        EXPECT_LT(relativeError(db.dv_BHTD, da.dv_BHTD), tolerance);
    }
}

TEST(Decoder, refusesAWeightOfAnotherShape)
{
    observe::Observer observer;
    auto communicator = engine::Communicator::create({}, observer);
    model::Decoder decoder(test::smallShape(false, false, false), {}, **communicator, observer);
    const auto wrong = decoder.engine().loadParameter("head.weight", torch::zeros({3, 3}));
    ASSERT_FALSE(wrong.has_value());
    EXPECT_EQ(wrong.error().text,
              "The parameter head.weight has the shape [128, 64], but the value for it has [3, 3].");
    EXPECT_FALSE(decoder.engine().loadParameter("no.such", torch::zeros({3})).has_value());
    EXPECT_FALSE(decoder.engine().gatherGradient("head.weight").has_value());
}

} // namespace shardscope

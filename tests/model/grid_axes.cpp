// SPDX-License-Identifier: Apache-2.0
#include "tests/model/grid_axes.h"

namespace shardscope::test {

using config::RunConfiguration;

static GridAxis sharding()
{
    const auto strategy = [](Strategy value) {
        return [value](RunConfiguration &configuration) { configuration.parallel.strategy = value; };
    };
    const auto hybrid = [](RunConfiguration &configuration) {
        configuration.parallel.strategy = Strategy::Hybrid;
        configuration.parallel.shardGroup = 2;
    };
    const auto resharded = [](RunConfiguration &configuration) { configuration.parallel.reshardGroup = 2; };
    // An embedding `none`, linear weights `full`, norms `grad_op` in one model.
    const auto mixed = [](RunConfiguration &configuration) {
        configuration.units.push_back({.match = "embedding.*", .settings = {{"parallel.strategy", "none"}}});
        configuration.units.push_back({.kind = ParameterKind::Norm, .settings = {{"parallel.strategy", "grad_op"}}});
        configuration.units.push_back({.match = "block.0.attention.k.*", .settings = {{"parallel.strategy", "none"}}});
    };
    return {"strategy",
            {{"full", strategy(Strategy::Full)},
             {"grad_op", strategy(Strategy::GradOp)},
             {"none", strategy(Strategy::None)},
             {"mixed by rules", mixed},
             {"hybrid", hybrid, 4},
             {"full, resharded to 2", resharded, 4}}};
}

static GridAxis recompute()
{
    const auto mode = [](Recompute value, int64_t every) {
        return [=](RunConfiguration &configuration) {
            configuration.memory.recompute = value;
            configuration.memory.recomputeEvery = every;
        };
    };
    return {"recompute",
            {{"nothing recomputed", mode(Recompute::Off, 1)},
             {"blocks recomputed", mode(Recompute::Block, 1)},
             {"every second block recomputed", mode(Recompute::Block, 2)},
             {"selective", mode(Recompute::Selective, 1)}}};
}

static GridAxis activations()
{
    const auto offload = [](bool value) {
        return [value](RunConfiguration &configuration) { configuration.memory.activationOffload = value; };
    };
    return {"activations", {{"activations kept", offload(false)}, {"activations offloaded", offload(true)}}};
}

static GridAxis states()
{
    const auto places = [](OffloadPlace parameters, OffloadPlace optimizer,
                           OffloadPlace gradients = OffloadPlace::None) {
        return [=](RunConfiguration &configuration) {
            configuration.offload.parameters = parameters;
            configuration.offload.gradients = gradients;
            configuration.offload.optimizer = optimizer;
        };
    };
    constexpr OffloadPlace kNone = OffloadPlace::None;
    constexpr OffloadPlace kCpu = OffloadPlace::Cpu;
    constexpr OffloadPlace kNvme = OffloadPlace::Nvme;
    return {"offload",
            {{"states on the device", places(kNone, kNone)},
             {"optimizer nvme", places(kNone, kNvme)},
             {"parameters nvme", places(kNvme, kNone)},
             {"both nvme", places(kNvme, kNvme)},
             {"optimizer cpu", places(kNone, kCpu), 0, true},
             {"gradients cpu", places(kNone, kNone, kCpu), 0, true},
             {"all cpu", places(kCpu, kCpu, kCpu), 0, true}}};
}

static GridAxis reduction()
{
    const auto every = [](ReduceEvery value) {
        return [value](RunConfiguration &configuration) { configuration.parallel.reduceEvery = value; };
    };
    return {"reduction",
            {{"each micro-batch", every(ReduceEvery::MicroBatch)}, {"each step", every(ReduceEvery::Step)}}};
}

static GridAxis clipping()
{
    const auto at = [](double norm) {
        return [norm](RunConfiguration &configuration) { configuration.optimizer.clipNorm = norm; };
    };
    return {"clipping", {{"clipped", at(0.25)}, {"not clipped", at(0)}}};
}

const std::vector<GridAxis> &gridAxes()
{
    static const std::vector<GridAxis> axes = {sharding(), recompute(), activations(),
                                               states(),   reduction(), clipping()};
    return axes;
}

std::vector<config::UnitRule> gridRules()
{
    return {
        {.kind = ParameterKind::Norm}, {.match = "block.1.ffn.*", .wrap = true}, {.match = "block.0.attention.k.*"}};
}

RunConfiguration withOptions(RunConfiguration base, const Row &row)
{
    for (size_t axis = 0; axis < row.size(); ++axis)
        gridAxes()[axis].options[static_cast<size_t>(row[axis])].apply(base);
    return base;
}

std::string textOf(const Row &row)
{
    std::string text;
    for (size_t axis = 0; axis < row.size(); ++axis)
        text += (axis == 0 ? "" : ", ") + gridAxes()[axis].options[static_cast<size_t>(row[axis])].name;
    return text;
}

CoveringRows gridRows(int worldSize, DeviceKind device)
{
    std::vector<int> sizes;
    for (const GridAxis &axis : gridAxes())
        sizes.push_back(static_cast<int>(axis.options.size()));
    return CoveringRows(std::move(sizes), [=](const Row &row) {
        for (size_t axis = 0; axis < row.size(); ++axis) {
            const GridOption &option = gridAxes()[axis].options[static_cast<size_t>(row[axis])];
            if ((option.ranks != 0 && option.ranks != worldSize) || (option.onCuda && device != DeviceKind::Cuda))
                return false;
        }
        return true;
    });
}

} // namespace shardscope::test

// SPDX-License-Identifier: Apache-2.0
#include "core/pretrained/adapter_export.h"

#include "core/base/file.h"
#include "core/files/float_values.h"
#include "core/shapes/adapters.h"
#include "core/shapes/hf_names.h"
#include "core/shapes/unit_plan.h"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace shardscope::pretrained {

using nlohmann::json;

namespace {

/// One tensor that is to be written.
struct Part
{
    shapes::ParameterShape parameter;
    std::string module; ///< "model.layers.3.self_attn.q_proj"
    std::string name() const
    {
        const bool isA = parameter.adapter == shapes::AdapterPart::A;
        return fmt::format("base_model.model.{}.lora_{}.weight", module, isA ? "A" : "B");
    }
};

/// "model.layers.3.self_attn.q_proj" of the weight.
std::string moduleOf(const shapes::ParameterShape &weight)
{
    const std::string name = shapes::hfNameOf(weight.name);
    return name.substr(0, name.rfind('.'));
}

Result<std::vector<Part>> partsOf(const CheckpointModel &model)
{
    const config::RunConfiguration &configuration = model.configuration;
    if (configuration.lora.rank == 0)
        return fail("The run has no adapters (lora.rank): it trained the model itself. Use --format huggingface.");
    const auto plan = shapes::planOf(shapes::unitsOf(model.shape), configuration, configuration.parallel.ranks);
    if (!plan)
        return tl::unexpected(plan.error());
    std::vector<Part> parts;
    for (const shapes::UnitPlan &unit : plan->units) {
        for (const shapes::BucketPlan &bucket : unit.buckets) {
            for (const size_t index : bucket.parameters) {
                const shapes::ParameterShape &parameter = unit.shape.parameters[index];
                const bool isAdapter = parameter.adapter != shapes::AdapterPart::None;
                if (isAdapter)
                    parts.push_back({parameter, moduleOf(unit.shape.parameters[parameter.adapts])});
                else if (!bucket.frozen)
                    return fail("The run trained {} beside its adapters, which would be lacking in them. Use --format "
                                "huggingface.",
                                parameter.name);
            }
        }
    }
    return parts;
}

/// "q_proj" where all layers' have an adapter, else each module by its name. peft takes what ends so behind a dot.
std::vector<std::string> targetModules(const std::vector<Part> &parts, int64_t layers)
{
    std::map<std::string, std::set<std::string>> modules; // by the last part of their names
    for (const Part &part : parts)
        modules[part.module.substr(part.module.rfind('.') + 1)].insert(part.module);
    std::vector<std::string> targets;
    for (const auto &[last, all] : modules) {
        if (all.contains(last) || static_cast<int64_t>(all.size()) == layers)
            targets.push_back(last);
        else
            targets.insert(targets.end(), all.begin(), all.end());
    }
    return targets;
}

std::string configText(const CheckpointModel &model, const std::vector<Part> &parts)
{
    const config::RunConfiguration &configuration = model.configuration;
    const std::string &path = configuration.model.path;
    const double alpha = shapes::adapterAlpha(configuration);
    const bool isWhole = alpha == std::floor(alpha); // as peft writes it itself
    const json config = {{"peft_type", "LORA"},
                         {"task_type", "CAUSAL_LM"},
                         {"base_model_name_or_path", path.empty() ? json(nullptr) : json(path)},
                         {"r", configuration.lora.rank},
                         {"lora_alpha", isWhole ? json(static_cast<int64_t>(alpha)) : json(alpha)},
                         {"target_modules", targetModules(parts, model.shape.layers)},
                         {"lora_dropout", 0.0},
                         {"bias", "none"},
                         {"fan_in_fan_out", false},
                         {"init_lora_weights", true},
                         {"modules_to_save", nullptr},
                         {"use_rslora", false},
                         {"use_dora", false},
                         {"inference_mode", true}};
    return config.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<> writeParts(CheckpointWeights &weights, const std::vector<Part> &parts, files::SafetensorsWriter &writer,
                    files::TensorType type, const ExportOptions &options)
{
    int64_t doneBytes = 0;
    std::vector<std::byte> stored;
    for (size_t i = 0; i < parts.size(); ++i) {
        const auto values = weights.readAll(parts[i].parameter);
        if (!values)
            return tl::unexpected(values.error());
        stored.resize(values->size() * static_cast<size_t>(files::elementBytes(type)));
        files::fromFloats(type, *values, stored);
        if (auto written = writer.write(i, 0, stored); !written)
            return written;
        doneBytes += static_cast<int64_t>(stored.size());
        const int64_t totalBytes = writer.header().fileBytes - writer.header().dataOffsetBytes;
        if (options.progress && !options.progress(doneBytes, totalBytes))
            return fail("The export was broken off.");
    }
    return writer.finish();
}

} // namespace

Result<> checkAdapters(const CheckpointModel &model)
{
    return partsOf(model).map([](const auto &) {});
}

Result<> exportAdapter(CheckpointWeights &weights, const CheckpointModel &model, const std::filesystem::path &folder,
                       const ExportOptions &options)
{
    const auto parts = partsOf(model);
    if (!parts)
        return tl::unexpected(parts.error());
    const files::TensorType type = options.type.value_or(files::TensorType::F32);
    std::error_code error;
    if (!std::filesystem::create_directory(folder, error))
        return fail("Can't make the folder {}: {}.", folder.string(), error.message());
    std::vector<files::SafeTensorSpec> specs;
    for (const Part &part : *parts)
        specs.push_back({part.name(), type, part.parameter.sizes});
    auto writer = files::SafetensorsWriter::create(folder / "adapter_model.safetensors",
                                                   files::planSafetensors(specs, {{"format", "pt"}}));
    if (!writer)
        return tl::unexpected(writer.error());
    return writeParts(weights, *parts, *writer, type, options)
        .and_then([&] { return writeFileAtomically(folder / "adapter_config.json", configText(model, *parts)); })
        .and_then([&] { return syncFolder(folder); });
}

} // namespace shardscope::pretrained

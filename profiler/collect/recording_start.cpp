// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/recording_start.h"

namespace shardscope::collect {

Result<std::unique_ptr<ActivitySource>> startActivity(RecorderOptions &options)
{
    if (options.level == RecordLevel::Off || (!options.activity && options.device.kind != DeviceKind::Cuda))
        return std::unique_ptr<ActivitySource>();
    std::unique_ptr<ActivitySource> source = std::move(options.activity);
    if (!source) {
        auto cupti = makeCuptiSource();
        if (!cupti)
            return tl::unexpected(cupti.error());
        source = std::move(*cupti);
    }
    if (auto started = source->start(options.level); !started)
        return tl::unexpected(started.error());
    return source;
}

std::unique_ptr<MetricsSampler> startMetrics(RecorderOptions &options, std::vector<std::string> &warnings)
{
    if (options.level == RecordLevel::Off)
        return nullptr;
    std::unique_ptr<Nvml> nvml;
    if (options.device.kind == DeviceKind::Cuda) {
        auto opened = Nvml::open(options.device.pci);
        if (opened) {
            nvml = std::move(*opened);
            options.meta.emplace_back("driver_version", nvml->driverVersion());
        } else {
            warnings.push_back(opened.error().text);
        }
    }
    return std::make_unique<MetricsSampler>(std::move(nvml));
}

} // namespace shardscope::collect

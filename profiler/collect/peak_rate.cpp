// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/peak_rate.h"

#include <array>
#include <string_view>

namespace shardscope::collect {

namespace {

struct Card
{
    std::string_view name; ///< as the driver has it, without "NVIDIA" and "GeForce"
    double bf16Tera;       ///< and fp16: dense, accumulated in fp32
    double fp32Tera;
    bool variants = false; ///< what follows the name (memory, form factor) changes nothing
};

// From NVIDIA's data sheets and architecture white papers, dense figures (half of those "with sparsity"). The first
// that fits is taken. Slower variants (Laptop, Max-Q, SUPER, Ti) are other cards with names of their own: those not
// listed have no figure.
constexpr std::array kCards = {
    Card{"GB200", 2500, 80, true},
    Card{"B200", 2250, 75, true},
    Card{"GH200", 989.4, 66.9, true},
    Card{"H200 NVL", 835.5, 60.3},
    Card{"H200", 989.4, 66.9, true},
    Card{"H100 NVL", 835.5, 60.3},
    Card{"H100 PCIe", 756.4, 51.2},
    Card{"H100 80GB HBM3", 989.4, 66.9},
    Card{"H20", 148, 44, true},
    Card{"A100", 311.9, 19.5, true},
    Card{"A800", 311.9, 19.5, true},
    Card{"A40", 149.7, 37.4, true},
    Card{"A30", 165, 10.3, true},
    Card{"A10", 125, 31.2},
    Card{"L40S", 362, 91.6},
    Card{"L40", 181, 90.5},
    Card{"L4", 121, 30.3},
    Card{"RTX 6000 Ada Generation", 364.2, 91.1},
    Card{"RTX A6000", 154.8, 38.7},
    Card{"RTX PRO 6000 Blackwell Workstation Edition", 503.8, 126},
    Card{"RTX 5090", 209.5, 104.8},
    Card{"RTX 5080", 112.6, 56.3},
    Card{"RTX 4090", 165.2, 82.6},
    Card{"RTX 4080 SUPER", 104.4, 52.2},
    Card{"RTX 4080", 97.5, 48.7},
    Card{"RTX 3090 Ti", 80, 40},
    Card{"RTX 3090", 71, 35.6},
    Card{"RTX 3080", 59.5, 29.8},
};

bool fits(const Card &card, std::string_view name)
{
    if (!card.variants || name.size() == card.name.size())
        return name == card.name;
    const char next = name.size() > card.name.size() ? name[card.name.size()] : '\0';
    // A slice of a card (MIG) has a part of its rate.
    return name.starts_with(card.name) && (next == ' ' || next == '-') && name.find("MIG") == std::string_view::npos;
}

} // namespace

std::optional<double> peakFlops(const DeviceDescription &device, Precision compute)
{
    if (device.kind != DeviceKind::Cuda)
        return std::nullopt;
    std::string_view name = device.name;
    for (const std::string_view prefix : {"NVIDIA ", "GeForce "}) {
        if (name.starts_with(prefix))
            name.remove_prefix(prefix.size());
    }
    for (const Card &card : kCards) {
        if (fits(card, name))
            return (compute == Precision::Fp32 ? card.fp32Tera : card.bf16Tera) * 1e12;
    }
    return std::nullopt;
}

} // namespace shardscope::collect

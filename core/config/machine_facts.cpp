// SPDX-License-Identifier: Apache-2.0
#include "core/config/machine_facts.h"

#include <array>
#include <dlfcn.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

namespace shardscope::config {

namespace {

// From cuda.h, which is not needed to build this: CUresult and CUdevice are ints on every platform.
constexpr int kErrorNoDevice = 100;
constexpr int kErrorStubLibrary = 34;
constexpr int kErrorDriverMismatch = 803;
constexpr int kAttributeMajor = 75; ///< CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
constexpr int kAttributeMinor = 76;

using Uuid = std::array<unsigned char, 16>;

/// The driver's functions that are needed, all found or none.
class Driver
{
public:
    /// The library stays loaded: unloading libcuda while its threads run is not safe.
    explicit Driver(void *library)
        : m_library(library)
    {
        const bool found = load(init, "cuInit") && load(getVersion, "cuDriverGetVersion") &&
                           load(getCount, "cuDeviceGetCount") && load(getDevice, "cuDeviceGet") &&
                           load(getName, "cuDeviceGetName") && load(getMemory, "cuDeviceTotalMem_v2") &&
                           load(getAttribute, "cuDeviceGetAttribute") && load(getPci, "cuDeviceGetPCIBusId") &&
                           (load(getUuid, "cuDeviceGetUuid_v2") || load(getUuid, "cuDeviceGetUuid"));
        isWhole = found;
    }

    bool isWhole = false;
    int (*init)(unsigned) = nullptr;
    int (*getVersion)(int *) = nullptr;
    int (*getCount)(int *) = nullptr;
    int (*getDevice)(int *, int) = nullptr;
    int (*getName)(char *, int, int) = nullptr;
    int (*getMemory)(size_t *, int) = nullptr;
    int (*getAttribute)(int *, int, int) = nullptr;
    int (*getPci)(char *, int, int) = nullptr;
    int (*getUuid)(Uuid *, int) = nullptr;

private:
    template <typename F>
    bool load(F &function, const char *name)
    {
        function = reinterpret_cast<F>(::dlsym(m_library, name));
        return function;
    }

    void *m_library;
};

std::string uuidText(const Uuid &uuid)
{
    std::string text = "GPU-";
    for (size_t i = 0; i < uuid.size(); ++i)
        text += fmt::format("{}{:02x}", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
    return text;
}

std::string initProblem(int error)
{
    switch (error) {
    case kErrorNoDevice:
        return "the NVIDIA driver finds no GPU that this process may use (see CUDA_VISIBLE_DEVICES)";
    case kErrorStubLibrary:
        return "libcuda.so.1 is a stub, not the driver's own; take its folder out of LD_LIBRARY_PATH";
    case kErrorDriverMismatch:
        return "the NVIDIA driver and its libraries are of different versions; restart the machine";
    default:
        return fmt::format("the NVIDIA driver can't start (CUDA error {}); see what nvidia-smi says", error);
    }
}

bool readDevice(const Driver &driver, int ordinal, CudaDevice &device)
{
    int handle = 0;
    std::array<char, 256> name{};
    std::array<char, 32> pci{};
    size_t memoryBytes = 0;
    int major = 0;
    int minor = 0;
    Uuid uuid{};
    if (driver.getDevice(&handle, ordinal) || driver.getName(name.data(), static_cast<int>(name.size()), handle) ||
        driver.getMemory(&memoryBytes, handle) || driver.getAttribute(&major, kAttributeMajor, handle) ||
        driver.getAttribute(&minor, kAttributeMinor, handle) || driver.getUuid(&uuid, handle) ||
        driver.getPci(pci.data(), static_cast<int>(pci.size()), handle))
        return false;
    device = {name.data(), uuidText(uuid), pci.data(), static_cast<int64_t>(memoryBytes), major * 10 + minor};
    return true;
}

/// Fills the CUDA facts; returns what is wrong, or nothing.
std::string probeCuda(const char *libraryName, MachineFacts &facts)
{
    void *library = ::dlopen(libraryName, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return "there is no NVIDIA driver (libcuda.so.1) on this machine";
    const Driver driver(library);
    if (!driver.isWhole)
        return "the NVIDIA driver is too old for CUDA 13; install driver 580 or newer";
    // The version comes first: it can be read even where cuInit fails.
    driver.getVersion(&facts.cudaDriverVersion);
    if (const int error = driver.init(0))
        return initProblem(error);
    if (facts.cudaDriverVersion < kNeededCudaVersion)
        return fmt::format("the NVIDIA driver supports CUDA {}.{}, and 13.0 is needed; install driver 580 or newer",
                           facts.cudaDriverVersion / 1000, facts.cudaDriverVersion % 1000 / 10);
    int count = 0;
    if (const int error = driver.getCount(&count))
        return initProblem(error);
    for (int ordinal = 0; ordinal < count; ++ordinal) {
        CudaDevice device;
        if (!readDevice(driver, ordinal, device)) {
            facts.cudaDevices.clear();
            return fmt::format("GPU {} does not answer the NVIDIA driver; see what nvidia-smi says", ordinal);
        }
        facts.cudaDevices.push_back(std::move(device));
    }
    return count == 0 ? initProblem(kErrorNoDevice) : "";
}

} // namespace

MachineFacts probeMachine(const char *cudaDriverLibrary)
{
    MachineFacts facts;
    cpu_set_t allowed;
    if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0)
        facts.cpuThreads = CPU_COUNT(&allowed);
    facts.memoryBytes = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGE_SIZE);
    facts.cudaProblem = probeCuda(cudaDriverLibrary, facts);
    return facts;
}

} // namespace shardscope::config

// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 for tests of the probe: what it says is in environment variables.
#include <cstdlib>
#include <cstring>

static int number(const char *name, int standard)
{
    const char *text = std::getenv(name);
    return text ? std::atoi(text) : standard;
}

extern "C" {
int cuInit(unsigned)
{
    return number("FAKE_CUDA_INIT", 0);
}
int cuDriverGetVersion(int *version)
{
    *version = number("FAKE_CUDA_VERSION", 13000);
    return 0;
}
int cuDeviceGetCount(int *count)
{
    *count = number("FAKE_CUDA_COUNT", 2);
    return 0;
}
int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal + 40; // handles need not be ordinals
    return number("FAKE_CUDA_BROKEN", -1) == ordinal ? 101 : 0;
}
int cuDeviceGetName(char *name, int size, int device)
{
    std::strncpy(name, device == 40 ? "Fake A" : "Fake B", static_cast<size_t>(size));
    return 0;
}
int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    *bytes = size_t{1} << (device - 7); // 8 GiB, 16 GiB
    return 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int)
{
    *value = attribute == 75 ? 8 : attribute == 76 ? 6 : -1;
    return 0;
}
int cuDeviceGetUuid(unsigned char *uuid, int)
{
    for (unsigned char i = 0; i < 16; ++i)
        uuid[i] = i;
    return 0;
}
int cuDeviceGetPCIBusId(char *id, int size, int)
{
    std::strncpy(id, "0000:1b:00.0", static_cast<size_t>(size));
    return 0;
}
}

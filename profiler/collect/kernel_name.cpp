// SPDX-License-Identifier: Apache-2.0
#include "profiler/collect/kernel_name.h"

#include <array>
#include <cstdlib>
#include <cxxabi.h>
#include <memory>

namespace shardscope::collect {

namespace {

std::string demangled(std::string_view mangled)
{
    const std::string text(mangled);
    if (!text.starts_with("_Z"))
        return text;
    int status = 0;
    const std::unique_ptr<char, void (*)(void *)> name(abi::__cxa_demangle(text.c_str(), nullptr, nullptr, &status),
                                                       std::free);
    return status == 0 && name ? std::string(name.get()) : text;
}

void removeAll(std::string &text, std::string_view what)
{
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at))
        text.erase(at, what.size());
}

/// Where the argument list begins: the last "(" that is within no other bracket. Names may hold "(anonymous namespace)"
/// and lambdas, so those that close before the end are no argument lists.
size_t argumentList(std::string_view name)
{
    int depth = 0;
    for (size_t i = name.size(); i-- > 0;) {
        if (name[i] == ')')
            ++depth;
        else if (name[i] == '(' && --depth == 0)
            return i;
    }
    return name.size();
}

/// Where the name begins, after a return type: the last space within no bracket.
size_t nameBegin(std::string_view name)
{
    int depth = 0;
    size_t begin = 0;
    for (size_t i = 0; i < name.size(); ++i) {
        const char c = name[i];
        if (c == '<' || c == '(' || c == '{')
            ++depth;
        else if (c == '>' || c == ')' || c == '}')
            --depth;
        else if (c == ' ' && depth == 0)
            begin = i + 1;
    }
    return begin;
}

/// NCCL names its kernels after the algorithm and protocol they were compiled for, not those that run (nccl#2196).
void removeNcclProtocol(std::string &name)
{
    for (const std::string_view suffix : {"_LL128", "_LL", "_SIMPLE", "_RING", "_TREE"}) {
        if (name.ends_with(suffix))
            name.resize(name.size() - suffix.size());
    }
}

} // namespace

std::string shortKernelName(std::string_view mangled)
{
    std::string name = demangled(mangled);
    removeAll(name, "(anonymous namespace)::");
    if (name.ends_with(')'))
        name.resize(argumentList(name));
    name.erase(0, nameBegin(name));
    for (const std::string_view space :
         {"at::native::", "at::cuda::", "at_cuda_detail::", "c10::", "std::", "cub::", "thrust::"})
        removeAll(name, space);
    if (isNcclKernel(name))
        removeNcclProtocol(name);
    if (name.size() > kKernelNameLength) {
        size_t length = kKernelNameLength - 1;
        // Not within a character of UTF-8.
        while (length > 0 && (static_cast<unsigned char>(name[length]) & 0xc0) == 0x80)
            --length;
        name.resize(length);
        name += "…";
    }
    return name;
}

bool isNcclKernel(std::string_view name)
{
    static constexpr std::array<std::string_view, 3> kPrefixes = {"ncclKernel_", "ncclDevKernel_",
                                                                  "ncclSymkDevKernel_"};
    for (const std::string_view prefix : kPrefixes) {
        if (name.starts_with(prefix))
            return true;
    }
    return false;
}

} // namespace shardscope::collect

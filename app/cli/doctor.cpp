// SPDX-License-Identifier: Apache-2.0
#include "app/cli/doctor.h"

#include "app/cli/commands.h"
#include "app/cli/exit_code.h"
#include "app/cli/offload_drive.h"
#include "app/cli/prepared_run.h"
#include "core/base/text.h"
#include "core/config/machine_facts.h"
#include "core/launch/environment.h"
#include "core/launch/launch_plan.h"
#include "core/launch/sockets.h"
#include "core/run/json_access.h"
#include "core/run/places.h"
#include "profiler/collect/nvml.h"

#include <array>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace shardscope::cli {

static void examineGpus(const config::MachineFacts &machine, std::vector<Finding> &findings)
{
    std::string driver;
    if (!machine.cudaDevices.empty()) {
        if (auto nvml = collect::Nvml::open(machine.cudaDevices.front().pci))
            driver = (*nvml)->driverVersion();
        else
            findings.push_back({Verdict::Note, "NVML", nvml.error().text, "Use and power of GPUs are not shown."});
    }
    if (machine.cudaDriverVersion > 0) {
        const bool tooOld = machine.cudaDriverVersion < config::kNeededCudaVersion;
        findings.push_back({tooOld ? Verdict::Note : Verdict::Good, "driver",
                            fmt::format("{}supports CUDA {}.{}", driver.empty() ? "" : driver + ", ",
                                        machine.cudaDriverVersion / 1000, machine.cudaDriverVersion % 1000 / 10),
                            tooOld ? "CUDA 13.0 needs driver 580 or newer: install it from your distribution or from "
                                     "nvidia.com/drivers. Until then runs use the CPU."
                                   : ""});
    }
    for (size_t i = 0; i < machine.cudaDevices.size(); ++i) {
        const config::CudaDevice &device = machine.cudaDevices[i];
        findings.push_back(
            {Verdict::Good,
             fmt::format("GPU {}", i),
             fmt::format("{}, {}, compute capability {}.{}", device.name, formatBytes(device.memoryBytes),
                         device.computeCapability / 10, device.computeCapability % 10),
             {}});
    }
    if (machine.cudaDevices.empty() && machine.cudaDriverVersion < 1)
        findings.push_back({Verdict::Note, "GPU", machine.cudaProblem, "Runs use the CPU."});
    else if (machine.cudaDevices.empty() && machine.cudaDriverVersion >= config::kNeededCudaVersion)
        findings.push_back({Verdict::Note, "GPU", machine.cudaProblem, "Runs use the CPU."});
}

/// The worker's answer to --version: that it starts at all shows that its libraries (LibTorch, CUDA) are found.
static Result<std::string> askVersion(const fs::path &worker)
{
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0)
        return fail("{}", std::strerror(errno));
    launch::FileDescriptor reading(ends[0]);
    launch::FileDescriptor writing(ends[1]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, writing.get(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, writing.get(), STDERR_FILENO);
    std::string program = worker.string();
    std::string option = "--version";
    char *arguments[] = {program.data(), option.data(), nullptr};
    pid_t pid = 0;
    const int error = ::posix_spawn(&pid, program.c_str(), &actions, nullptr, arguments, ::environ);
    posix_spawn_file_actions_destroy(&actions);
    writing.close();
    if (error != 0)
        return fail("{}", std::strerror(error));
    std::string text;
    char bytes[4096];
    for (ssize_t got; (got = ::read(reading.get(), bytes, sizeof bytes)) > 0;)
        text.append(bytes, static_cast<size_t>(got));
    int status = 0;
    ::waitpid(pid, &status, 0);
    while (!text.empty() && text.back() == '\n')
        text.pop_back();
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return fail("it does not start: {}", text);
    return text;
}

static void examineWorker(std::vector<Finding> &findings)
{
    const auto worker = launch::findWorker();
    if (!worker) {
        findings.push_back({Verdict::Bad, "worker", worker.error().text, "Run packaging/setup.sh."});
        return;
    }
    const auto version = askVersion(*worker);
    if (version)
        findings.push_back({Verdict::Good, "worker", fmt::format("{} ({})", worker->string(), *version), {}});
    else
        findings.push_back({Verdict::Bad, "worker", fmt::format("{}: {}", worker->string(), version.error().text),
                            "Its libraries are missing or of another version: run packaging/setup.sh again."});
}

static void examineFolder(const std::string &subject, const fs::path &folder, std::vector<Finding> &findings)
{
    constexpr int64_t kLittleBytes = int64_t{5} << 30;
    const fs::path parent = existingParent(folder);
    if (::access(parent.c_str(), W_OK | X_OK) != 0) {
        findings.push_back({Verdict::Bad, subject, fmt::format("{} can't be written", folder.string()),
                            "Change its permissions, or set the XDG variable that names it."});
        return;
    }
    const int64_t freeBytes = freeDriveBytes(parent).value_or(0);
    const bool little = freeBytes < kLittleBytes;
    findings.push_back({little ? Verdict::Note : Verdict::Good, subject,
                        fmt::format("{}, {} free", folder.string(), formatBytes(freeBytes)),
                        little ? "Recordings and checkpoints may fill it: free some, or give --out." : ""});
}

static void examineLimits(const config::MachineFacts &machine, std::vector<Finding> &findings)
{
    findings.push_back(
        {Verdict::Good,
         "processor",
         fmt::format("{} cores for this process, {} of memory", machine.cpuThreads, formatBytes(machine.memoryBytes)),
         {}});
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    const bool few = files.rlim_cur < 1024;
    findings.push_back({few ? Verdict::Note : Verdict::Good, "open files", fmt::format("limit {}", files.rlim_cur),
                        few ? "Raise it: ulimit -n 4096" : ""});
    if (auto loopback = launch::listenOnLoopback())
        findings.push_back({Verdict::Good, "loopback", "127.0.0.1 works", {}});
    else
        findings.push_back({Verdict::Bad, "loopback", loopback.error().text,
                            "Ranks meet over the loopback interface: bring it up with: ip link set lo up"});
    if (auto runtime = run::runtimeDirectory())
        findings.push_back({Verdict::Good, "control sockets", runtime->string(), {}});
    else
        findings.push_back({Verdict::Note, "control sockets", runtime.error().text, "Runs would take no commands."});
}

std::vector<Finding> examineMachine()
{
    std::vector<Finding> findings;
    const config::MachineFacts machine = config::probeMachine();
    examineGpus(machine, findings);
    examineWorker(findings);
    examineFolder("runs", runsDirectory(), findings);
    examineFolder("cache", run::cacheDirectory(), findings);
    examineFolder("settings", run::configDirectory(), findings);
    examineLimits(machine, findings);
    return findings;
}

static const char *toText(Verdict verdict)
{
    switch (verdict) {
    case Verdict::Good:
        return "ok";
    case Verdict::Note:
        return "note";
    case Verdict::Bad:
        break;
    }
    return "bad";
}

static std::string toJson(const std::vector<Finding> &findings, bool good)
{
    nlohmann::json list = nlohmann::json::array();
    for (const Finding &each : findings)
        list.push_back({{"verdict", toText(each.verdict)},
                        {"subject", each.subject},
                        {"text", each.text},
                        {"remedy", each.remedy.empty() ? nlohmann::json(nullptr) : nlohmann::json(each.remedy)}});
    return run::dump({{"version", SHARDSCOPE_VERSION}, {"ok", good}, {"findings", list}});
}

int doctorCommand(Format format)
{
    const std::vector<Finding> findings = examineMachine();
    bool good = true;
    std::string text = fmt::format("shardscope {}\n", SHARDSCOPE_VERSION);
    for (const Finding &each : findings) {
        good = good && each.verdict != Verdict::Bad;
        text += fmt::format("{:5} {:16} {}\n", toText(each.verdict), each.subject, each.text);
        if (!each.remedy.empty())
            text += fmt::format("{:22} → {}\n", "", each.remedy);
    }
    text += good ? "Runs work here.\n" : "Runs do not work here yet.\n";
    Output(STDOUT_FILENO).result(format == Format::Json ? toJson(findings, good) : text);
    return good ? kDone : kJobFailed;
}

} // namespace shardscope::cli

// SPDX-License-Identifier: Apache-2.0
#include "app/cli/offload_drive.h"

#include "core/base/parent_folders.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace shardscope::cli {

fs::path existingParent(fs::path path)
{
    std::error_code error;
    while (!fs::exists(path, error) && path.has_parent_path() && path != path.parent_path())
        path = path.parent_path();
    return path;
}

std::optional<int64_t> freeDriveBytes(const fs::path &folder)
{
    struct statvfs space
    {
    };
    if (::statvfs(folder.c_str(), &space) != 0)
        return std::nullopt;
    return static_cast<int64_t>(space.f_bavail) * static_cast<int64_t>(space.f_frsize);
}

/// Why a file can't be made in a folder that is there; empty: it can.
static std::string problemOfFile(const fs::path &folder)
{
    const std::string path = folder / fmt::format(".offload-trial-{}", ::getpid());
    ::unlink(path.c_str()); // of a process of this number that was killed between the two calls below
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0)
        return fmt::format("Can't make a file there: {}.", std::strerror(errno));
    ::unlink(path.c_str());
    ::close(file);
    return {};
}

plan::DriveRoom tryDrive(const fs::path &folder)
{
    plan::DriveRoom drive{.folder = folder.string(), .problem = {}, .freeBytes = {}};
    const auto parents = ParentFolders::makeAbove(folder / "file"); // gone again at the end
    drive.problem = parents ? problemOfFile(folder) : parents.error().text;
    if (drive.problem.empty())
        drive.freeBytes = freeDriveBytes(folder);
    return drive;
}

/// With what to do about it.
static Result<> check(const plan::DriveRoom &drive, int64_t neededBytes, int64_t ranks, std::string_view elsewhere)
{
    const bool isUsable = drive.problem.empty();
    return plan::checkDrive(drive, neededBytes, ranks).map_error([&](const Error &error) {
        return Error{fmt::format("{} {} {}.", error.text, elsewhere,
                                 isUsable ? "on another drive, free space there, or offload less (offload.parameters, "
                                            "offload.optimizer)"
                                          : "that can be used, or offload nothing by nvme")};
    });
}

Result<> checkDriveOfNewRun(const shapes::ModelPlan &plan, const config::RunConfiguration &configuration,
                            const fs::path &runFolder)
{
    const int64_t neededBytes = plan::moreInFiles(plan, nullptr, configuration);
    if (neededBytes == 0)
        return {};
    const fs::path parent = existingParent(runFolder);
    // Whether the run's own folder can be made is said where it is made.
    const plan::DriveRoom drive =
        configuration.offload.path.empty()
            ? plan::DriveRoom{.folder = parent.string(), .problem = {}, .freeBytes = freeDriveBytes(parent)}
            : tryDrive(configuration.offload.path);
    return check(drive, neededBytes, plan.worldSize, "Set offload.path to a folder");
}

Result<> checkDriveOfChange(const shapes::ModelPlan &plan, const config::RunConfiguration *now,
                            const config::RunConfiguration &next, const fs::path &attemptFolder)
{
    const int64_t neededBytes = plan::moreInFiles(plan, now, next);
    if (neededBytes == 0)
        return {};
    const fs::path folder = next.offload.path.empty() ? attemptFolder : fs::path(next.offload.path);
    return check(tryDrive(folder), neededBytes, plan.worldSize,
                 "Stop the run and go on with it by run --resume RUN --set offload.path=FOLDER, a folder");
}

} // namespace shardscope::cli

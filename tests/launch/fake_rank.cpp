// SPDX-License-Identifier: Apache-2.0
// A rank without a model, for tests of the supervisor: it speaks the real channel and behaves as FAKE_RANK tells it, a
// list of words separated by spaces:
// - die@S=SIGNAL: raises SIGNAL after step S
// - exit@S=CODE: exits with CODE after step S, without a message
// - fail@S=TEXT_WITH_UNDERSCORES: says a failure after step S, then exits with 1
// - collective@S: says a failure in a collective after step S, then exits with 1
// - closing@S=MS: says a failure after step S, ignores SIGTERM, and exits with 1 that much later
// - hang@S: does nothing more after step S, and ignores SIGTERM
// - stop@S: raises SIGSTOP after step S
// - unrecorded@S=TEXT: says that the recording is lost
// - after step 0 is before the first, and before the rank is ready
// - rank=R: the words after it are for rank R alone; before the first one they are for all
//
// FAKE_STEPS (default 5) and FAKE_STEP_MS (default 20) say how many steps and how long one takes;
// FAKE_PERIODIC_CHECKPOINTS=1 lets rank 0 tell of a checkpoint "/periodic" after each step, that nobody asked for. As
// real ranks do, they meet once a step (in a file that all map), and rank 0's command word is in force two steps later.
#include "core/base/clock.h"
#include "core/control/rank_channel.h"
#include "core/files/checkpoint_folder.h"
#include "profiler/collect/flight_ring.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

namespace fs = std::filesystem;
using namespace shardscope;
using namespace shardscope::control;

static int number(const char *variable, int otherwise)
{
    const char *text = std::getenv(variable);
    return text && *text ? std::atoi(text) : otherwise;
}

/// What to do after a step: "die" → "9".
using Deeds = std::multimap<int, std::pair<std::string, std::string>>;

static Deeds readDeeds(int rank)
{
    Deeds deeds;
    const char *text = std::getenv("FAKE_RANK");
    std::istringstream words(text ? text : "");
    int forRank = -1;
    for (std::string word; words >> word;) {
        if (word.starts_with("rank=")) {
            forRank = std::stoi(word.substr(5));
            continue;
        }
        const size_t at = word.find('@');
        const size_t equals = word.find('=');
        const int step = std::stoi(word.substr(at + 1));
        const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
        if (forRank < 0 || forRank == rank)
            deeds.emplace(step, std::pair(word.substr(0, at), value));
    }
    return deeds;
}

/// Where the ranks meet: what each has reached, and the command word.
struct Meeting
{
    std::atomic<int> steps[8];
    std::atomic<int> command;    ///< 1 + control::Command
    std::atomic<int> inForce;    ///< after this step
    std::atomic<int64_t> change; ///< of a Set
};

static Meeting *openMeeting(const fs::path &path)
{
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || ::ftruncate(fd, sizeof(Meeting)) != 0)
        std::abort();
    void *memory = ::mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    return memory == MAP_FAILED ? nullptr : static_cast<Meeting *>(memory);
}

class FakeRank
{
public:
    FakeRank(const fs::path &attempt, fs::path run)
        : m_rank(number("RANK", -1))
        , m_ranks(number("WORLD_SIZE", -1))
        , m_steps(number("FAKE_STEPS", 5))
        , m_meeting(openMeeting(attempt / "fake-meeting"))
        , m_run(std::move(run))
        , m_configuration(nlohmann::json::parse(std::ifstream(attempt / "config.json")))
        , m_deeds(readDeeds(m_rank))
        , m_channel(RankChannel::fromEnvironment())
        , m_flight(collect::FlightRing::create(attempt / fmt::format("rank-{}.flight", m_rank), m_rank, m_ranks, true))
    {
    }

    int train()
    {
        std::printf("rank %d of %d begins\n", m_rank, m_ranks);
        std::fflush(stdout);
        act(0);
        m_channel->send(ReadyMessage{::getpid(), 1, m_steps, "cpu"});
        for (int step = 1; step <= m_steps; ++step) {
            std::this_thread::sleep_for(std::chrono::milliseconds(number("FAKE_STEP_MS", 20)));
            meet(step);
            m_channel->send(
                StepMessage{.step = step,
                            .steps = m_steps,
                            .loss = 10.0 / step,
                            .tokens = 100,
                            .stepNs = 1'000'000,
                            .figures = {.peakAllocatedBytes = 1000 * (m_rank + 1), .exposedCommunicationNs = 250'000},
                            .wallNs = realtimeNs()});
            if (m_rank == 0 && number("FAKE_PERIODIC_CHECKPOINTS", 0))
                m_channel->send(CheckpointMessage{step, "/periodic"});
            act(step);
            if (takeCommand(step))
                return 0;
        }
        return 0;
    }

private:
    void meet(int step);
    void act(int step);
    bool takeCommand(int step);
    void checkpoint(int step);
    void configure(int step, int64_t change);

    int m_rank;
    int m_ranks;
    int m_steps;
    Meeting *m_meeting;
    fs::path m_run;
    nlohmann::json m_configuration; ///< empty where a test has no use for one
    Deeds m_deeds;
    std::unique_ptr<RankChannel> m_channel;
    Result<std::unique_ptr<collect::FlightRing>> m_flight;
};

/// A collective: waits for all, for ever where one has died.
void FakeRank::meet(int step)
{
    const int64_t number = step - 1;
    (*m_flight)->begin(number, {.sequence = number, .operation = Operation::AllReduce, .phase = Phase::Optimizer}, step,
                       "block.0", "fake");
    (*m_flight)->enqueued(number, realtimeNs());
    m_meeting->steps[m_rank] = step;
    for (int rank = 0; rank < m_ranks; ++rank) {
        while (m_meeting->steps[rank] < step)
            std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    (*m_flight)->ended(number, realtimeNs());
}

void FakeRank::act(int step)
{
    const auto [first, last] = m_deeds.equal_range(step);
    for (auto deed = first; deed != last; ++deed) {
        const auto &[what, value] = deed->second;
        std::fprintf(stderr, "rank %d: %s after step %d\n", m_rank, what.c_str(), step);
        if (what == "die")
            ::raise(std::stoi(value));
        if (what == "exit") {
            m_channel.reset();
            ::_exit(std::stoi(value));
        }
        if (what == "fail" || what == "collective") {
            m_channel->send(FailureMessage{value, 1, what == "collective", realtimeNs()});
            m_channel.reset();
            ::_exit(1);
        }
        if (what == "closing") {
            ::signal(SIGTERM, SIG_IGN);
            m_channel->send(FailureMessage{what, 1, false, realtimeNs()});
            std::this_thread::sleep_for(std::chrono::milliseconds(std::stoi(value)));
            ::_exit(1);
        }
        if (what == "unrecorded")
            m_channel->send(WarningMessage{.text = value, .recording = true});
        if (what == "stop")
            ::raise(SIGSTOP);
        if (what == "hang") {
            ::signal(SIGTERM, SIG_IGN);
            for (;;)
                ::pause();
        }
    }
}

void FakeRank::checkpoint(int step)
{
    if (m_rank != 0)
        return;
    const files::CheckpointFolder checkpoints(m_run / "checkpoints");
    files::Manifest manifest;
    manifest.step = step;
    manifest.createdNs = realtimeNs();
    manifest.files = {{"rank-0.bin", 0, 0, {}}};
    if (!m_configuration.empty()) {
        manifest.optimizer = m_configuration["optimizer"]["kind"];
        manifest.data.seed = m_configuration["train"]["seed"];
        manifest.data.sequenceLength = m_configuration["train"]["sequence_length"];
        manifest.data.validation = m_configuration["data"]["validation"];
    }
    if (!checkpoints.begin(step))
        std::abort();
    std::ofstream(checkpoints.partialPathOf(step) / "rank-0.bin");
    if (!checkpoints.commit(manifest))
        std::abort();
    m_channel->send(CheckpointMessage{step, checkpoints.pathOf(step).string(), true});
}

/// True where the run is to end.
bool FakeRank::takeCommand(int step)
{
    if (m_rank == 0 && m_meeting->inForce < step) {
        if (const auto order = m_channel->poll()) {
            m_meeting->change = order->change;
            m_meeting->command = 1 + static_cast<int>(order->command);
            m_meeting->inForce = step + 2;
        }
    }
    if (m_meeting->inForce != step)
        return false;
    Order order(static_cast<Command>(m_meeting->command - 1), m_meeting->change);
    const bool pauses = order == Command::Pause;
    for (;; order = m_channel->waitWhilePaused(step)) {
        if (order.command == Command::Set)
            configure(step, order.change);
        if (order == Command::Checkpoint || order == Command::Stop)
            checkpoint(step);
        if (!pauses || order == Command::Stop || order == Command::Unpause)
            return order == Command::Stop;
    }
}

void FakeRank::configure(int step, int64_t change)
{
    const auto configuration = m_channel->waitForChange(change);
    if (!configuration)
        std::abort();
    std::printf("rank %d from step %d: %s (%s)\n", m_rank, step + 1, configuration->text.c_str(),
                configuration->origin.c_str());
    std::fflush(stdout);
    m_channel->send(ConfiguredMessage{change, step + 1});
}

int main(int argc, char **argv)
{
    if (argc == 2 && std::string_view(argv[1]) == "--version") {
        std::puts("a rank of the supervisor's tests");
        return 0;
    }
    if (argc != 4 || std::string_view(argv[2]) != "--out" || !fs::is_regular_file(argv[1])) {
        std::fputs("usage: fake_rank CONFIG.json --out RUN_FOLDER\n", stderr);
        return 2;
    }
    return FakeRank(fs::path(argv[1]).parent_path(), argv[3]).train();
}

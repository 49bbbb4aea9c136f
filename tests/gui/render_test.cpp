// SPDX-License-Identifier: Apache-2.0
// shardscope --render as a user calls it: pictures without a display, and exit codes.
#include "core/run/run_status.h"
#include "real_recordings.h"
#include "recording_fixture.h"
#include "ui/common/colors.h"

#include <QImage>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <sqlite3.h>
#include <sys/wait.h>

namespace shardscope {

struct Outcome
{
    int exitCode = -1;
    std::string output;
};

static Outcome shardscopeWith(const std::string &arguments)
{
    const std::string command = "env -u DISPLAY -u WAYLAND_DISPLAY -u QT_QPA_PLATFORM '" +
                                std::string(getenv("SHARDSCOPE_BIN")) + "/shardscope' " + arguments + " 2>&1";
    Outcome outcome;
    FILE *pipe = popen(command.c_str(), "r");
    std::array<char, 4096> buffer;
    while (pipe && fgets(buffer.data(), buffer.size(), pipe))
        outcome.output += buffer.data();
    const int status = pclose(pipe);
    outcome.exitCode = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return outcome;
}

/// Width and height of a PNG, from its header.
static std::pair<int, int> sizeOfPng(const std::filesystem::path &path)
{
    std::ifstream file(path, std::ios::binary);
    std::array<unsigned char, 24> head{};
    file.read(reinterpret_cast<char *>(head.data()), head.size());
    if (!file || head[1] != 'P' || head[2] != 'N' || head[3] != 'G')
        return {0, 0};
    const auto number = [&head](size_t at) {
        return head[at] << 24 | head[at + 1] << 16 | head[at + 2] << 8 | head[at + 3];
    };
    return {number(16), number(20)};
}

class Render : public testing::Test
{
protected:
    void SetUp() override
    {
        const run::RunFolder folder(m_folder.path() / "a run");
        ASSERT_TRUE(test::writeFixtureRecording(folder.root()));
        run::RunStatus status;
        status.state = RunState::Done;
        status.attempt = 1;
        ASSERT_TRUE(run::writeStatus(folder, status));
    }
    /// For the shell; the folder's name has a quote in it.
    std::string quoted(const std::string &name) const
    {
        std::string path = (m_folder.path() / name).string();
        for (size_t at = 0; (at = path.find('\'', at)) != std::string::npos; at += 4)
            path.replace(at, 1, "'\\''");
        return "'" + path + "'";
    }

    test::TemporaryFolder m_folder;
};

TEST_F(Render, DrawsEachPageInTheWantedSize)
{
    for (const char *page : {"live", "timeline", "memory"}) {
        const Outcome outcome = shardscopeWith(quoted("a run") + " --render " + page + " --out " + quoted("x.png") +
                                               " --size 900x600 --scale 1.5 --theme dark");
        ASSERT_EQ(outcome.exitCode, 0) << page << ": " << outcome.output;
        EXPECT_EQ(outcome.output, "") << page; // nothing of Qt's that nobody can act on
        EXPECT_EQ(sizeOfPng(m_folder.path() / "x.png"), (std::pair{1350, 900})) << page;
        std::filesystem::remove(m_folder.path() / "x.png");
    }
}

TEST_F(Render, DrawsTheWantedSteps)
{
    const auto picture = [this](const std::string &options) {
        const Outcome outcome =
            shardscopeWith(quoted("a run") + options + " --out " + quoted("x.png") + " --size 900x600");
        EXPECT_EQ(outcome.exitCode, 0) << options << ": " << outcome.output;
        std::ifstream file(m_folder.path() / "x.png", std::ios::binary);
        return std::string(std::istreambuf_iterator<char>(file), {});
    };
    for (const std::string page : {" --render live", " --render timeline", " --render memory"}) {
        const std::string all = picture(page);
        EXPECT_TRUE(all == picture(page)) << page << ": two pictures of the same differ";
        EXPECT_FALSE(all == picture(page + " --range 1..2")) << page;
    }
    const Outcome none =
        shardscopeWith(quoted("a run") + " --render timeline --range 900..901 --out " + quoted("y.png"));
    EXPECT_EQ(none.exitCode, 2);
    EXPECT_NE(none.output.find("none of the steps 900 to 901"), std::string::npos) << none.output;
    for (const char *wrong : {"a..b", "5..3", "1..", "-1..2", "1..2x"}) {
        const Outcome outcome =
            shardscopeWith(quoted("a run") + " --render live --out x.png --range=" + std::string(wrong));
        EXPECT_EQ(outcome.exitCode, 2) << wrong;
    }
}

/// How many pixels of a picture have each colour.
static std::map<QRgb, int> coloursOf(const std::filesystem::path &path)
{
    std::map<QRgb, int> pixels;
    const QImage image = QImage(QString::fromStdString(path.string())).convertToFormat(QImage::Format_RGB32);
    for (int y = 0; y < image.height(); ++y) {
        for (int x = 0; x < image.width(); ++x)
            ++pixels[image.pixel(x, y)];
    }
    return pixels;
}

/// What a page of the run on two GPUs must show, and more of it than a legend's little square.
static std::vector<QColor> shownIn(const std::string &page, const ui::Colors &colors, const test::PlainSql &sql)
{
    std::vector<QColor> shown;
    if (page == "timeline") {
        for (const SpanCategory category : {SpanCategory::Compute, SpanCategory::Communication, SpanCategory::Host})
            shown.push_back(colors.category(category));
        for (const Phase phase : {Phase::Forward, Phase::Backward, Phase::Validate})
            shown.push_back(colors.phase(phase));
    }
    if (page == "memory") {
        for (size_t i = 0; i < kMemoryCategories; ++i) {
            const auto category = static_cast<MemoryCategory>(i);
            const std::string name(toText(category));
            if (sql.value("SELECT max(" + name + "_bytes) * 50 > max(allocated_bytes) FROM memory"))
                shown.push_back(colors.category(category)); // at least a fiftieth of the height
        }
    }
    if (page == "live") {
        shown = {colors.category(SpanCategory::Compute), colors.category(SpanCategory::Host)};
        if (sql.value("SELECT min(exposed_communication_ns * 1.0 / wall_ns) * 50 > 1 FROM step WHERE number > 1"))
            shown.push_back(colors.category(SpanCategory::Communication));
    }
    return shown;
}

TEST_F(Render, PicturesOfTwoGpusShowWhatWasRecorded)
{
    test::copyRecording("two_gpus", m_folder.path() / "two gpus");
    const test::PlainSql sql(m_folder.path() / "two gpus", 0);
    for (const auto &[theme, scale, palette] :
         {std::tuple("light", 1, ui::lightPalette()), std::tuple("dark", 2, ui::darkPalette())}) {
        for (const std::string page : {"timeline", "memory", "live"}) {
            SCOPED_TRACE(page + ' ' + theme);
            const std::string options = std::string(" --range 2..6 --size 1280x800 --theme ") + theme + " --scale " +
                                        std::to_string(scale) + " --out " + quoted("x.png");
            const Outcome outcome = shardscopeWith(quoted("two gpus") + " --render " + page + options);
            ASSERT_EQ(outcome.exitCode, 0) << outcome.output;
            EXPECT_EQ(sizeOfPng(m_folder.path() / "x.png"), (std::pair{1280 * scale, 800 * scale}));
            std::map<QRgb, int> pixels = coloursOf(m_folder.path() / "x.png");
            const ui::Colors &colors = ui::Colors::of(palette);
            EXPECT_GT(pixels[colors.card.rgb()] + pixels[colors.page.rgb()], 1280 * 800 / 10 * scale * scale);
            for (const QColor &color : shownIn(page, colors, sql)) {
                EXPECT_GT(pixels[color.rgb()], 250 * scale * scale) << color.name().toStdString();
            }
        }
    }
}

TEST_F(Render, RefusesWhatIsWrong)
{
    const std::string run = quoted("a run");
    EXPECT_EQ(shardscopeWith(run + " --render nothing --out x.png").exitCode, 2);
    EXPECT_EQ(shardscopeWith(run + " --render live").exitCode, 2);
    EXPECT_EQ(shardscopeWith("--render live --out x.png").exitCode, 2);
    EXPECT_EQ(shardscopeWith(run + " --render live --out x.png --size 10").exitCode, 2);
    const Outcome noRun = shardscopeWith(quoted("no run") + " --render live --out " + quoted("x.png"));
    EXPECT_EQ(noRun.exitCode, 2);
    EXPECT_NE(noRun.output.find("no run"), std::string::npos);
    const Outcome noFolder = shardscopeWith(run + " --render live --out " + quoted("none/x.png"));
    EXPECT_EQ(noFolder.exitCode, 2);
    EXPECT_NE(noFolder.output.find("There is no folder"), std::string::npos) << noFolder.output;
    EXPECT_NE(noFolder.output.find("--out"), std::string::npos) << noFolder.output;
    std::filesystem::create_directory(m_folder.path() / "folder.png");
    const Outcome noFile = shardscopeWith(run + " --render live --out " + quoted("folder.png"));
    EXPECT_EQ(noFile.exitCode, 1);
    EXPECT_NE(noFile.output.find("can't be written"), std::string::npos) << noFile.output;
    EXPECT_EQ(shardscopeWith("--help").exitCode, 0);
}

TEST_F(Render, RefusesARecordingOfANewerVersion)
{
    const run::RunFolder folder(m_folder.path() / "a run");
    sqlite3 *database = nullptr;
    ASSERT_EQ(::sqlite3_open_v2(folder.supervisorDatabase(1).c_str(), &database, SQLITE_OPEN_READWRITE, nullptr),
              SQLITE_OK);
    EXPECT_EQ(::sqlite3_exec(database, "PRAGMA user_version = 987", nullptr, nullptr, nullptr), SQLITE_OK);
    ::sqlite3_close(database);
    for (const char *page : {"live", "timeline", "memory"}) {
        const Outcome outcome = shardscopeWith(quoted("a run") + " --render " + page + " --out " + quoted("x.png"));
        EXPECT_EQ(outcome.exitCode, 2) << page << ": " << outcome.output;
        EXPECT_NE(outcome.output.find("version 987"), std::string::npos) << page << ": " << outcome.output;
        EXPECT_FALSE(std::filesystem::exists(m_folder.path() / "x.png")) << page;
    }
}

} // namespace shardscope

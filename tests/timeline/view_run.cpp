// SPDX-License-Identifier: GPL-3.0-or-later
// view_run RUN_FOLDER [timeline|memory] [light|dark] [live]: one page alone in a window, to look at and to drive from
// a script. Without RUN_FOLDER's existence it makes a synthetic recording there first.
#include "recording_fixture.h"
#include "ui/common/recording_reader.h"
#include "ui/common/selection.h"
#include "ui/common/theme.h"
#include "ui/memory/memory_page.h"
#include "ui/timeline/timeline_page.h"

#include <QApplication>
#include <QTimer>
#include <clocale>
#include <cstdio>

using namespace shardscope;

int main(int argc, char **argv)
{
    QApplication app(argc, argv);
    setlocale(LC_NUMERIC, "C");
    const QStringList arguments = QApplication::arguments();
    if (arguments.size() < 2) {
        std::fprintf(stderr, "usage: view_run RUN_FOLDER [timeline|memory] [light|dark] [live]\n");
        return 2;
    }
    const std::filesystem::path folder = arguments[1].toStdString();
    if (!std::filesystem::exists(folder)) {
        test::FixtureOptions options;
        options.ranks = 4;
        options.steps = 12;
        options.blocks = 4;
        options.stepNs = 16'000'000;
        if (const auto done = test::writeFixtureRecording(folder, options); !done) {
            std::fprintf(stderr, "%s\n", done.error().text.c_str());
            return 1;
        }
    }
    ui::Theme theme;
    theme.setMode(arguments.contains(QStringLiteral("dark")) ? ui::Theme::Mode::Dark : ui::Theme::Mode::Light);
    ui::RecordingReader reader;
    ui::Selection selection;
    const ui::Page::Context context{reader, selection};
    std::unique_ptr<ui::Page> page;
    if (arguments.contains(QStringLiteral("memory")))
        page = std::make_unique<ui::memory::MemoryPage>(context);
    else
        page = std::make_unique<ui::timeline::TimelinePage>(context);
    QObject::connect(page.get(), &ui::Page::inspect, [](const ui::InspectorContent &content) {
        std::printf("inspect: %s\n", qPrintable(content.title));
        for (const auto &[name, value] : content.facts)
            std::printf("  %s: %s\n", qPrintable(name), qPrintable(value));
        std::fflush(stdout);
    });
    page->resize(1280, 800);
    page->show();
    reader.setLive(arguments.contains(QStringLiteral("live")));
    reader.open(arguments[1]);
    return QApplication::exec();
}

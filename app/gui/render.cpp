// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/render.h"

#include "app/gui/open_target.h"
#include "app/gui/pages.h"
#include "core/run/places.h"
#include "ui/common/paths.h"
#include "ui/common/recording_reader.h"
#include "ui/common/selection.h"
#include "ui/common/theme.h"
#include "ui/monitor/run_commands.h"

#include <QApplication>
#include <QDir>
#include <QElapsedTimer>
#include <QFileInfo>
#include <QPixmap>
#include <QThread>
#include <algorithm>
#include <cstdio>

namespace shardscope::gui {

static constexpr int kDone = 0;
static constexpr int kFailed = 1;
static constexpr int kWrongInput = 2;
static constexpr int kPatienceMs = 60000;
static constexpr int kQuietMs = 300; ///< charts draw themselves when the event loop comes round

static int complain(int code, const QString &text)
{
    std::fprintf(stderr, "shardscope: %s\n", qPrintable(text));
    return code;
}

/// Runs the event loop until the page has been settled for a while; false after too long.
static bool waitUntilSettled(const ui::Page &page)
{
    QElapsedTimer all;
    QElapsedTimer quiet;
    all.start();
    quiet.start();
    while (quiet.elapsed() < kQuietMs) {
        if (all.elapsed() > kPatienceMs)
            return false;
        QApplication::processEvents(QEventLoop::AllEvents, 20);
        QThread::msleep(2);
        if (!page.isSettled())
            quiet.restart();
    }
    return true;
}

static QtMessageHandler usualHandler = nullptr;

/// Leaves out what Qt says of an offscreen platform and of the locale "C", which nobody who draws a picture can act on.
static void withoutNoise(QtMsgType type, const QMessageLogContext &context, const QString &text)
{
    static constexpr const char *kNoise[] = {"This plugin does not support ", "Detected locale \"C\"",
                                             "QStandardPaths: XDG_RUNTIME_DIR not set"};
    const bool isNoise =
        type <= QtWarningMsg && std::any_of(std::begin(kNoise), std::end(kNoise),
                                            [&](const char *start) { return text.startsWith(QLatin1String(start)); });
    if (!isNoise)
        usualHandler(type, context, text);
}

void silenceQtNoise()
{
    usualHandler = qInstallMessageHandler(withoutNoise);
}

int renderPage(const Arguments &arguments)
{
    ui::Theme theme;
    theme.setMode(arguments.theme == "dark" ? ui::Theme::Mode::Dark : ui::Theme::Mode::Light);
    const QString runs = ui::fromPath(run::defaultRunsDirectory());
    const Result<OpenTarget> target = resolveTarget(QString::fromStdString(arguments.paths.front()), runs);
    if (!target)
        return complain(kWrongInput, QString::fromStdString(target.error().text));

    const QString out = QString::fromStdString(arguments.out);
    const QFileInfo outFile(out);
    if (!outFile.dir().exists())
        return complain(
            kWrongInput,
            QStringLiteral("There is no folder %1 to write %2 in. Make it, or give another file with --out.")
                .arg(outFile.absolutePath(), outFile.fileName()));

    QWidget frame;
    ui::RecordingReader reader;
    ui::Selection selection;
    ui::RunCommands commands(&frame);
    const Pages pages = makePages({reader, selection}, commands, &frame);
    ui::Page *page = pages.byId(QString::fromStdString(arguments.render));
    if (!page)
        return complain(kWrongInput,
                        QStringLiteral("This build has no page %1.").arg(QString::fromStdString(arguments.render)));
    page->setParent(nullptr);
    page->setAttribute(Qt::WA_DontShowOnScreen);
    page->setAutoFillBackground(true);
    page->resize(arguments.width, arguments.height);
    page->show();
    QString unopened;
    QObject::connect(&reader, &ui::RecordingReader::failed, [&reader, &unopened](const QString &message) {
        if (!reader.isOpen())
            unopened = message;
    });
    reader.open(target->path);
    if (target->run)
        commands.setRun(target->path, target->run->status);
    page->setRun(target->run ? &*target->run : nullptr);
    bool settled = waitUntilSettled(*page);
    if (settled && arguments.steps && page->face() == ui::Page::Face::Content) {
        const auto [first, last] = *arguments.steps;
        if (!page->showSteps(first, last)) {
            delete page;
            return complain(kWrongInput, QStringLiteral("The page %1 has none of the steps %2 to %3 to show.")
                                             .arg(QString::fromStdString(arguments.render))
                                             .arg(first)
                                             .arg(last));
        }
        settled = waitUntilSettled(*page);
    }
    const ui::Page::Face face = page->face();
    const QPixmap picture = page->grab();
    const QString cause = page->noticeText();
    delete page;
    // Some pages have something to show of a run without its recording; whoever asked for a picture has to hear of it.
    if (!unopened.isEmpty())
        return complain(kWrongInput, unopened);
    if (!settled)
        return complain(kFailed, QStringLiteral("The page was still loading after %1 s.").arg(kPatienceMs / 1000));
    if (face == ui::Page::Face::Error)
        return complain(kFailed, cause);
    if (!picture.save(out, "PNG"))
        return complain(kFailed, QStringLiteral("%1 can't be written.").arg(out));
    return kDone;
}

} // namespace shardscope::gui

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/command_line.h"
#include "app/gui/main_window.h"
#include "app/gui/render.h"
#include "core/run/places.h"
#include "ui/common/paths.h"
#include "ui/common/theme.h"

#include <QApplication>
#include <QIcon>
#include <QSettings>
#include <clocale>

using namespace shardscope;

/// What must be in the environment before QApplication reads it.
static void prepareEnvironment(const gui::Arguments &arguments)
{
    const bool noDisplay = qEnvironmentVariableIsEmpty("DISPLAY") && qEnvironmentVariableIsEmpty("WAYLAND_DISPLAY");
    if (!arguments.render.empty() && (noDisplay || qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")))
        qputenv("QT_QPA_PLATFORM", "offscreen"); // a picture needs no display, and must not depend on one
    if (arguments.scale)
        qputenv("QT_SCALE_FACTOR", QByteArray::number(*arguments.scale));
}

int main(int argc, char **argv)
{
    const tl::expected<gui::Arguments, int> arguments = gui::readArguments(argc, argv);
    if (!arguments)
        return arguments.error();
    prepareEnvironment(*arguments);
    if (!arguments->render.empty())
        gui::silenceQtNoise();
    QApplication application(argc, argv);
    std::setlocale(LC_NUMERIC, "C"); // QApplication sets the user's; files and numbers here are always C
    QApplication::setApplicationName(QStringLiteral("shardscope"));
    QApplication::setOrganizationName(QStringLiteral("shardscope"));
    QApplication::setApplicationDisplayName(QStringLiteral("Shardscope"));
    QApplication::setApplicationVersion(QStringLiteral(SHARDSCOPE_VERSION));
    QGuiApplication::setDesktopFileName(QStringLiteral("shardscope"));
    if (!arguments->render.empty())
        return gui::renderPage(*arguments);

    QSettings settings;
    ui::Theme theme;
    theme.setMode(ui::Theme::modeOf(arguments->theme.empty() ? settings.value(QStringLiteral("theme")).toString()
                                                             : QString::fromStdString(arguments->theme)));
    gui::MainWindow window(theme, settings, ui::fromPath(run::defaultRunsDirectory()));
    window.show();
    if (arguments->paths.empty())
        window.openLast();
    for (const std::string &path : arguments->paths)
        window.open(QString::fromStdString(path));
    return QApplication::exec();
}

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/open_target.h"

#include "core/base/clock.h"
#include "ui/common/paths.h"

#include <QFileInfo>

namespace shardscope::gui {

using ui::fromPath;
using ui::toPath;

Result<OpenTarget> resolveTarget(const QString &pathOrName, const QString &runsDirectory)
{
    const QFileInfo given(pathOrName);
    if (given.isFile() && given.suffix() == QLatin1String("sqlite"))
        return OpenTarget{given.absoluteFilePath(), std::nullopt};
    if (given.isFile() &&
        (given.fileName() == QLatin1String("state.json") || given.fileName() == QLatin1String("run.json")))
        return resolveTarget(given.absolutePath(), runsDirectory);
    if (given.isFile())
        return fail("{} is neither a run's folder nor a recording (.sqlite).", pathOrName.toStdString());
    const QString nameOrPath = given.isDir() ? given.absoluteFilePath() : pathOrName;
    Result<run::RunFolder> folder = run::findRun(nameOrPath.toStdString(), toPath(runsDirectory));
    if (!folder)
        return tl::unexpected<Error>(folder.error());
    const QString path = QFileInfo(fromPath(folder->root())).absoluteFilePath();
    return OpenTarget{path, run::summarize(run::RunFolder(toPath(path)), realtimeNs())};
}

} // namespace shardscope::gui

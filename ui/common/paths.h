// SPDX-License-Identifier: GPL-3.0-or-later
// Paths of any script between Qt and the standard library, byte for byte.
#pragma once

#include <QFile>
#include <QString>
#include <filesystem>

namespace shardscope::ui {

inline std::filesystem::path toPath(const QString &text)
{
    return std::filesystem::path(QFile::encodeName(text).toStdString());
}

inline QString fromPath(const std::filesystem::path &path)
{
    return QFile::decodeName(QByteArray::fromStdString(path.string()));
}

} // namespace shardscope::ui

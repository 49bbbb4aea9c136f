// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/launch/command_line.h"

#include "core/config/unit_rules.h"

#include <QRegularExpression>
#include <map>

namespace shardscope::ui {

static QString optionOf(std::string_view key)
{
    static const std::map<std::string_view, QString> options = {
        {"model.path", QStringLiteral("--model")},       {"model.preset", QStringLiteral("--preset")},
        {"data.path", QStringLiteral("--data")},         {"parallel.ranks", QStringLiteral("--ranks")},
        {"parallel.device", QStringLiteral("--device")}, {"parallel.strategy", QStringLiteral("--strategy")},
        {"train.steps", QStringLiteral("--steps")},      {"record.level", QStringLiteral("--record")}};
    const auto found = options.find(key);
    return found == options.end() ? QString() : found->second;
}

QStringList runArguments(const config::RunConfiguration &configuration, const QString &runFolder)
{
    QStringList arguments{QStringLiteral("run"), QStringLiteral("--out"), runFolder};
    for (const auto &[path, text] : config::changedKeys(configuration)) {
        if (path == "run.name" || path == "run.directory")
            continue; // --out says both
        const QString value = QString::fromStdString(text);
        if (path == "parallel.share_device" && configuration.parallel.shareDevice)
            arguments << QStringLiteral("--share-device");
        else if (const QString option = optionOf(path); !option.isEmpty())
            arguments << option << value;
        else
            arguments << QStringLiteral("--set") << QString::fromStdString(path) + u'=' + value;
    }
    for (const config::UnitRule &rule : configuration.units)
        arguments << QStringLiteral("--unit") << QString::fromStdString(config::textOf(rule));
    return arguments;
}

QString shellQuoted(const QString &word)
{
    static const QRegularExpression plain(QStringLiteral("^[A-Za-z0-9_@%+=:,./-]+$"));
    if (plain.match(word).hasMatch())
        return word;
    QString quoted = word;
    return u'\'' + quoted.replace(u'\'', QLatin1String("'\\''")) + u'\'';
}

QString shellLine(const QString &program, const QStringList &arguments)
{
    QStringList words{shellQuoted(program)};
    for (const QString &argument : arguments)
        words << shellQuoted(argument);
    return words.join(u' ');
}

} // namespace shardscope::ui

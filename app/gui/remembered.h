// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QSettings>
#include <QThreadPool>
#include <QVariant>

namespace shardscope::gui {

/// What the window remembers from one time to the next. Read at once; written on a thread of its own, in the order
/// said: QSettings takes a lock file and waits for the disk, which under a training run that writes checkpoints takes
/// seconds. The destructor waits until all is written.
class Remembered
{
public:
    explicit Remembered(const QSettings &settings);
    ~Remembered();
    Remembered(const Remembered &) = delete;
    Remembered &operator=(const Remembered &) = delete;

    QVariant value(const QString &key) const { return m_values.value(key); }
    /// An invalid value is forgotten.
    void set(const QString &key, const QVariant &value);

private:
    QString m_file;
    QSettings::Format m_format;
    QVariantHash m_values;
    QThreadPool m_writer; ///< of one thread
};

} // namespace shardscope::gui

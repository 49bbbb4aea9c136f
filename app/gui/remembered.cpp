// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/remembered.h"

namespace shardscope::gui {

Remembered::Remembered(const QSettings &settings)
    : m_file(settings.fileName())
    , m_format(settings.format())
{
    m_writer.setMaxThreadCount(1);
    for (const QString &key : settings.allKeys())
        m_values.insert(key, settings.value(key));
}

Remembered::~Remembered()
{
    m_writer.waitForDone();
}

void Remembered::set(const QString &key, const QVariant &value)
{
    if (m_values.value(key) == value)
        return;
    if (value.isValid())
        m_values.insert(key, value);
    else
        m_values.remove(key);
    // The object lives and ends on that thread: its destructor is what writes.
    m_writer.start([file = m_file, format = m_format, key, value] {
        QSettings settings(file, format);
        if (value.isValid())
            settings.setValue(key, value);
        else
            settings.remove(key);
    });
}

} // namespace shardscope::gui

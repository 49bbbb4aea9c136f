// SPDX-License-Identifier: GPL-3.0-or-later
// QCustomPlot's header needs Qt's keywords, which are off here (QT_NO_KEYWORDS): they are lent to it.
#pragma once

#include <QtGlobal>

#define signals Q_SIGNALS
#define slots Q_SLOTS
#define foreach Q_FOREACH
#include <qcustomplot.h>
#undef signals
#undef slots
#undef foreach

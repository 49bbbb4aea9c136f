// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <functional>

class QWidget;

namespace shardscope::ui {

/// Asks whether a change is to be made that was refused for the memory that it is predicted to take. Calls `yes` where
/// it is, with whether a checkpoint is to be written before.
void askToForce(QWidget *parent, const QString &why, std::function<void(bool checkpointFirst)> yes);

} // namespace shardscope::ui

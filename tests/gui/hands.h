// SPDX-License-Identifier: Apache-2.0
// A user's mouse and keyboard for tests of the whole window: events go to the window, which gives them to whatever lies
// there. What is out of sight or covered can't be clicked, and that is a failure.
#pragma once

#include <QPoint>

class QAbstractItemView;
class QModelIndex;
class QString;
class QWidget;

namespace shardscope::test {

/// Scrolls the widget into sight where it lies in a scroll area, and clicks at a point of it.
void click(QWidget &widget, QPoint at);
void click(QWidget &widget);
/// Scrolls to the item and clicks it.
void click(QAbstractItemView &view, const QModelIndex &index);

/// Chooses, checks or types, as the editor wants it: a combo box, a check box or a line. Leaves alone what is so
/// already.
void enter(QWidget &editor, const QString &text);

} // namespace shardscope::test

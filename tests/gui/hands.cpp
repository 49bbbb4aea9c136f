// SPDX-License-Identifier: Apache-2.0
#include "tests/gui/hands.h"

#include "tests/support/patience.h"

#include <QAbstractItemView>
#include <QCheckBox>
#include <QComboBox>
#include <QLineEdit>
#include <QScrollArea>
#include <QTest>
#include <QWindow>
#include <gtest/gtest.h>

namespace shardscope::test {

static void bringIntoSight(QWidget &widget)
{
    for (QWidget *parent = widget.parentWidget(); parent; parent = parent->parentWidget()) {
        if (auto *area = qobject_cast<QScrollArea *>(parent))
            area->ensureWidgetVisible(&widget);
    }
    QCoreApplication::processEvents(); // layouts that wait for their turn
}

void click(QWidget &widget, QPoint at)
{
    bringIntoSight(widget);
    QWidget *window = widget.window();
    const QPoint place = widget.mapTo(window, at);
    const QWidget *there = window->childAt(place);
    ASSERT_TRUE(widget.isVisible() && (there == &widget || widget.isAncestorOf(there)))
        << qPrintable(widget.objectName()) << " is not in sight";
    ASSERT_TRUE(widget.isEnabled()) << qPrintable(widget.objectName()) << " is not enabled";
    QTest::mouseClick(window->windowHandle(), Qt::LeftButton, {}, place);
}

void click(QWidget &widget)
{
    click(widget, widget.rect().center());
}

void click(QAbstractItemView &view, const QModelIndex &index)
{
    ASSERT_TRUE(index.isValid());
    bringIntoSight(view);
    view.scrollTo(index);
    click(*view.viewport(), view.visualRect(index).center());
}

static void choose(QComboBox &combo, const QString &text)
{
    const int row = combo.findText(text);
    ASSERT_GE(row, 0) << qPrintable(combo.objectName()) << " has no " << qPrintable(text);
    click(combo);
    QAbstractItemView *list = combo.view();
    ASSERT_TRUE(QTest::qWaitForWindowExposed(list->window(), kPatienceMs));
    // A list that has just opened takes no click for the time of a double click.
    const bool chosen = QTest::qWaitFor(
        [&] {
            if (list->isVisible())
                click(*list, combo.model()->index(row, combo.modelColumn(), combo.rootModelIndex()));
            return !list->isVisible();
        },
        kPatienceMs);
    EXPECT_TRUE(chosen) << "the list of " << qPrintable(combo.objectName()) << " stays open";
    EXPECT_EQ(combo.currentText().toStdString(), text.toStdString());
}

void enter(QWidget &editor, const QString &text)
{
    if (auto *combo = qobject_cast<QComboBox *>(&editor)) {
        if (combo->currentText() != text)
            choose(*combo, text);
    } else if (auto *check = qobject_cast<QCheckBox *>(&editor)) {
        const bool wanted = text == QLatin1String("true");
        if (check->isChecked() != wanted)
            click(*check, {8, check->height() / 2}); // on the box itself
        EXPECT_EQ(check->isChecked(), wanted) << qPrintable(check->objectName());
    } else if (auto *line = qobject_cast<QLineEdit *>(&editor)) {
        click(*line);
        QWindow *window = line->window()->windowHandle();
        QTest::keyClick(window, Qt::Key_A, Qt::ControlModifier);
        for (const QChar each : text)
            QTest::keyClick(window, each.toLatin1());
        EXPECT_EQ(line->text().toStdString(), text.toStdString()) << qPrintable(line->objectName());
    } else {
        ADD_FAILURE() << qPrintable(editor.objectName()) << " is no editor";
    }
}

} // namespace shardscope::test

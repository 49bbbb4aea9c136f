// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/config/registry.h"

#include <QObject>

class QCheckBox;
class QComboBox;
class QGridLayout;
class QLabel;
class QLineEdit;
class QToolButton;

namespace shardscope::ui {

/// One key of the registry as a line of a form: its label, an editor after its type, its unit, and beneath it what is
/// wrong. Numbers are line edits in C notation: spin boxes read 0.0003 as 3 under a locale with decimal commas.
class Field : public QObject
{
    Q_OBJECT
public:
    /// choices: shown in a combo box in place of a free text (the model's names).
    Field(const config::Key &key, const QStringList &choices, QWidget *parent);

    const config::Key &key() const { return m_key; }
    /// As --set takes it.
    QString text() const;
    void setText(const QString &text);
    /// Several things have several values: the editor shows `word`, and text() is empty until somebody chooses.
    void setMixed(const QString &word);
    /// What stands in an empty line edit: the value that then counts.
    void setPlaceholder(const QString &text);
    void setProblem(const QString &message);
    QWidget *editor() const { return m_editor; }
    /// Adds the label, editor and message at the bottom of a grid.
    void addTo(QGridLayout *grid);
    /// A button beside the editor that opens a dialog for a file or folder.
    void addBrowse(bool filesToo);

Q_SIGNALS:
    void edited();

protected:
    /// A wheel that scrolls the form changes no choice that it happens to pass over.
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    void build(const QStringList &choices, QWidget *parent);
    void browse(bool folder);

    const config::Key &m_key;
    QLabel *m_label;
    QWidget *m_editor = nullptr;
    QLineEdit *m_line = nullptr; ///< one of these three is the editor
    QComboBox *m_combo = nullptr;
    QCheckBox *m_check = nullptr;
    QToolButton *m_browse = nullptr;
    QLabel *m_unit;
    QLabel *m_problem;
};

} // namespace shardscope::ui

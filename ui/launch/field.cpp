// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/launch/field.h"

#include "ui/common/colors.h"
#include "ui/common/icons.h"
#include "ui/common/text.h"

#include <QCheckBox>
#include <QComboBox>
#include <QEvent>
#include <QFileDialog>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QToolButton>

namespace shardscope::ui {

using config::KeyType;

Field::Field(const config::Key &key, const QStringList &choices, QWidget *parent)
    : QObject(parent)
    , m_key(key)
    , m_label(new QLabel(parent))
    , m_unit(new QLabel(fromView(key.unit), parent))
    , m_problem(new QLabel(parent))
{
    build(choices, parent);
    const QString help = fromView(key.help) + QStringLiteral("\n\n") + fromView(key.path) + QStringLiteral(": ") +
                         QString::fromStdString(config::allowedText(key));
    m_label->setText(fromView(key.label) + u':');
    m_label->setBuddy(m_editor);
    m_label->setToolTip(help);
    m_editor->setToolTip(help);
    m_editor->setAccessibleName(fromView(key.label));
    m_editor->setObjectName(fromView(key.path));
    m_unit->setForegroundRole(QPalette::PlaceholderText);
    m_problem->setWordWrap(true);
    m_problem->setTextFormat(Qt::PlainText);
    m_problem->setForegroundRole(QPalette::BrightText); // the theme's colour of errors
    m_problem->hide();
}

void Field::build(const QStringList &choices, QWidget *parent)
{
    QStringList words = choices;
    if (words.isEmpty()) {
        for (const std::string_view choice : m_key.choices)
            words << fromView(choice);
    }
    if (m_key.type() == KeyType::Boolean) {
        m_check = new QCheckBox(parent);
        m_editor = m_check;
        connect(m_check, &QCheckBox::toggled, this, &Field::edited);
    } else if (!words.isEmpty()) {
        m_combo = new QComboBox(parent);
        m_combo->addItems(words);
        m_combo->setFocusPolicy(Qt::StrongFocus); // not by the wheel
        m_combo->installEventFilter(this);
        m_editor = m_combo;
        connect(m_combo, &QComboBox::currentIndexChanged, this, &Field::edited);
    } else {
        m_line = new QLineEdit(parent);
        m_line->setClearButtonEnabled(m_key.type() == KeyType::Text);
        m_editor = m_line;
        connect(m_line, &QLineEdit::textChanged, this, &Field::edited);
    }
    m_editor->setMinimumWidth(180);
}

bool Field::eventFilter(QObject *watched, QEvent *event)
{
    if (watched == m_combo && event->type() == QEvent::Wheel && !m_combo->hasFocus()) {
        event->ignore(); // it is the form's
        return true;
    }
    return QObject::eventFilter(watched, event);
}

QString Field::text() const
{
    if (m_check)
        return m_check->checkState() == Qt::PartiallyChecked ? QString()
               : m_check->isChecked()                        ? QStringLiteral("true")
                                                             : QStringLiteral("false");
    return m_combo ? m_combo->currentText() : m_line->text().trimmed();
}

void Field::setText(const QString &text)
{
    if (m_check) {
        m_check->setTristate(false);
        m_check->setChecked(text == QLatin1String("true"));
    } else if (m_combo)
        m_combo->setCurrentText(text);
    else
        m_line->setText(text);
}

void Field::setMixed(const QString &word)
{
    if (m_check) {
        m_check->setTristate(true);
        m_check->setCheckState(Qt::PartiallyChecked);
    } else if (m_combo) {
        m_combo->setPlaceholderText(word);
        m_combo->setCurrentIndex(-1);
    } else {
        m_line->clear();
        m_line->setPlaceholderText(word);
    }
}

void Field::setPlaceholder(const QString &text)
{
    if (m_line)
        m_line->setPlaceholderText(text);
}

void Field::setProblem(const QString &message)
{
    m_problem->setText(message);
    m_problem->setVisible(!message.isEmpty());
    m_editor->setAccessibleDescription(message);
}

void Field::addTo(QGridLayout *grid)
{
    const int row = grid->rowCount();
    grid->addWidget(m_label, row, 0, Qt::AlignRight | Qt::AlignVCenter);
    grid->addWidget(m_editor, row, 1);
    grid->addWidget(m_browse ? static_cast<QWidget *>(m_browse) : m_unit, row, 2, Qt::AlignLeft | Qt::AlignVCenter);
    grid->addWidget(m_problem, row + 1, 1, 1, 2);
}

void Field::addBrowse(bool filesToo)
{
    m_unit->hide();
    m_browse = new QToolButton(m_editor->parentWidget());
    m_browse->setIcon(icon(QStringLiteral("document-open"), m_editor->palette()));
    m_browse->setToolTip(tr("Choose…"));
    m_browse->setAccessibleName(tr("Choose: %1").arg(fromView(m_key.label)));
    if (!filesToo) {
        connect(m_browse, &QToolButton::clicked, this, [this] { browse(true); });
        return;
    }
    auto *menu = new QMenu(m_browse);
    menu->addAction(tr("A &file…"), this, [this] { browse(false); });
    menu->addAction(tr("A f&older…"), this, [this] { browse(true); });
    m_browse->setMenu(menu);
    m_browse->setPopupMode(QToolButton::InstantPopup);
}

void Field::browse(bool folder)
{
    auto *dialog = new QFileDialog(m_editor, fromView(m_key.label), text());
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(folder ? QFileDialog::Directory : QFileDialog::ExistingFile);
    if (!folder)
        dialog->setNameFilters({tr("Text and tokens (*.txt *.md *.bin *.py *.c *.cpp *.h)"), tr("All files (*)")});
    connect(dialog, &QFileDialog::fileSelected, this, &Field::setText);
    dialog->open();
}

} // namespace shardscope::ui

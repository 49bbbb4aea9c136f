// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/toggles/force_question.h"

#include <QCheckBox>
#include <QMessageBox>
#include <QPushButton>

namespace shardscope::ui {

void askToForce(QWidget *parent, const QString &why, std::function<void(bool checkpointFirst)> yes)
{
    auto *box = new QMessageBox(QMessageBox::Warning, QMessageBox::tr("Apply anyway?"),
                                QMessageBox::tr("The run is predicted to need more memory than there is."),
                                QMessageBox::Cancel, parent);
    box->setAttribute(Qt::WA_DeleteOnClose);
    box->setObjectName(QStringLiteral("force"));
    box->setTextFormat(Qt::PlainText);
    box->setInformativeText(why + QMessageBox::tr("\n\nIf it runs out of memory the run fails, and what was trained "
                                                  "since its last checkpoint is lost."));
    auto *checkpoint = new QCheckBox(QMessageBox::tr("&Write a checkpoint first"), box);
    checkpoint->setChecked(true);
    box->setCheckBox(checkpoint);
    QPushButton *apply = box->addButton(QMessageBox::tr("&Apply anyway"), QMessageBox::DestructiveRole);
    apply->setObjectName(QStringLiteral("applyAnyway"));
    box->setDefaultButton(QMessageBox::Cancel);
    QObject::connect(apply, &QPushButton::clicked, box,
                     [checkpoint, yes = std::move(yes)] { yes(checkpoint->isChecked()); });
    box->open();
}

} // namespace shardscope::ui

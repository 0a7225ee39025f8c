// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/dialogs.h"

#include "ui/timeline/timeline_view.h"
#include "ui/window/actions.h"

#include <QBoxLayout>
#include <QClipboard>
#include <QDialogButtonBox>
#include <QFontDatabase>
#include <QGuiApplication>
#include <QHeaderView>
#include <QLabel>
#include <QMenu>
#include <QMenuBar>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QScreen>
#include <QScrollArea>
#include <QTabWidget>
#include <QTableWidget>
#include <QTextBrowser>
#include <QUrl>

namespace meshwright::ui {

CommandDialog::CommandDialog(const QString& command, bool unsaved, QWidget* parent)
    : QDialog(parent)
{
    setWindowTitle(tr("The command for this view"));
    auto* text = new QPlainTextEdit(command, this);
    text->setReadOnly(true);
    text->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    text->setAccessibleName(tr("Command line"));
    text->setTabChangesFocus(true);
    text->setMinimumSize(560, 96);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
    auto* copy = buttons->addButton(tr("Copy"), QDialogButtonBox::ActionRole);
    connect(copy, &QPushButton::clicked, this, [command] { QGuiApplication::clipboard()->setText(command); });
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    auto* all = new QVBoxLayout(this);
    all->addWidget(new QLabel(tr("In a terminal, this command prints what the view shows:"), this));
    all->addWidget(text);
    if (unsaved) {
        auto* note = new QLabel(tr("The study is not saved yet: the command uses the example and sets your changes."), this);
        note->setWordWrap(true);
        all->addWidget(note);
    }
    all->addWidget(buttons);
    copy->setDefault(true);
}

ShortcutsDialog::ShortcutsDialog(const QMenuBar& menus, QWidget* parent)
    : QDialog(parent)
{
    setWindowTitle(tr("Shortcuts"));
    std::vector<MenuAction> actions = menuActions(menus);
    std::erase_if(actions, [](const MenuAction& one) { return one.keys().isEmpty(); });

    auto* table = new QTableWidget(static_cast<int>(actions.size()), 2, this);
    table->setHorizontalHeaderLabels({tr("Keys"), tr("What they do")});
    table->verticalHeader()->hide();
    table->setEditTriggers(QAbstractItemView::NoEditTriggers);
    table->setSelectionBehavior(QAbstractItemView::SelectRows);
    table->setShowGrid(false);
    table->setAccessibleName(tr("Shortcuts"));
    for (int row = 0; row < table->rowCount(); ++row) {
        const MenuAction& action = actions[static_cast<std::size_t>(row)];
        table->setItem(row, 0, new QTableWidgetItem(action.keys()));
        table->setItem(row, 1, new QTableWidgetItem(QStringLiteral("%1: %2").arg(action.menu, action.text())));
    }
    table->resizeColumnsToContents();
    table->horizontalHeader()->setStretchLastSection(true);
    auto* timeline = new QLabel(TimelineView::help(), this);
    timeline->setWordWrap(true);
    timeline->setAccessibleName(tr("Keys of the timeline"));
    auto* scroll = new QScrollArea(this);
    scroll->setWidget(timeline);
    scroll->setWidgetResizable(true);
    auto* tabs = new QTabWidget(this);
    tabs->addTab(table, tr("Everywhere"));
    tabs->addTab(scroll, tr("In the timeline"));
    tabs->setMinimumSize(560, 460);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    auto* all = new QVBoxLayout(this);
    all->addWidget(tabs);
    all->addWidget(buttons);
}

ManualDialog::ManualDialog(const QString& folder, const QString& page, QWidget* parent)
    : QDialog(parent)
{
    setWindowTitle(tr("Manual"));
    setAttribute(Qt::WA_DeleteOnClose);
    auto* browser = new QTextBrowser(this);
    browser->setAccessibleName(tr("Manual"));
    browser->setOpenExternalLinks(false);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
    auto* back = buttons->addButton(tr("Back"), QDialogButtonBox::ActionRole);
    back->setEnabled(false);
    connect(back, &QPushButton::clicked, browser, &QTextBrowser::backward);
    connect(browser, &QTextBrowser::backwardAvailable, back, &QWidget::setEnabled);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    const auto open = [&](const QString& name) {
        browser->setSource(
            QUrl::fromLocalFile(folder + QLatin1Char('/') + name + QStringLiteral(".md")), QTextDocument::MarkdownResource);
    };
    const QString index = QStringLiteral("index");
    open(index); // Back leads to it
    if (page != index)
        open(page);
    auto* all = new QVBoxLayout(this);
    all->addWidget(browser);
    all->addWidget(buttons);
    resize(QSize(860, 700).boundedTo(screen()->availableSize() - QSize(8, 40))); // room for the frame
}

} // namespace meshwright::ui

#include "moc_dialogs.cpp"

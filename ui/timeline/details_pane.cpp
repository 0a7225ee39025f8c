// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/details_pane.h"

#include "ui/theme/theme.h"
#include "ui/timeline/legend.h"
#include "ui/timeline/totals_model.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QTableView>
#include <QTextBrowser>
#include <QVBoxLayout>

#include <algorithm>

namespace meshwright::ui {

namespace {

QString escaped(const std::string& text)
{
    return QString::fromStdString(text).toHtmlEscaped();
}

QString htmlOf(const SliceFacts& facts, Theme theme)
{
    const QString muted = qtColour(ColourRole::MutedText, theme).name();
    QString html = QStringLiteral("<p style='margin:0 0 4px 0'><b>%1</b></p><table cellspacing='0' cellpadding='1'>")
                       .arg(escaped(facts.name));
    for (const Fact& fact : facts.facts)
        html += QStringLiteral("<tr><td style='color:%1; padding-right:12px'>%2</td><td>%3</td></tr>")
                    .arg(muted, escaped(fact.label), escaped(fact.value));
    html += QStringLiteral("</table>");
    if (!facts.how.empty())
        html += QStringLiteral("<p style='margin:6px 0 0 0'><span style='color:%1'>%2</span><br>%3</p>")
                    .arg(muted, DetailsPane::tr("How"), escaped(facts.how));
    return html;
}

} // namespace

DetailsPane::DetailsPane(QWidget* parent)
    : QWidget(parent)
    , m_browser(new QTextBrowser(this))
    , m_heading(new QLabel(this))
    , m_table(new QTableView(this))
    , m_model(new TotalsModel(this))
{
    m_browser->setFrameShape(QFrame::NoFrame);
    m_browser->setAccessibleName(tr("Selected slice"));
    m_browser->setOpenLinks(false);
    m_browser->setMinimumWidth(220);

    QFont bold = font();
    bold.setBold(true);
    m_heading->setFont(bold);
    m_heading->setTextFormat(Qt::PlainText);

    m_table->setModel(m_model);
    m_table->setMaximumWidth(820); // so that names and figures stay near each other
    m_table->setAccessibleName(tr("Totals"));
    m_table->setFrameShape(QFrame::NoFrame);
    m_table->setShowGrid(false);
    m_table->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_table->setEditTriggers(QAbstractItemView::NoEditTriggers);
    m_table->setTabKeyNavigation(false);
    m_table->setWordWrap(false);
    m_table->setIconSize(QSize(14, 14));
    m_table->verticalHeader()->hide();
    m_table->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 5);
    m_table->verticalHeader()->setMinimumSectionSize(0);
    m_table->horizontalHeader()->setHighlightSections(false);
    m_table->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
    m_table->horizontalHeader()->setSectionResizeMode(TotalsModel::What, QHeaderView::Stretch);
    m_table->horizontalHeader()->setMinimumSectionSize(64);
    for (const auto signal : {&QTableView::clicked, &QTableView::activated}) {
        connect(m_table, signal, this, [this](const QModelIndex& index) {
            if (const QString name = m_model->operationOf(index.row()); !name.isEmpty())
                Q_EMIT operationClicked(name);
        });
    }

    auto* totals = new QVBoxLayout;
    totals->setContentsMargins(0, 0, 0, 0);
    totals->setSpacing(4);
    totals->addWidget(m_heading);
    totals->addWidget(m_table, 1);

    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(8, 6, 8, 8);
    layout->setSpacing(12);
    layout->addWidget(m_browser, 2);
    layout->addLayout(totals, 3);
    setFacts(std::nullopt);
}

void DetailsPane::setFacts(std::optional<SliceFacts> facts)
{
    m_facts = std::move(facts);
    showFacts();
}

void DetailsPane::showFacts()
{
    const Theme theme = themeOf(palette());
    if (m_facts)
        m_browser->setHtml(htmlOf(*m_facts, theme));
    else
        m_browser->setHtml(QStringLiteral("<p style='color:%1'>%2</p>")
                               .arg(qtColour(ColourRole::MutedText, theme).name(),
                                   tr("Click a slice to see how long it takes, and why.").toHtmlEscaped()));
    m_model->setTheme(theme);
}

void DetailsPane::setTotals(const QString& heading, std::optional<std::vector<GroupTotals>> totals)
{
    const bool overlaps = totals && std::ranges::any_of(*totals, [](const GroupTotals& group) { return group.overlaps(); });
    m_heading->setText(overlaps ? tr("%1 · rows overlap").arg(heading) : heading);
    m_heading->setToolTip(
        overlaps ? tr("Rows of a device have slices at the same time: shares add up to more than 100 %") : QString());
    if (totals)
        m_model->setTotals(std::move(*totals));
}

QString DetailsPane::factsText() const
{
    return m_browser->toPlainText();
}

QString DetailsPane::totalsHeading() const
{
    return m_heading->text();
}

void DetailsPane::changeEvent(QEvent* event)
{
    if (event->type() == QEvent::PaletteChange)
        showFacts();
    QWidget::changeEvent(event);
}

} // namespace meshwright::ui

#include "moc_details_pane.cpp"

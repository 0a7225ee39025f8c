// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/explain/hlo_view.h"

#include "core/program/spoken_op.h"
#include "core/support/counted.h"
#include "ui/widgets/table.h"

#include <QBoxLayout>
#include <QFileInfo>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QSplitter>
#include <QTableWidget>
#include <QTextBrowser>

#include <algorithm>

namespace meshwright::ui {

namespace {

QString text(const std::string& bytes)
{
    return QString::fromStdString(bytes);
}

QString operationOf(const HloCollective& collective)
{
    return collective.operation.empty() ? "%" + text(collective.name) : text(collective.operation);
}

/// `model.py:41`
QString fileOf(const std::string& source)
{
    return QFileInfo(text(source)).fileName();
}

QString wordOf(const sim::HloChange& change)
{
    if (change.before == 0)
        return HloView::tr("new");
    if (change.after == 0)
        return HloView::tr("gone");
    return change.after > change.before ? HloView::tr("more") : HloView::tr("fewer");
}

/// The devices of the first groups.
QString membersOf(const HloGroups& groups)
{
    constexpr std::size_t kMostGroups = 4;
    constexpr std::size_t kMostMembers = 16;
    QStringList all;
    for (std::size_t g = 0; g < std::min(groups.groups.size(), kMostGroups); ++g) {
        QStringList members;
        const auto& group = groups.groups[g];
        for (std::size_t m = 0; m < std::min(group.size(), kMostMembers); ++m)
            members << QString::number(group[m]);
        all << members.join(", ") + (group.size() > kMostMembers ? ", …" : "");
    }
    return all.join("; ") + (groups.groups.size() > kMostGroups ? "; …" : "");
}

} // namespace

HloView::HloView(QWidget* parent)
    : QWidget(parent)
    , m_notes(new QLabel(this))
    , m_table(new QTableWidget(this))
    , m_details(new QTextBrowser(this))
    , m_compare(new QPushButton(tr("Compare with a dump…"), this))
{
    m_notes->setWordWrap(true);
    m_notes->setTextFormat(Qt::PlainText);
    m_table->setAccessibleName(tr("Collectives of the dump"));
    setUpRows(*m_table);
    m_table->setFrameShape(QFrame::StyledPanel);
    m_table->setEditTriggers(QAbstractItemView::NoEditTriggers);
    m_table->setWordWrap(false);
    m_table->horizontalHeader()->setStretchLastSection(true);
    m_table->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    m_table->setMinimumSize(260, 120);
    m_details->setAccessibleName(tr("The collective that is chosen"));
    m_details->setMinimumSize(220, 100);
    m_compare->setAutoDefault(false);
    auto* close = new QPushButton(tr("Explain another text"), this);
    close->setAutoDefault(false);

    auto* buttons = new QHBoxLayout;
    buttons->addWidget(m_compare);
    buttons->addWidget(close);
    buttons->addStretch();
    auto* halves = new QSplitter(Qt::Vertical, this);
    halves->setChildrenCollapsible(false);
    halves->addWidget(m_table);
    halves->addWidget(m_details);
    halves->setSizes({30'000, 20'000});
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addLayout(buttons);
    layout->addWidget(m_notes);
    layout->addWidget(halves, 1);
    setFocusProxy(m_table);

    connect(m_table, &QTableWidget::currentCellChanged, this, [this](int row) { showRow(row); });
    connect(m_compare, &QPushButton::clicked, this, &HloView::compareRequested);
    connect(close, &QPushButton::clicked, this, &HloView::closeRequested);
}

void HloView::show(std::shared_ptr<const sim::HloReport> report, std::shared_ptr<const sim::HloReport> before)
{
    m_report = std::move(report);
    m_before = std::move(before);
    m_rows.clear();
    const bool isTimed = !m_report->machine.empty() && m_before == nullptr;
    QStringList titles
        = {tr("Collective"), m_report->module.meshKnown ? tr("Axes") : tr("Groups"), tr("Calls"), tr("Bytes/device")};
    if (isTimed)
        titles << tr("Time");
    if (m_before)
        titles = QStringList{tr("Change")} + titles + QStringList{tr("Data/device")};
    titles << tr("Operation") << tr("Source");

    std::vector<QStringList> rows;
    const auto add = [&](const sim::HloRow& row, const QString& calls) {
        const HloCollective& c = row.collective;
        m_rows.push_back(row);
        rows.push_back({text(spokenOp(hloCollectiveName(c.kind))), text(row.groups), calls,
            text(formatBytes(static_cast<double>(c.payloadBytes)))});
    };
    if (m_before) {
        for (const sim::HloChange& change : sim::hloChanges(*m_before, *m_report)) {
            add(change.row, QStringLiteral("%1 → %2").arg(change.before).arg(change.after));
            rows.back().prepend(wordOf(change));
            const double bytes = change.bytes();
            rows.back() << (bytes < 0.0 ? "−" : "+") + text(formatBytes(std::abs(bytes)));
        }
    } else {
        for (const sim::HloRow& row : m_report->rows) {
            add(row, row.collective.isInUnknownLoop ? tr("%1 × ?").arg(row.count) : QString::number(row.count));
            if (isTimed)
                rows.back() << text(formatSeconds(row.seconds()));
        }
    }
    m_table->clear();
    m_table->setColumnCount(static_cast<int>(titles.size()));
    m_table->setHorizontalHeaderLabels(titles);
    m_table->setRowCount(static_cast<int>(rows.size()));
    for (int r = 0; r < static_cast<int>(rows.size()); ++r) {
        QStringList& cells = rows[static_cast<std::size_t>(r)];
        const HloCollective& c = m_rows[static_cast<std::size_t>(r)].collective;
        cells << operationOf(c) << fileOf(c.source);
        for (int column = 0; column < static_cast<int>(cells.size()); ++column) {
            auto* item = new QTableWidgetItem(cells[column]);
            item->setToolTip(cells[column]);
            const bool isNumber = column >= (m_before ? 3 : 2) && column < static_cast<int>(cells.size()) - 2;
            item->setTextAlignment(isNumber ? Qt::AlignRight | Qt::AlignVCenter : Qt::AlignLeft | Qt::AlignVCenter);
            m_table->setItem(r, column, item);
        }
    }
    m_table->resizeColumnsToContents();
    constexpr int kWidestColumn = 420;
    for (int column = 0; column < m_table->columnCount(); ++column)
        m_table->setColumnWidth(column, std::min(m_table->columnWidth(column), kWidestColumn));

    QStringList notes;
    for (const std::string& note : m_report->notes())
        notes << text(note);
    if (m_before && rows.empty())
        notes.prepend(tr("Both dumps have the same collectives."));
    m_notes->setText(notes.join('\n'));
    m_notes->setVisible(!notes.empty());
    m_details->setVisible(!rows.empty());
    m_table->setVisible(!rows.empty());
    if (!rows.empty())
        m_table->setCurrentCell(0, 0);
    showRow(rows.empty() ? -1 : 0);
}

void HloView::showRow(int row)
{
    if (row < 0 || row >= static_cast<int>(m_rows.size()))
        return m_details->clear();
    const sim::HloRow& chosen = m_rows[static_cast<std::size_t>(row)];
    const HloCollective& c = chosen.collective;
    QString html = QStringLiteral("<h3>%1</h3><table cellspacing='0' cellpadding='2'>")
                       .arg(tr("%1 of %2").arg(text(spokenOp(hloCollectiveName(c.kind))), operationOf(c)).toHtmlEscaped());
    const auto fact = [&](const QString& name, const QString& value) {
        if (!value.isEmpty())
            html += QStringLiteral("<tr><td style='padding-right: 14px'><b>%1</b></td><td>%2</td></tr>")
                        .arg(name.toHtmlEscaped(), value.toHtmlEscaped());
    };
    fact(tr("Source"), text(c.source));
    fact(tr("In the dump"),
        chosen.instructions == 1
            ? tr("%%1, line %2").arg(text(c.name)).arg(c.line)
            : tr("%%1, line %2, and %3 more like it").arg(text(c.name)).arg(c.line).arg(chosen.instructions - 1));
    fact(tr("Groups"), tr("%1 of %2 devices: %3").arg(c.groups->groups.size()).arg(c.groups->size).arg(membersOf(*c.groups)));
    fact(tr("Data a device"),
        tr("%1 of %2: %3")
            .arg(text(counted(chosen.count, "call")), text(formatBytes(static_cast<double>(c.payloadBytes))),
                text(formatBytes(chosen.bytes()))));
    if (chosen.estimate) {
        fact(tr("Time"),
            tr("%1 a call, alone on the links of %2")
                .arg(text(formatSeconds(chosen.estimate->seconds)), text(m_report->machine)));
        fact(tr("Algorithm"), text(chosen.estimate->algorithm));
        fact(tr("Formula"), text(chosen.estimate->formula));
    }
    if (c.isAsync)
        fact(tr("Start and done"), tr("other work may run between them"));
    if (c.isConditional)
        fact(tr("Condition"), tr("it is in a branch, and counted as if the branch is taken"));
    m_details->setHtml(html + QStringLiteral("</table>"));
}

} // namespace meshwright::ui

#include "moc_hlo_view.cpp"

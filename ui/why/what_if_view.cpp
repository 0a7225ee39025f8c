// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/why/what_if_view.h"

#include "core/support/text.h"
#include "sim/session/analysis_state.h"
#include "ui/widgets/table.h"

#include <QBoxLayout>
#include <QLabel>

#include <algorithm>

namespace meshwright::ui {

namespace {

constexpr int kStillMilliseconds = 250;

/// "-14.1 %"
QString changeText(double was, double is)
{
    const double percent = was > 0.0 ? 100.0 * (is - was) / was : 0.0;
    if (std::abs(percent) < 0.05)
        return QStringLiteral("0.0 %");
    return QStringLiteral("%1%2 %")
        .arg(percent < 0.0 ? QStringLiteral("\u2212") : QStringLiteral("+"))
        .arg(std::abs(percent), 0, 'f', 1);
}

/// "-5.01 ms (-14.1 %)"; of another batch by the row of the batch.
QString differenceText(double was, double is)
{
    return QStringLiteral("%1%2 (%3)")
        .arg(is < was ? QStringLiteral("\u2212") : QStringLiteral("+"), QString::fromStdString(formatSeconds(std::abs(is - was))),
            changeText(was, is));
}

/// "12.3 GiB, too much"
QString memoryText(std::int64_t bytes, bool fits)
{
    return WhatIfView::tr(fits ? "%1" : "%1, too much").arg(QString::fromStdString(formatBytes(static_cast<double>(bytes))));
}

/// Seconds for one row of the batch: what is compared.
double perRow(const sim::ReportTrial& trial)
{
    return trial.stepSeconds / static_cast<double>(std::max<std::int64_t>(1, trial.batch));
}

} // namespace

WhatIfView::WhatIfView(Selection&, QWidget* parent)
    : View(parent)
    , m_status(new QLabel(this))
    , m_table(
          new Table({tr("What if"), tr("Step"), tr("Against now"), tr("Memory"), tr("Against now"), tr("Waits"), tr("Bound by")},
              tr("Changes"), this))
{
    m_status->setTextFormat(Qt::PlainText);
    m_status->setWordWrap(true);
    m_status->setAccessibleName(tr("How far the changes are"));
    m_table->setRootIsDecorated(false);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(8, 8, 8, 8);
    layout->setSpacing(6);
    layout->addWidget(m_status);
    layout->addWidget(m_table, 1);
    connect(m_table, &QTreeWidget::itemActivated, this, [this](QTreeWidgetItem* row) {
        const int index = m_table->indexOfTopLevelItem(row) - kRowsOfNow;
        if (index < 0 || !m_trials[static_cast<std::size_t>(index)].whyNot.empty())
            return;
        const sim::ReportTrial& trial = m_trials[static_cast<std::size_t>(index)];
        QStringList settings;
        for (const std::string& setting : trial.settings)
            settings << QString::fromStdString(setting);
        Q_EMIT changeChosen(settings, QString::fromStdString(trial.what));
    });
    setFocusProxy(m_table);
    m_still.setSingleShot(true);
    m_still.setInterval(kStillMilliseconds);
    connect(&m_still, &QTimer::timeout, this, &WhatIfView::start);
}

void WhatIfView::setAnalysis(std::shared_ptr<const sim::Analysis> analysis)
{
    m_analysis = std::move(analysis);
    m_table->setEnabled(false);
    m_worker.cancel();
    m_still.stop();
    if (!m_analysis->simulated) {
        const Problem* why = sim::whyNotBuilt(*m_analysis);
        m_status->setText(why != nullptr ? QString::fromStdString(why->message)
                                         : tr("The study has no hardware: choose a chip to see what changes would bring."));
        return;
    }
    m_status->setText(tr("Simulating changes…"));
    m_still.start();
}

void WhatIfView::forgetStudy()
{
    m_worker.cancel();
    m_still.stop();
    m_analysis.reset();
    m_trials.clear();
    m_table->clear();
    m_status->setText(tr("The study is being simulated…"));
}

void WhatIfView::start()
{
    m_worker.start([this, of = m_analysis](const std::stop_token& stop) -> std::function<void()> {
        std::vector<sim::ReportTrial> soFar; // each is seen as soon as it is there
        auto trials = sim::trialsOf(*of, kMostTrials, stop, [&](const sim::ReportTrial& trial) {
            soFar.push_back(trial);
            m_worker.post([this, soFar] { showTrials(soFar, false); });
        });
        if (stop.stop_requested())
            return nullptr;
        return [this, trials = std::move(trials)]() mutable { showTrials(std::move(trials), true); };
    });
}

void WhatIfView::showTrials(std::vector<sim::ReportTrial> trials, bool isAll)
{
    const QString chosen = m_table->currentItem() != nullptr ? m_table->currentItem()->text(0) : QString();
    if (isAll) // until then rows stay where they are
        std::stable_sort(trials.begin(), trials.end(), [](const sim::ReportTrial& a, const sim::ReportTrial& b) {
            const bool canA = a.whyNot.empty();
            const bool canB = b.whyNot.empty();
            return canA != canB ? canA : canA && perRow(a) < perRow(b);
        });
    m_trials = std::move(trials);
    m_table->clear();
    m_table->setEnabled(true);
    const sim::Simulation& now = m_analysis->simulated->simulation;
    const auto add = [&](const QString& what, const QStringList& figures) {
        auto* row = new QTreeWidgetItem(m_table, QStringList(what) + figures);
        for (int column = 1; column < m_table->columnCount(); ++column)
            row->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
        return row;
    };
    const auto text = [](const std::string& words) { return QString::fromStdString(words); };
    if (!m_trials.empty()) {
        QTreeWidgetItem* row = add(tr("As it is now"),
            {text(formatSeconds(now.stepSeconds)), {}, memoryText(now.peakBytes, now.fits), {},
                text(formatSeconds(now.exposedSeconds)), shownSentence(now.boundBy.text())});
        QFont bold = m_table->font();
        bold.setBold(true);
        for (int column = 0; column < m_table->columnCount(); ++column)
            row->setFont(column, bold);
    }
    for (const sim::ReportTrial& trial : m_trials) {
        if (!trial.whyNot.empty()) {
            QTreeWidgetItem* row = add(tr("%1: %2").arg(text(trial.what), text(trial.whyNot)), {});
            row->setToolTip(0, text(trial.whyNot));
            row->setDisabled(true);
            row->setFirstColumnSpanned(true);
            continue;
        }
        const double ofRow = now.stepSeconds / static_cast<double>(std::max<std::int64_t>(1, m_analysis->built->study.batch));
        QTreeWidgetItem* row = add(text(trial.what),
            {text(formatSeconds(trial.stepSeconds)), differenceText(ofRow * static_cast<double>(trial.batch), trial.stepSeconds),
                memoryText(trial.peakBytes, trial.fits),
                changeText(static_cast<double>(now.peakBytes), static_cast<double>(trial.peakBytes)),
                text(formatSeconds(trial.exposedSeconds)), shownSentence(trial.boundBy.text())});
        row->setToolTip(0, text(trial.what + "\n" + join(trial.settings, "\n")));
    }
    for (int row = 0; row < m_table->topLevelItemCount() && !chosen.isEmpty(); ++row) {
        if (m_table->topLevelItem(row)->text(0) == chosen)
            m_table->setCurrentItem(m_table->topLevelItem(row)); // rows that arrive do not take it away from its reader
    }
    m_table->fitColumns();
    m_status->setText(!isAll ? tr("Simulating changes, %1 so far…").arg(m_trials.size())
            : m_trials.empty()
            ? tr("No changes to try: a formula predicts this step.")
            : tr(
                "Each change is simulated alone; the fastest per row of the batch comes first. A double click or Enter applies a "
                "change, Undo goes back."));
}

DisplayList WhatIfView::picture() const
{
    return tablePicture(*m_table, "changes", "nothing was simulated");
}

QString WhatIfView::command() const
{
    return QStringLiteral("meshwright report ") + studyArguments(m_analysis ? m_analysis->source : sim::StudySource{})
        + QStringLiteral(" --format md");
}

} // namespace meshwright::ui

#include "moc_what_if_view.cpp"
